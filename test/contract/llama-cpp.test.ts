import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { HttpOpenAiBackend } from '../../src/backends/http-openai.ts'
import { missing } from '../support/installed.ts'
import { type LlamaEngine, type LlamaServerOptions, startLlama } from '../support/llama-server.ts'
import { MODEL, postJson, startPlatform, upstreamTree } from '../support/start-platform.ts'
import { type BackendUnderTest, describeBackend } from './backend.contract.ts'

/** What every backend owes, kept with a real engine behind it: llama.cpp on weights that this test writes itself. */
const why = missing('llama.cpp')

describe.skipIf(why !== undefined)(`llama.cpp${why === undefined ? '' : ` (${why})`}`, () => {
  let engine: LlamaEngine
  beforeAll(async () => {
    engine = await startLlama()
  }, 60_000)
  afterAll(() => engine.close())

  async function over(
    options?: LlamaServerOptions,
  ): Promise<BackendUnderTest & { readonly stop: () => Promise<void> }> {
    const server = await engine.serve(options)
    const backend = new HttpOpenAiBackend({ url: server.url, upstreamModel: 'tiny' })
    const close = async (): Promise<void> => {
      await backend.close()
      await server.close()
    }
    return { backend, openCount: () => server.openCount, close, stop: () => server.close() }
  }

  describeBackend({
    name: 'http-openai, a real llama.cpp engine',
    well: () => over(),
    // Its thousand tokens take half a minute: whatever is free sooner was let go.
    endless: () => over({ everyMs: 30 }),
    full: () => over({ isLoading: true }),
    lost: async () => {
      const under = await over()
      await under.stop()
      return { ...under, close: () => Promise.resolve() }
    },
    unable: () => over({ contextTokens: 4 }),
  })

  it('serves a chat through the whole platform, with its own counts', async () => {
    const server = await engine.serve()
    const platform = await startPlatform(upstreamTree([server.url]))
    const body = { model: MODEL, max_tokens: 12, messages: [{ role: 'user', content: 'What is a weir?' }] }
    const response = await postJson(`${platform.baseURL}/chat/completions`, body)
    const answer = (await response.json()) as { choices: Array<{ message: { content: string } }>; usage: object }
    expect(response.status).toBe(200)
    expect(answer.choices[0]!.message.content.trim().split(' ')).toHaveLength(12)
    expect(answer.usage).toMatchObject({ completion_tokens: 12 })
    await platform.close()
    await server.close()
  })
})
