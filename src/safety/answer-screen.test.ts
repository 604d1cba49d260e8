import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { outputRule, screeningOf } from '../../test/support/fake-screens.ts'
import { fakeScreens, holdModes, OWN_VALUES, throughScreen } from '../../test/support/through-screen.ts'
import type { ChoiceDelta, Delta } from '../domain/delta.ts'

/** Texts of a choice in the order in which engines write them. */
interface Said {
  readonly reasoning: string
  readonly content: string
  readonly calls: readonly string[]
}

const ofChoice = (index: number, { reasoning, content, calls }: Said): ChoiceDelta => ({
  index,
  content: content === '' ? null : content,
  finishReason: 'stop',
  extra: {
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(calls.length > 0 && {
      tool_calls: calls.map((text, i) => ({
        index: i,
        id: `call_${i}`,
        type: 'function',
        function: { name: 'send', arguments: text },
      })),
    }),
  },
})

/** The same choice in small deltas: reasoning, content, then its calls side by side. */
function piecesOf(index: number, { reasoning, content, calls }: Said, cut: () => number): ChoiceDelta[] {
  const pieces: ChoiceDelta[] = []
  const cutUp = (text: string, make: (piece: string) => ChoiceDelta): ChoiceDelta[] => {
    const made: ChoiceDelta[] = []
    for (let from = 0; from < text.length; ) {
      const to = from + cut()
      made.push(make(text.slice(from, to)))
      from = to
    }
    return made
  }
  const one = { index, content: null, finishReason: null }
  pieces.push(...cutUp(reasoning, (text) => ({ ...one, extra: { reasoning_content: text } })))
  pieces.push(...cutUp(content, (text) => ({ ...one, content: text })))
  const open = calls.map((text, i) => [
    {
      ...one,
      extra: {
        tool_calls: [{ index: i, id: `call_${i}`, type: 'function', function: { name: 'send', arguments: '' } }],
      },
    },
    ...cutUp(text, (args) => ({ ...one, extra: { tool_calls: [{ index: i, function: { arguments: args } }] } })),
  ])
  while (open.some((left) => left.length > 0)) for (const left of open) pieces.push(...left.splice(0, cut()))
  pieces.push({ ...one, finishReason: 'stop' })
  return pieces
}

const words = fc.constantFrom(
  'ada@x.org ',
  ' 4111111111111111 ',
  '<EMAIL_3f>',
  '<NAME_01>',
  '<EMAIL_99>',
  'write to ',
  'b',
  '@',
  '. ',
  'darn ',
  '\n',
  'é😀',
)
const text = fc.array(words, { maxLength: 8 }).map((parts) => parts.join(''))
const args = fc
  .tuple(
    fc.dictionary(fc.constantFrom('a', 'b', 'ada@x.org'), fc.oneof(text, fc.constant(4111111111111111))),
    fc.boolean(),
  )
  .map(([json, isSpaced]) => JSON.stringify(json, null, isSpaced ? 1 : 0))
const said = fc.record({ reasoning: text, content: text, calls: fc.array(args, { maxLength: 3 }) })
const rules = [outputRule(), outputRule({ screen: 'toxicity', action: 'flag' })]

