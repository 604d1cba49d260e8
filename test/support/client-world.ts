import { hashKey } from '../../src/config/key-hash.ts'
import { FakeUpstream } from './fake-upstream.ts'
import { type Passing, PassingEngine } from './passing-engine.ts'
import { ACME_KEY, MODEL, startPlatform, type TestPlatform, testTree } from './start-platform.ts'
import { callsTool } from './tool-engine.ts'

/**
 * One gateway with everything that a client can ask of it: a simulated engine, a scripted one that calls a tool, one
 * with endpoints that are passed through, a store and its search.
 */
export const TOOL_MODEL = 'caller'
export const EMBEDDER = 'embedder'
export const TOOL = { name: 'look', arguments: '{"at":"dam"}', says: 'a weir' }

export interface ClientWorld {
  readonly platform: TestPlatform
  close(): Promise<void>
}

/** Answers as the endpoint that was asked would. */
const passed: Passing = async ({ res, path, readAll }) => {
  await readAll()
  if (path.endsWith('/speech')) res.writeHead(200, { 'content-type': 'audio/mpeg' }).end('sound')
  else {
    const answer = path.includes('/images/')
      ? { created: 1, data: [{ b64_json: 'cGljdHVyZQ==' }] }
      : { text: TOOL.says }
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  }
}

export async function startClientWorld(): Promise<ClientWorld> {
  const caller = await FakeUpstream.start(callsTool(TOOL))
  const passing = await PassingEngine.start(passed)
  const elsewhere = (model: string, url: string) => ({
    model,
    backend: { kind: 'http-openai', timeoutMs: 5_000 },
    replicas: [url],
  })
  const simulated = (model: string) => ({ model, backend: { kind: 'simulated', profile: 'h100-llama-1b' } })
  const platform = await startPlatform(
    testTree({
      server: { cors: { origins: ['*'] } },
      retrieval: { budgetMs: 5_000 },
      models: [
        { name: MODEL, aliases: ['gpt-4o-mini'] },
        { name: EMBEDDER, kind: 'embedding' },
        { name: TOOL_MODEL },
        { name: 'speaker', kind: 'audio' },
        { name: 'painter', kind: 'image' },
      ],
      pools: [
        simulated(MODEL),
        simulated(EMBEDDER),
        elsewhere(TOOL_MODEL, caller.url),
        elsewhere('speaker', passing.url),
        elsewhere('painter', passing.url),
      ],
      tenants: [{ id: 'acme', slo: 'patient', storing: {}, keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }] }],
    }),
  )
  return {
    platform,
    async close() {
      await platform.close()
      await caller.close()
      await passing.close()
    },
  }
}
