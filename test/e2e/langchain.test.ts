import { ChatOpenAI } from '@langchain/openai'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { answers, FakeUpstream, fails, WORDS } from '../support/fake-upstream.ts'
import { ACME_KEY, MODEL, startPlatform, type TestPlatform, upstreamTree } from '../support/start-platform.ts'
import { callsTool } from '../support/tool-engine.ts'

/** LangChain's model of OpenAI, by chat completions and by Responses. */

let upstream: FakeUpstream
let platform: TestPlatform

beforeAll(async () => {
  upstream = await FakeUpstream.start()
  platform = await startPlatform(upstreamTree([upstream.url]))
})
afterAll(async () => {
  await platform.close()
  await upstream.close()
})
beforeEach(() => {
  upstream.behaviour = answers()
})

const modelOf = (more: object): ChatOpenAI =>
  new ChatOpenAI({
    model: MODEL,
    apiKey: ACME_KEY,
    maxRetries: 0,
    configuration: { baseURL: platform.baseURL },
    ...more,
  })

const MEASURE = {
  type: 'function' as const,
  function: {
    name: 'measure',
    description: 'Measures a dam.',
    parameters: { type: 'object', properties: { dam: { type: 'string' } }, required: ['dam'] },
  },
}

describe.each([
  ['chat completions', {}, /^chatcmpl-/],
  ['Responses', { useResponsesApi: true }, /^(resp|msg)_/],
])('by %s', (_way, more, prefix) => {
  it('answers, and tells the usage', async () => {
    const answer = await modelOf(more).invoke('What is a weir?')
    expect(answer.text).toContain('weir')
    expect(answer.id).toMatch(prefix)
    expect(answer.usage_metadata).toMatchObject({ output_tokens: WORDS.length })
  })

  it('answers in a stream', async () => {
    let text = ''
    let pieces = 0
    for await (const piece of await modelOf(more).stream('What is a weir?')) {
      text += piece.text
      pieces++
    }
    expect(text).toContain('weir')
    expect(pieces).toBeGreaterThan(2)
  })

  it('calls a tool and goes on with what it said', async () => {
    upstream.behaviour = callsTool({ name: 'measure', arguments: '{"dam":"Hoover"}' })
    const model = modelOf(more).bindTools([MEASURE])
    const question = { role: 'user', content: 'How high is it?' }
    const called = await model.invoke([question])
    expect(called.tool_calls).toMatchObject([{ name: 'measure', args: { dam: 'Hoover' } }])
    const said = { role: 'tool', content: 'twelve metres', tool_call_id: called.tool_calls?.[0]?.id ?? '' }
    expect((await model.invoke([question, called, said])).text).toBe('It says: twelve metres')
  })

  it('throws what an engine says is wrong', async () => {
    upstream.behaviour = fails(400, { error: { message: 'No dams today.', type: 'invalid_request_error' } })
    await expect(modelOf(more).invoke('What is a weir?')).rejects.toThrow('No dams today.')
  })
})
