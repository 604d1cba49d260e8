import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { answers, FakeUpstream } from '../support/fake-upstream.ts'
import { ACME_KEY, MODEL, startPlatform, type TestPlatform, upstreamTree } from '../support/start-platform.ts'
import { callsTool } from '../support/tool-engine.ts'

/** OpenAI's Agents SDK as it is without settings: by Responses, which are stored, and gone on from. */

let upstream: FakeUpstream
let platform: TestPlatform
let runner: Runner

beforeAll(async () => {
  upstream = await FakeUpstream.start()
  const tenants = [{ id: 'acme', slo: 'patient', storing: {}, keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }] }]
  platform = await startPlatform(upstreamTree([upstream.url], { tenants }))
  const modelProvider = new OpenAIProvider({ baseURL: platform.baseURL, apiKey: ACME_KEY })
  // Traces would be sent to OpenAI.
  runner = new Runner({ modelProvider, tracingDisabled: true })
})
afterAll(async () => {
  await platform.close()
  await upstream.close()
})
beforeEach(() => {
  upstream.behaviour = answers()
})

const plain = new Agent({ name: 'dams', instructions: 'Be brief.', model: MODEL })

const asked: string[] = []
const measure = tool({
  name: 'measure',
  description: 'Measures a dam.',
  strict: false,
  parameters: {
    type: 'object',
    properties: { dam: { type: 'string' } },
    required: ['dam'],
    additionalProperties: true,
  },
  async execute(input) {
    asked.push((input as { dam: string }).dam)
    return 'twelve metres'
  },
})
const measuring = new Agent({ name: 'measuring', model: MODEL, tools: [measure] })

describe('an agent', () => {
  it('answers', async () => {
    const { finalOutput, rawResponses } = await runner.run(plain, 'What is a weir?')
    expect(finalOutput).toContain('weir')
    expect(rawResponses[0]?.responseId).toMatch(/^resp_/)
  })

  it('answers in a stream', async () => {
    const result = await runner.run(plain, 'What is a weir?', { stream: true })
    let text = ''
    for await (const piece of result.toTextStream()) text += piece
    await result.completed
    expect(text).toContain('weir')
    expect(result.finalOutput).toBe(text)
  })

  it.each([false, true])('calls a tool and goes on with what it said (streamed: %s)', async (stream) => {
    upstream.behaviour = callsTool({ name: 'measure', arguments: '{"dam":"Hoover"}' })
    asked.length = 0
    const ended = await (stream ? streamed() : runner.run(measuring, 'How high is it?'))
    expect(asked).toEqual(['Hoover'])
    expect(ended.finalOutput).toBe('It says: twelve metres')
  })

  async function streamed() {
    const result = await runner.run(measuring, 'How high is it?', { stream: true })
    await result.completed
    return result
  }

  it('goes on from a stored response', async () => {
    const first = await runner.run(plain, 'What is a weir?')
    const previousResponseId = first.lastResponseId as string
    const second = await runner.run(plain, 'And a spillway?', { previousResponseId })
    expect(second.finalOutput).toContain('weir')
    const said = upstream.seen.at(-1)?.body['messages'] as { role: string }[]
    expect(said.map(({ role }) => role).filter((role) => role !== 'system' && role !== 'developer')).toEqual([
      'user',
      'assistant',
      'user',
    ])
  })
})