describe('an answer on its way out', () => {
  it('has the same findings and the same text whatever the cut into deltas, streamed or not', () => {
    fc.assert(
      fc.property(
        fc.array(said, { minLength: 1, maxLength: 3 }),
        holdModes,
        fc.infiniteStream(fc.integer({ min: 1, max: 5 })),
        (all, hold, sizes) => {
          const cut = () => sizes.next().value as number
          const whole = throughScreen(
            [{ tokens: 7, choices: all.map((one, i) => ofChoice(i, one)) }],
            { hold, rules },
            OWN_VALUES,
          )
          const left = all.map((one, i) => piecesOf(i, one, cut))
          const deltas: Delta[] = []
          while (left.some((pieces) => pieces.length > 0))
            for (const pieces of left) {
              const choices = pieces.splice(0, cut() > 3 ? 2 : 1)
              if (choices.length > 0) deltas.push({ tokens: 1, choices })
            }
          const streamed = throughScreen(deltas, { hold, rules }, OWN_VALUES)
          expect(streamed.client).toEqual(whole.client)
          expect(streamed.kept).toEqual(whole.kept)
          const byName = (a: { category: string }, b: { category: string }) => (a.category < b.category ? -1 : 1)
          expect([...streamed.findings!].sort(byName)).toEqual([...whole.findings!].sort(byName))
          expect(streamed.tokens).toBe(deltas.length)
          expect(streamed.screen!.heldLength).toBe(0)
          const told = JSON.stringify(streamed.client)
          expect(told).not.toContain('ada@x.org')
          expect(told).not.toContain('4111111111111111')
          expect(JSON.stringify(streamed.kept)).not.toContain('own')
          for (const { extra } of streamed.client) {
            const calls = (extra?.['tool_calls'] ?? []) as { function: { arguments: string } }[]
            for (const call of calls) expect(JSON.parse(call.function.arguments)).toBeTypeOf('object')
          }
        },
      ),
      { numRuns: 200 },
    )
  })

  it('never shows a value before it is looked at, in any delta', () => {
    const streamed = throughScreen(
      Array.from('Write to ada@x.org, or to <EMAIL_3f>!').map((content) => ({
        tokens: 1,
        choices: [{ index: 0, content, finishReason: null }],
      })),
      {},
      OWN_VALUES,
    )
    let seen = ''
    for (const { choices = [] } of streamed.out) {
      seen += choices[0]?.content ?? ''
      expect(seen).not.toMatch(/ada@|<EMAIL_/)
    }
    expect(seen).toBe('Write to <EMAIL>, or to own"1"@x.org!')
  })

  it('has the rest of its reasoning before its content, and the rest of its content before a call', () => {
    const one = { index: 0, content: null, finishReason: null }
    const { out } = throughScreen([
      { tokens: 1, choices: [{ ...one, extra: { reasoning: 'think' } }] },
      { tokens: 1, choices: [{ ...one, content: 'say' }] },
      {
        tokens: 1,
        choices: [{ ...one, extra: { tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{}' } }] } }],
      },
      { tokens: 1, choices: [{ ...one, extra: { reasoning: 'again' } }] },
      { tokens: 1, choices: [{ ...one, finishReason: 'tool_calls' }] },
    ])
    expect(out.flatMap(({ choices = [] }) => choices)).toEqual([
      { ...one, extra: { reasoning: 'think' } },
      {
        ...one,
        content: 'say',
        extra: { tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{}' } }] },
      },
      { ...one, extra: { reasoning: 'again' }, finishReason: 'tool_calls' },
    ])
  })

  it('passes as it is where nothing may be changed, and is looked at all the same', () => {
    const delta: Delta = {
      tokens: 1,
      choices: [{ index: 0, content: 'ada@x.org', finishReason: 'stop', logprobs: {} }],
      frame: { json: '{}', keepsModel: true },
    }
    for (const terms of [{ rules: [outputRule({ action: 'observe' })] }, { hold: { kind: 'none' } as const }]) {
      const { out, findings } = throughScreen([delta], terms)
      expect(out).toEqual([delta])
      expect(findings).toMatchObject([{ category: 'email', action: 'observe', count: 1, direction: 'output' }])
    }
    expect(fakeScreens.of(screeningOf({ rules: [outputRule({ direction: 'input' })] }))).toBeUndefined()
  })
})

describe('a block', () => {
  const block = { rules: [outputRule({ action: 'block' })] }

  it('lets what stands before it go, and nothing behind it, whatever the cut', () => {
    const text = 'Write to ada@x.org or eve@x.org.'
    for (let at = 0; at < text.length; at++) {
      const pieces = [text.slice(0, at), text.slice(at)]
      const { client, findings, screen } = throughScreen(
        pieces.map((content) => ({ tokens: 1, choices: [{ index: 0, content, finishReason: null }] })),
        block,
      )
      expect(client[0]?.content).toBe('Write to ')
      expect(findings).toMatchObject([{ category: 'email', action: 'block', count: 1 }])
      expect(screen?.blockedBy).toMatchObject({ screen: 'pii', category: 'email' })
    }
  })

  it('by a judge keeps the sentence back', () => {
    const { client, screen } = throughScreen(
      [{ tokens: 3, choices: [{ index: 0, content: 'All is well. You darn fool. Bye.', finishReason: 'stop' }] }],
      { rules: [outputRule({ screen: 'toxicity', action: 'block' })], hold: { kind: 'sentences', tokensMax: 16 } },
    )
    expect(client[0]?.content).toBe('All is well. ')
    expect(screen?.blockedBy).toMatchObject({ screen: 'toxicity', score: 0.9 })
  })

  it('in one argument of a call stops the others', () => {
    const { client } = throughScreen(
      [
        {
          tokens: 1,
          choices: [
            ofChoice(0, { reasoning: '', content: '', calls: ['{"a":"x ada@x.org","b":"later"}', '{"c":"never"}'] }),
          ],
        },
      ],
      block,
    )
    expect(JSON.stringify(client)).not.toMatch(/ada@|later|never/)
  })
})

describe('what has text in other forms', () => {
  it('is left out, and named', () => {
    const frame = {
      json: JSON.stringify({
        id: 'x',
        object: 'chat.completion.chunk',
        prompt_token_ids: [1],
        kv_transfer_params: null,
        choices: [{ index: 0, delta: {}, token_ids: [2], logprobs: null, finish_reason: null }],
      }),
      keepsModel: true,
    }
    const { out, screen } = throughScreen([
      {
        tokens: 1,
        frame,
        beside: { service_tier: 'default', debug: 'ada@x.org' },
        choices: [
          {
            index: 0,
            content: 'Hi. ',
            finishReason: null,
            logprobs: { content: [{ token: 'ada@x.org' }] },
            extra: { annotations: [], reasoning_details: [{ text: 'ada@x.org' }] },
            beside: { token_ids: [2] },
          },
        ],
      },
    ])
    expect(out).toEqual([
      { tokens: 1, beside: { service_tier: 'default' }, choices: [{ index: 0, content: 'Hi. ', finishReason: null }] },
    ])
    expect([...screen!.dropped].sort()).toEqual([
      'debug',
      'logprobs',
      'prompt_token_ids',
      'reasoning_details',
      'token_ids',
    ])
  })

  it('is no key in the name of a member or in the reason to finish', () => {
    const { out, screen } = throughScreen([
      {
        tokens: 1,
        choices: [
          {
            index: 0,
            content: 'Hi.',
            finishReason: '4111111111111111',
            extra: { AKIAZ7QNW3RXK5TLM2VB: 1, told_why: 1 },
          },
        ],
      },
    ])
    expect(out.flatMap(({ choices = [] }) => choices.map(({ finishReason }) => finishReason))).toContain('stop')
    expect(JSON.stringify(out)).not.toContain('4111')
    expect(screen!.dropped).toEqual(['other', 'told_why'])
  })

  it('tells an engine’s numbers and none of its words', () => {
    const { screen } = throughScreen([])
    const told = {
      source: {
        json: '{"usage":{"total_tokens":3,"why":"ada@x.org","details":{"reasoning_tokens":1,"n":4111111111111111,"p4111111111111111":1}},"x":"ada@x.org"}',
        keepsModel: true,
      },
      isAlone: true,
      promptTokens: 1,
      cachedTokens: 0,
      outputTokens: 2,
    }
    const { told: closed } = screen!.closing({ promptTokens: 1, cachedTokens: 0, outputTokens: 2, told })
    expect(JSON.parse(closed!.source.json)).toEqual({
      choices: [],
      usage: { total_tokens: 3, details: { reasoning_tokens: 1 } },
    })
  })

  it('a refusal that quotes the prompt is screened, and gives the client its own values back', () => {
    const { screen } = throughScreen([], {}, OWN_VALUES)
    const refusal = {
      code: 'replica-rejected-request',
      because: 'x',
      blame: 'request',
      retryAfterUs: undefined,
      told: { status: 400, error: { message: 'bad: <EMAIL_3f> ada@x.org', param: 4111111111111111 } },
      kept: { status: 400, contentType: 'text/plain', body: 'bad: ada@x.org' },
    } as const
    expect(screen!.refusal(refusal)).toMatchObject({
      told: { error: { message: 'bad: own"1"@x.org <EMAIL>', param: '<CARD>' } },
      kept: { body: 'bad: <EMAIL>' },
    })
  })
})
