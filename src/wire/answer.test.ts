import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checked } from '../../test/support/openai-shapes.ts'
import { framesIn, textIn } from '../../test/support/sse-frames.ts'
import type { ChoiceDelta } from '../domain/delta.ts'
import { StreamEncoder, WholeAnswer } from './answer.ts'
import type { AnswerIdentity } from './dialect.ts'

const identity: AnswerIdentity = {
  kind: 'chat',
  id: 'chatcmpl-1',
  createdAtS: 1_800_000_000,
  model: 'm "quoted" \u2028',
  includesUsage: false,
}
const usage = { promptTokens: 10, cachedTokens: 4, outputTokens: 3 }
const says = (index: number, content: string | null, finishReason: string | null = null): ChoiceDelta => ({
  index,
  content,
  finishReason,
})

const encode = (deltas: readonly ChoiceDelta[], more: Partial<AnswerIdentity> = {}): string => {
  const encoder = new StreamEncoder({ ...identity, ...more })
  return deltas.map((delta) => encoder.chunk([delta])).join('') + encoder.end(usage)
}

const anyText = fc.string({ unit: 'binary', maxLength: 20 })
const anyDeltas = fc.array(fc.tuple(fc.nat(40), anyText), { maxLength: 12 })

describe('a stream', () => {
  it.each(['chat', 'completion'] as const)('of any text is valid frames that add up to it (%s)', (kind) => {
    fc.assert(
      fc.property(anyDeltas, fc.boolean(), (spoken, includesUsage) => {
        const deltas = spoken.map(([index, content]) => says(index, content))
        const frames = framesIn(encode(deltas, { kind, includesUsage }))
        for (const frame of frames) checked(kind === 'chat' ? 'chatChunk' : 'completionChunk', frame)
        for (const index of new Set(deltas.map((delta) => delta.index))) {
          const expected = deltas.filter((delta) => delta.index === index).map((delta) => delta.content)
          expect(textIn(frames, index)).toBe(expected.join(''))
        }
        expect(frames).toHaveLength(deltas.length + (includesUsage ? 1 : 0))
      }),
    )
  })

  it('gives the role once per choice, with its first delta, however many choices', () => {
    const indexes = Array.from({ length: 70 }, (_, i) => i)
    const frames = framesIn(encode([...indexes, ...indexes].map((index) => says(index, 'x'))))
    const roles = frames.map((frame) => frame.choices![0]!.delta!.role)
    expect(roles).toEqual([...indexes.map(() => 'assistant'), ...indexes.map(() => undefined)])
  })

  it('passes on what it does not know', () => {
    const deltas: ChoiceDelta[] = [
      { ...says(0, null), extra: { tool_calls: [{ index: 0 }], reasoning: 'Hm.' } },
      { ...says(0, 'x'), logprobs: { content: [] } },
      says(0, null, 'tool_calls'),
    ]
    expect(framesIn(encode(deltas)).map((frame) => frame.choices![0])).toEqual([
      {
        index: 0,
        delta: { role: 'assistant', tool_calls: [{ index: 0 }], reasoning: 'Hm.' },
        logprobs: null,
        finish_reason: null,
      },
      { index: 0, delta: { content: 'x' }, logprobs: { content: [] }, finish_reason: null },
      { index: 0, delta: {}, logprobs: null, finish_reason: 'tool_calls' },
    ])
  })
})

describe('a whole answer', () => {
  it('is what the stream would have said', () => {
    fc.assert(
      fc.property(anyDeltas, (spoken) => {
        const deltas = spoken.map(([index, content]) => says(index, content))
        const whole = new WholeAnswer(identity)
        for (const delta of deltas) whole.add([delta])
        const answer = JSON.parse(whole.encode(usage)) as {
          choices: Array<{ index: number; message: { content: string } }>
        }
        checked('chat', answer)
        const frames = framesIn(encode(deltas))
        for (const { index, message } of answer.choices) expect(message.content).toBe(textIn(frames, index))
        expect(answer.choices.map((choice) => choice.index)).toEqual(
          [...new Set(deltas.map((delta) => delta.index))].toSorted((a, b) => a - b),
        )
      }),
    )
  })

  it('has usage with details, and what a rung adds', () => {
    const whole = new WholeAnswer({ ...identity, kind: 'completion' })
    whole.add([says(0, 'x', 'stop')])
    expect(checked('completion', JSON.parse(whole.encode(usage, { rung: 'cap' })))).toMatchObject({
      usage: { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13, prompt_tokens_details: { cached_tokens: 4 } },
      spillway: { rung: 'cap' },
    })
  })
})
