import { describe, expect, it } from 'vitest'
import { makeKey, makeTenant } from '../../test/support/demand.ts'
import { promptTokensOf } from '../domain/request.ts'
import { ModelDirectory } from './model-directory.ts'
import { withTrueSize } from './prompt-size.ts'
import { type PromptCounter, type RequestRules, toRequest } from './to-request.ts'
import { toEmbeddingRequest } from './to-whole-request.ts'

const model = {
  name: 'm',
  aliases: [],
  contextTokensMax: 1_000,
  outputTokensDefault: 100,
  fallback: undefined,
  createdAtS: 1,
  releases: ['m@1'],
}
const features = { logprobs: false, tools: true, jsonSchema: true, vectors: true }
const embedding = { ...model, name: 'e', kind: 'embedding' as const, releases: ['e@1'] }

/** Every text is estimated as a token for each four characters, and counted as one for each two. */
function rulesWith(counter: Partial<PromptCounter> | undefined, promptTokensMax?: number) {
  const asked: string[][] = []
  const whole: PromptCounter = {
    knows: () => true,
    isInDoubt: () => true,
    count: ({ texts }) => {
      asked.push([...texts])
      return Promise.resolve({ counts: texts.map((text) => Math.ceil(text.length / 2)) })
    },
    ...counter,
  }
  const rules: RequestRules = {
    models: new ModelDirectory([
      { model, features },
      { model: embedding, features },
    ]),
    choicesMax: 4,
    promptTokensMax,
    passagesDefault: 4,
    passagesMax: 20,
    salt: 'secret',
    estimateTokens: (text) => Math.ceil(text.length / 4),
    ...(counter !== undefined && { counter: whole }),
  }
  return { rules, asked }
}

const tenant = makeTenant('a')
const caller = { tenant, key: makeKey('k', 'a') }

function chat(rules: RequestRules, over: Record<string, unknown> = {}) {
  const body = { model: 'm', messages: [{ role: 'user' as const, content: 'x'.repeat(400) }], ...over }
  return withTrueSize(toRequest({ id: 'r', kind: 'chat', body, headers: {}, caller, now: 1 }, rules), rules)
}

describe('the size of a prompt', () => {
  it('is the estimate, at once, where no bound is near', () => {
    const { rules, asked } = rulesWith({ isInDoubt: () => false })
    const read = chat(rules)
    expect(read).toMatchObject({ kind: 'ok', request: { isEstimated: true, segments: [{ tokens: 104 }] } })
    expect(asked).toEqual([])
  })

  it('is counted where a bound is near, tools and tool calls included', async () => {
    const { rules, asked } = rulesWith({})
    const tools = [{ type: 'function', function: { name: 'weir' } }]
    const messages = [
      { role: 'user', content: 'x'.repeat(400) },
      { role: 'assistant', content: null, tool_calls: [{ function: { arguments: 'y'.repeat(100) } }] },
    ]
    const read = await chat(rules, { messages, tools })
    if (read.kind !== 'ok') throw new Error(read.fault.message)
    expect(read.request.isEstimated).toBeUndefined()
    const [content, call, written] = asked[0] as [string, string, string]
    expect([content.length, call.includes('yyy'), written]).toEqual([400, true, JSON.stringify(tools)])
    const expected = 200 + Math.ceil(call.length / 2) + Math.ceil(written.length / 2) + 2 * 4 + 3
    expect(promptTokensOf(read.request)).toBe(expected)
  })

  it.each<[string, Partial<PromptCounter> | undefined]>([
    ['nothing counts', undefined],
    ['the model has no known tokenizer', { knows: () => false }],
    ['the counter does not answer in time', { count: () => Promise.resolve(undefined) }],
  ])('stays an estimate, and is refused by nobody, when %s', async (_, counter) => {
    const { rules } = rulesWith(counter)
    const read = await chat(rules, { messages: [{ role: 'user', content: 'x'.repeat(100_000) }] })
    expect(read).toMatchObject({ kind: 'ok', request: { isEstimated: true } })
  })

  it('is held against the operator’s longest prompt as counted, else as estimated', async () => {
    const tooLong = { kind: 'fault', fault: { code: 'context-length-exceeded', param: 'messages' } }
    expect(await chat(rulesWith(undefined, 100).rules)).toMatchObject(tooLong)
    // Estimated 107, in truth 20.
    const { rules } = rulesWith({ count: () => Promise.resolve({ counts: [13] }), isInDoubt: () => false }, 100)
    expect(await chat(rules)).toMatchObject({ kind: 'ok' })
    const counted = await chat(rulesWith({}, 150).rules)
    expect(counted).toMatchObject(tooLong)
    expect(counted).toMatchObject({ fault: { message: expect.stringContaining('has 207 tokens') } })
  })

  it('keeps the estimates of texts that were not counted to the end', async () => {
    const { rules } = rulesWith({ count: () => Promise.resolve({ counts: [5_000] }) })
    const messages = [
      { role: 'user', content: 'x'.repeat(400) },
      { role: 'user', content: 'y'.repeat(80) },
    ]
    expect(await chat(rules, { messages })).toMatchObject({
      request: { segments: [{ tokens: 5_004 }, { tokens: 24 }] },
    })
  })

  it('of an embedding is counted text by text, and tokens count as they are', async () => {
    const { rules } = rulesWith({})
    const asked = { id: 'r', headers: {}, caller, now: 1 }
    const texts = { model: 'e', input: ['x'.repeat(40), 'y'.repeat(80)] }
    const read = await withTrueSize(toEmbeddingRequest({ ...asked, body: texts }, rules), rules)
    expect(read).toMatchObject({ kind: 'ok', request: { segments: [{ tokens: 20 }, { tokens: 40 }] } })
    expect(read).not.toHaveProperty('request.isEstimated')
    const tokens = { model: 'e', input: [[1, 2, 3]] }
    const exact = await withTrueSize(toEmbeddingRequest({ ...asked, body: tokens }, rules), rules)
    expect(exact).toMatchObject({ request: { segments: [{ tokens: 3 }] } })
    expect(exact).not.toHaveProperty('request.isEstimated')
  })
})
