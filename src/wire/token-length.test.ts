import { describe, expect, it } from 'vitest'
import { TokenLength, TokenLengths } from './token-length.ts'

const of = (bytesPerToken: number, frameTokens = 8) => ({
  bytes: 100 * bytesPerToken,
  frames: 100 / frameTokens,
  tokens: 100,
})

describe('how long tokens are', () => {
  it('is a guess until an answer tells', () => {
    const known = new TokenLength()
    expect([known.isKnown, known.bytesPerToken, known.isTokenPerFrame]).toEqual([false, 4.5, false])
    known.observe(of(3))
    expect([known.isKnown, known.bytesPerToken]).toEqual([true, 3])
  })

  it('is what most of the last answers say, whatever a few of them say', () => {
    const known = new TokenLength()
    for (let i = 0; i < 40; i++) known.observe(of(i % 4 === 3 ? 20 : 4))
    expect(known.bytesPerToken).toBe(4)
  })

  it('follows an engine that changes, after as many answers as it remembers', () => {
    const known = new TokenLength({ samplesMax: 5, bytesPerToken: 4.5 })
    for (let i = 0; i < 50; i++) known.observe(of(4, 1))
    expect(known.isTokenPerFrame).toBe(true)
    for (let i = 0; i < 3; i++) known.observe(of(6, 4))
    expect(known.bytesPerToken).toBeCloseTo(6)
    expect(known.isTokenPerFrame).toBe(false)
  })

  it('is not learned from short answers, nor from what no text can be', () => {
    const known = new TokenLength()
    known.observe({ bytes: 20, frames: 4, tokens: 4 })
    known.observe({ bytes: 100, frames: 10, tokens: 101 })
    known.observe({ bytes: 10_000, frames: 10, tokens: 10 })
    expect(known.isKnown).toBe(false)
  })

  it('tells what a text can be', () => {
    const known = new TokenLength()
    expect([400, 401, 7, 6].map((tokens) => known.canBe(400, tokens))).toEqual([true, false, true, false])
    known.observe(of(4))
    expect([400, 100, 25, 24].map((tokens) => known.canBe(400, tokens))).toEqual([true, true, true, false])
  })
})

describe('the models of one server', () => {
  it('are told apart, and the oldest is forgotten', () => {
    const lengths = new TokenLengths(2)
    lengths.of('a').observe(of(3))
    expect([lengths.of('a').isKnown, lengths.of('b').isKnown]).toEqual([true, false])
    lengths.of('c')
    expect(lengths.size).toBe(2)
    expect(lengths.of('a').isKnown).toBe(false)
  })
})
