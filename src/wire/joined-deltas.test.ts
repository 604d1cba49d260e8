import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ChoiceDelta } from '../domain/delta.ts'
import { JoinedDeltas } from './joined-deltas.ts'

const joined = (...deltas: readonly ChoiceDelta[]): ChoiceDelta[] => {
  const all = new JoinedDeltas()
  for (const delta of deltas) all.add([delta])
  return all.whole()
}

const said = (more: Partial<ChoiceDelta>): ChoiceDelta => ({ index: 0, content: null, finishReason: null, ...more })

describe('joined deltas', () => {
  it('pass an answer of one piece on as it is', () => {
    const whole = said({
      content: 'x',
      finishReason: 'stop',
      extra: { tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{}' } }], refusal: 'no' },
      logprobs: { content: [{ token: 'x' }] },
    })
    expect(joined(whole)).toEqual([whole])
  })

  it('append texts of every kind, choice by choice, in the order of the choices', () => {
    const all = joined(
      said({ index: 1, content: 'b1' }),
      said({ content: 'a1', extra: { reasoning_content: 'r1' } }),
      said({ index: 1, content: 'b2', finishReason: 'length' }),
      said({ content: 'a2', extra: { reasoning_content: 'r2' }, finishReason: 'stop' }),
    )
    expect(all).toEqual([
      { index: 0, content: 'a1a2', finishReason: 'stop', extra: { reasoning_content: 'r1r2' } },
      { index: 1, content: 'b1b2', finishReason: 'length' },
    ])
  })

  it('join calls of tools by index, with names that are repeated or empty later', () => {
    const call = (index: number, more: object): ChoiceDelta => said({ extra: { tool_calls: [{ index, ...more }] } })
    const [choice] = joined(
      call(0, { id: 'c0', type: 'function', function: { name: 'f', arguments: '{"a"' } }),
      call(1, { id: 'c1', type: 'function', function: { name: 'g', arguments: '' } }),
      call(0, { id: 'c0', type: 'function', function: { name: '', arguments: ':1}' } }),
      call(1, { function: { name: null, arguments: '{}' } }),
    )
    expect(choice?.extra).toEqual({
      tool_calls: [
        { index: 0, id: 'c0', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
        { index: 1, id: 'c1', type: 'function', function: { name: 'g', arguments: '{}' } },
      ],
    })
  })

  it('lengthen lists of log probabilities', () => {
    const [choice] = joined(
      said({ logprobs: { content: [{ token: 'a', logprob: -1 }], refusal: null } }),
      said({ logprobs: { content: [{ token: 'b', logprob: -2 }], refusal: null } }),
    )
    expect(choice?.logprobs).toEqual({
      content: [
        { token: 'a', logprob: -1 },
        { token: 'b', logprob: -2 },
      ],
      refusal: null,
    })
  })

  it('take whatever JSON an engine says, change nothing that was given, and count its size', () => {
    const extra = fc.dictionary(fc.string(), fc.jsonValue())
    fc.assert(
      fc.property(fc.array(extra, { maxLength: 6 }), (list) => {
        const before = structuredClone(list)
        const all = new JoinedDeltas()
        for (const one of list) all.add([said({ extra: one })])
        expect(list).toEqual(before)
        expect(() => JSON.stringify(all.whole())).not.toThrow()
        expect(all.size).toBe(list.reduce((sum, one) => sum + JSON.stringify(one).length, 0))
      }),
    )
  })
})
