import { describe, expect, it } from 'vitest'
import { englishTokens } from '../../test/support/framed-engine.ts'
import type { ChoiceDelta } from '../domain/delta.ts'
import { FrameTokens } from './frame-tokens.ts'
import { TokenLength } from './token-length.ts'

const text = (content: string, index = 0): ChoiceDelta => ({ index, content, finishReason: null })
const extra = (fields: Record<string, unknown>): ChoiceDelta => ({
  index: 0,
  content: null,
  finishReason: null,
  extra: fields,
})
const END: ChoiceDelta = { index: 0, content: '', finishReason: 'stop' }

const counter = (
  known = new TokenLength(),
  over: { tokensMax?: number; choiceCount?: number; isEchoed?: boolean } = {},
) => new FrameTokens(known, { tokensMax: 10_000, choiceCount: 1, ...over })

/** Knows that a token has so many bytes, in frames of eight. */
function knows(bytesPerToken: number, frameTokens = 8): TokenLength {
  const known = new TokenLength()
  known.observe({ bytes: 800 * bytesPerToken, frames: 800 / frameTokens, tokens: 800 })
  return known
}

/** The words, gathered into frames of so many. */
function framesOf(tokens: readonly string[], size: number): string[] {
  return Array.from({ length: Math.ceil(tokens.length / size) }, (_, i) =>
    tokens.slice(i * size, (i + 1) * size).join(''),
  )
}

describe('tokens of a frame, before anything is known', () => {
  it.each([1, 4, 8, 32])('frames of %i are about as many tokens as there are', (size) => {
    const frames = counter()
    for (const frame of framesOf(englishTokens(320), size)) frames.count([text(frame)])
    expect(Math.abs(frames.counted - 320)).toBeLessThan(16)
  })

  it('the first text is a token at least, and an empty frame none', () => {
    const frames = counter()
    expect(frames.count([text('')])).toBe(0)
    expect(frames.count([text('a')])).toBe(1)
    expect(frames.count([END])).toBe(0)
  })

  it('counts each choice of a frame', () => {
    const frames = counter(new TokenLength(), { choiceCount: 2 })
    expect(frames.count([text('one'), text('two', 1)])).toBe(2)
  })
})

describe('tokens of a frame, by what is known', () => {
  it('carries parts of tokens to the next frame', () => {
    const frames = counter(knows(4))
    expect([5, 36, 31].map((bytes) => frames.count([text('x'.repeat(bytes))]))).toEqual([1, 9, 8])
    expect([1, 1, 1, 1].map((bytes) => frames.count([text('x'.repeat(bytes))]))).toEqual([0, 0, 0, 1])
  })

  it('counts frames where a frame is a token, however long', () => {
    const frames = counter(knows(4, 1))
    expect(['a', ' considerable', ' amount'].map((word) => frames.count([text(word)]))).toEqual([1, 1, 1])
  })

  it('counts bytes, not characters', () => {
    expect(counter(knows(3)).count([text('水坝泄洪')])).toBe(4)
    for (const said of ['é', 'aé水🌊', '水🌊é'.repeat(30)]) {
      expect(counter(knows(1)).count([text(said)])).toBe(Buffer.byteLength(said))
    }
  })

  it.each([
    ['reasoning', { reasoning_content: 'x'.repeat(40) }, 10],
    ['reasoning under both names', { reasoning_content: 'x'.repeat(40), reasoning: 'x'.repeat(40) }, 10],
    ['a refusal', { refusal: 'x'.repeat(40) }, 10],
    ['an older call', { function_call: { name: 'look', arguments: 'x'.repeat(36) } }, 10],
    ['calls, without their ids', { tool_calls: [callOf('look', 16), callOf('send', 16)] }, 10],
    ['a call that is no call', { tool_calls: [null, 'x', { function: 3 }] }, 1],
  ])('counts the text of %s', (_, fields, tokens) => {
    expect(counter(knows(4)).count([extra(fields)])).toBe(tokens)
  })

  it('never passes what was asked for', () => {
    const frames = counter(knows(4), { tokensMax: 10 })
    expect([frames.count([text('x'.repeat(36))]), frames.count([text('x'.repeat(36))])]).toEqual([9, 1])
  })
})

function callOf(name: string, bytes: number): object {
  return { id: `call_${'9'.repeat(40)}`, type: 'function', function: { name, arguments: 'x'.repeat(bytes) } }
}

