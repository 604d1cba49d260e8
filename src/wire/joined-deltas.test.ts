import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ChoiceDelta } from '../domain/delta.ts'
import { JoinedDeltas } from './joined-deltas.ts'

const joined = (...deltas: readonly ChoiceDelta[]): ChoiceDelta[] => {
  const all = new JoinedDeltas()
  for (const delta of deltas) all.add({ tokens: 1, choices: [delta] })
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

  it('keep what frames say beside their deltas, and what is ours apart', () => {
    const all = new JoinedDeltas()
    const frame = (more: object, choice: object, keepsModel = true) => ({
      json: JSON.stringify({ id: 'x', object: 'chunk', model: 'm-1', usage: { a: 1 }, ...more, choices: [choice] }),
      keepsModel,
    })
    const role = { choices: [said({ content: '' })], frame: frame({ created: 7 }, { index: 0, delta: {} }) }
    all.add({ tokens: 1, ahead: [role], choices: [said({ content: 'a' })], frame: frame({ tier: null }, { index: 0 }) })
    const last = { index: 0, delta: { content: 'b' }, finish_reason: 'stop', stop_reason: 13 }
    all.add({
      tokens: 1,
      choices: [said({ content: 'b', finishReason: 'stop' })],
      frame: frame({ tier: 'flex' }, last),
    })
    expect(all.whole()).toEqual([{ index: 0, content: 'ab', finishReason: 'stop', beside: { stop_reason: 13 } }])
    expect([all.beside, all.hasFrames]).toEqual([{ model: 'm-1', created: 7, tier: 'flex' }, true])
    const renamed = new JoinedDeltas()
    renamed.add({ tokens: 1, choices: [], frame: frame({}, { index: 0 }, false) })
    expect(renamed.beside).toBeUndefined()
  })

  it('take whatever JSON an engine says, change nothing that was given, and count its size', () => {
    const extra = fc.dictionary(fc.string(), fc.jsonValue())
    fc.assert(
      fc.property(fc.array(extra, { maxLength: 6 }), (list) => {
        const before = structuredClone(list)
        const all = new JoinedDeltas()
        for (const one of list) all.add({ tokens: 1, choices: [said({ extra: one })] })
        expect(list).toEqual(before)
        expect(() => JSON.stringify(all.whole())).not.toThrow()
        expect(all.size).toBe(list.reduce((sum, one) => sum + JSON.stringify(one).length, 0))
      }),
    )
  })
})
