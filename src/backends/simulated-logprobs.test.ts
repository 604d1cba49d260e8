import { describe, expect, it } from 'vitest'
import type { LogprobsWish } from '../wire/logprobs.ts'
import { loadO200kTokenizer } from './o200k-tokenizer.ts'
import { makeSimulatedLogprobs } from './simulated-logprobs.ts'
import { encodeWhole, piecesOf, type Tokenizer } from './tokenizer.ts'

const tokenizer = await loadO200kTokenizer()
const told = (text: string, from: Tokenizer = tokenizer) => {
  const tokens = encodeWhole(from, text)
  return { tokens, pieces: piecesOf(from, tokens) }
}

interface Entry {
  readonly token: string
  readonly logprob: number
  readonly bytes: readonly number[]
  readonly top_logprobs: ReadonlyArray<{ readonly token: string; readonly logprob: number }>
}

const CHAT: LogprobsWish = { shape: 'chat', topCount: 5 }
const TEXT = '𓂀 A weir holds the wäter 🌊 lëvel.'

function entriesOf(seedName: string, wish = CHAT, answer = told(TEXT)): Entry[] {
  const between = makeSimulatedLogprobs({ tokenizer, wish, seedName, answer, echoed: undefined })
  return (between(0, answer.tokens.length) as { content: Entry[] }).content
}

describe('simulated log probabilities', () => {
  it('are the same for the same seed, and others for another', () => {
    expect(entriesOf('a')).toEqual(entriesOf('a'))
    expect(entriesOf('a')).not.toEqual(entriesOf('b'))
  })

  it('have the form of true ones', () => {
    for (const { logprob, token, top_logprobs: top } of entriesOf('a', { shape: 'chat', topCount: 20 })) {
      expect(top).toHaveLength(20)
      expect(top[0]).toMatchObject({ token, logprob })
      const logprobs = top.map((one) => one.logprob)
      expect(logprobs).toEqual(logprobs.toSorted((a, b) => b - a))
      expect(logprobs.reduce((sum, one) => sum + Math.exp(one), 0)).toBeLessThanOrEqual(1)
    }
  })

  it('spell the text by their bytes, also where a character has several tokens', () => {
    const entries = entriesOf('a')
    expect(Buffer.from(entries.flatMap(({ bytes }) => bytes)).toString()).toBe(TEXT)
    expect(entries.some(({ token }) => /^bytes:(\\x[0-9a-f]{2})+$/.test(token))).toBe(true)
  })

  it('have no alternatives where none are wanted', () => {
    for (const { top_logprobs: top } of entriesOf('a', { shape: 'chat', topCount: 0 })) expect(top).toEqual([])
  })

  it('are the same in pieces', () => {
    const answer = told(TEXT)
    const between = makeSimulatedLogprobs({ tokenizer, wish: CHAT, seedName: 'a', answer, echoed: undefined })
    const pieces = answer.tokens.flatMap((_, i) => (between(i, i + 1) as { content: Entry[] }).content)
    expect(pieces).toEqual(entriesOf('a'))
  })

  it('end where the text ends, at a stop sequence', () => {
    const answer = told('one two three')
    const pieces = answer.pieces.map((piece, i) => (i === 0 ? piece : ''))
    expect(entriesOf('a', CHAT, { ...answer, pieces })).toHaveLength(1)
  })

  it('begin with an echoed prompt, whose first token follows on nothing', () => {
    const echoed = told('Whät is')
    const answer = told(' a weir?')
    const wish: LogprobsWish = { shape: 'completion', topCount: 2 }
    const between = makeSimulatedLogprobs({ tokenizer, wish, seedName: 'a', answer, echoed })
    const first = between(0, 1) as Record<string, unknown[]>
    expect(first['tokens']?.join('')).toBe('Whät is a')
    expect(first['token_logprobs']?.[0]).toBeNull()
    expect(first['token_logprobs']?.slice(1).every((one) => typeof one === 'number')).toBe(true)
    const second = between(1, 2) as Record<string, unknown[]>
    expect(second['text_offset']).toEqual(['Whät is a'.length])
  })

  it('end with a vocabulary that has hardly any token', () => {
    const tiny: Tokenizer = {
      ...tokenizer,
      has: (token) => token === 1,
      bytesOf: () => Buffer.from('x'),
      encode: () => [1],
    }
    const answer = { tokens: [1], pieces: ['x'] }
    const between = makeSimulatedLogprobs({ tokenizer: tiny, wish: CHAT, seedName: 'a', answer, echoed: undefined })
    expect((between(0, 1) as { content: Entry[] }).content[0]?.top_logprobs).toHaveLength(1)
  })
})