describe('the engine’s own count', () => {
  it('of a frame comes before all others', () => {
    expect(counter(knows(4)).count([text('x'.repeat(40))], { tokens: 3, running: 7 })).toBe(3)
  })

  it('of the answer so far is held against what was counted', () => {
    const frames = counter(knows(4))
    expect([1, 9, 17].map((running) => frames.count([text('words')], { running }))).toEqual([1, 8, 8])
  })

  it('that comes with the last frame alone is the count of them all', () => {
    const frames = counter(knows(4))
    frames.count([text('x'.repeat(40))])
    expect(frames.count([text('x'.repeat(40))], { running: 23 })).toBe(13)
  })

  it.each([
    ['stands still', [0, 0, 0]],
    ['is that of each frame', [8, 8, 8]],
  ])('that %s is no count of the answer', (_, counts) => {
    const frames = counter(knows(4))
    for (const running of counts) frames.count([text('x'.repeat(32))], { running })
    expect(frames.counted).toBe(24)
  })

  it('of one choice among several is none', () => {
    expect(counter(knows(4), { choiceCount: 2 }).count([text('x'.repeat(8))], { running: 100 })).toBe(2)
  })

  it.each([
    ['chat', { content: [{}, {}, {}] }],
    ['completions', { tokens: ['a', 'b', 'c'] }],
  ])('by its log probabilities: %s', (_, logprobs) => {
    expect(counter(knows(4)).count([{ ...text('x'), logprobs }])).toBe(3)
    expect(counter(knows(4)).count([{ ...text('x'.repeat(20)), logprobs: {} }])).toBe(5)
  })
})

describe('the count at the end', () => {
  /** An answer of 100 tokens of 3 bytes in frames of 10; tokens of 4 bytes were expected. */
  function answered(known: TokenLength): FrameTokens {
    const frames = counter(known)
    for (let i = 0; i < 10; i++) frames.count([text('x'.repeat(30))])
    frames.count([END])
    return frames
  }

  it('corrects the guesses, without the end, which has no text', () => {
    const known = knows(4)
    const frames = answered(known)
    expect(frames.counted).toBe(75)
    expect(frames.end({ tokens: 101 })).toBe(100)
  })

  it('teaches how long tokens are', () => {
    const known = new TokenLength()
    answered(known).end({ tokens: 101 })
    expect([known.bytesPerToken, known.isTokenPerFrame]).toEqual([3, false])
    const again = counter(known)
    expect(again.count([text('x'.repeat(30))])).toBe(10)
  })

  it('says nothing new where frames are tokens, counted with the end or without', () => {
    const known = new TokenLength()
    for (const tokens of [20, 21]) {
      const frames = counter(known)
      for (const word of englishTokens(20)) frames.count([text(word)])
      frames.count([END])
      expect(frames.end({ tokens })).toBeUndefined()
    }
    expect(known.isTokenPerFrame).toBe(true)
  })

  it('takes off reasoning that was not streamed, and only that', () => {
    expect(answered(knows(4)).end({ tokens: 301, reasoningTokens: 200 })).toBe(100)
    const streamed = counter(knows(4))
    streamed.count([extra({ reasoning_content: 'x'.repeat(300) })])
    expect(streamed.end({ tokens: 100, reasoningTokens: 90 })).toBe(100)
  })

  it.each([0, 1, 302, 1_000_000])('is not believed when it says %i', (tokens) => {
    const known = knows(4)
    expect(answered(known).end({ tokens })).toBeUndefined()
    expect(known.bytesPerToken).toBe(4)
  })

  it('corrects nothing that the engine had counted frame by frame', () => {
    const frames = counter()
    frames.count([text('words of reason')], { running: 90 })
    expect(frames.end({ tokens: 98, reasoningTokens: 88 })).toBeUndefined()
  })

  it('learns nothing of frames from an answer in one piece', () => {
    const known = new TokenLength()
    const frames = counter(known)
    frames.count([text('x'.repeat(30))], { tokens: 10 })
    frames.end({ tokens: 10, isOnePiece: true })
    expect([known.bytesPerToken, known.isTokenPerFrame]).toEqual([3, false])
  })

  it('learns nothing from an echoed prompt', () => {
    const known = new TokenLength()
    const frames = counter(known, { isEchoed: true })
    expect(frames.count([text('a long prompt, and one token')])).toBe(1)
    expect(frames.end({ tokens: 10 })).toBeUndefined()
    expect(known.isKnown).toBe(false)
  })
})
