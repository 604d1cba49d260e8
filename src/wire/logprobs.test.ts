import { describe, expect, it } from 'vitest'
import { joinLogprobs, logprobsWish, simulatedLogprobs, type TokenChance } from './logprobs.ts'
import type { ChatBody, CompletionBody } from './schemas.ts'

const chance = (token: string, logprob: number | undefined, offset: number): TokenChance => ({
  token,
  bytes: [...Buffer.from(token)],
  logprob,
  alternatives: logprob === undefined ? [] : [{ token, bytes: [], logprob }],
  offset,
})

describe('what a client wants to know', () => {
  it.each([
    [
      { messages: [], logprobs: true },
      { shape: 'chat', topCount: 0 },
    ],
    [
      { messages: [], logprobs: true, top_logprobs: 5 },
      { shape: 'chat', topCount: 5 },
    ],
    [{ messages: [], top_logprobs: 5 }, undefined],
    [
      { prompt: 'x', logprobs: 0 },
      { shape: 'completion', topCount: 0 },
    ],
    [{ prompt: 'x', logprobs: null }, undefined],
  ])('of %j is %j', (body, wish) => {
    expect(logprobsWish({ model: 'm', ...body } as ChatBody | CompletionBody)).toEqual(wish)
  })
})

describe('log probabilities', () => {
  const chances = [chance('a', undefined, 0), chance('b', -0.5, 1)]

  it('of a chat are entries, and say that they are simulated', () => {
    expect(simulatedLogprobs({ shape: 'chat', topCount: 1 }, [chance('b', -0.5, 1)])).toEqual({
      content: [{ token: 'b', logprob: -0.5, bytes: [98], top_logprobs: [{ token: 'b', logprob: -0.5, bytes: [] }] }],
      refusal: null,
      spillway: { simulated: true },
    })
  })

  it('of a completion are lists side by side; the first token of a prompt has none', () => {
    expect(simulatedLogprobs({ shape: 'completion', topCount: 1 }, chances)).toEqual({
      tokens: ['a', 'b'],
      token_logprobs: [null, -0.5],
      top_logprobs: [null, { b: -0.5 }],
      text_offset: [0, 1],
      spillway: { simulated: true },
    })
    expect(simulatedLogprobs({ shape: 'completion', topCount: 0 }, chances)).toMatchObject({ top_logprobs: null })
  })

  it('of pieces are joined to those of the whole, and the pieces stay as they were', () => {
    const wish = { shape: 'completion', topCount: 1 } as const
    const pieces = chances.map((one) => simulatedLogprobs(wish, [one]))
    const before = JSON.stringify(pieces)
    const joined = pieces.reduce<unknown>(joinLogprobs, null)
    expect(joined).toEqual(simulatedLogprobs(wish, chances))
    expect(JSON.stringify(pieces)).toBe(before)
  })

  it('that an engine sends in a shape of its own are kept', () => {
    expect(joinLogprobs(undefined, 'odd')).toBe('odd')
    expect(joinLogprobs({ content: [1] }, null)).toEqual({ content: [1] })
    expect(joinLogprobs({ content: [1], refusal: null }, { content: [2], refusal: [3], more: 4 })).toEqual({
      content: [1, 2],
      refusal: [3],
      more: 4,
    })
    expect(joinLogprobs({ content: [1] }, { content: null })).toEqual({ content: [1] })
  })
})
