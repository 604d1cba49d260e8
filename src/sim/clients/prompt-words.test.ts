import { encode } from 'gpt-tokenizer/encoding/o200k_base'
import { expect, it } from 'vitest'
import type { Request } from '../../domain/request.ts'
import { PromptWords } from './prompt-words.ts'

const words = new PromptWords(1)
const request = (id: string, tokens: readonly number[], prefixHashes: readonly number[] = []): Request =>
  ({
    id,
    prefixHashes,
    segments: tokens.map((count, i) => ({ role: i === 0 ? 'system' : 'user', tokens: count })),
  }) as unknown as Request
const textsOf = (asked: Request): string[] =>
  (JSON.parse(words.messages(asked)) as Array<{ content: string }>).map(({ content }) => content)

it.each([1, 10, 100, 1_000, 30_000])('%i words are about as many tokens', (count) => {
  const tokens = encode(words.take(12_345, count)).length
  // Full stops are tokens too: one in twelve words has one.
  expect(tokens).toBeGreaterThanOrEqual(count)
  expect(tokens).toBeLessThanOrEqual(count * 1.1 + 1)
})

it('goes round the ring: no word is cut, no blank doubled', () => {
  const text = words.take((1 << 17) - 3, (1 << 17) + 10)
  expect(text.split(' ')).toHaveLength((1 << 17) + 10)
  expect(text).toMatch(/^[a-z]+(\.? [a-z]+)*\.?$/)
})

it('makes JSON messages; shared beginnings are the same text, everything else is not', () => {
  const [a, b, c, d] = [
    request('a', [100, 50], [1, 2, 3, 4, 5, 6, 7]),
    request('b', [100, 50], [1, 2, 3, 4, 5, 6, 7]),
    request('c', [100, 50], [9]),
    request('d', [100, 50], [1, 2]),
  ].map(textsOf)
  expect(a?.[0]).toBe(b?.[0])
  expect(a?.[1]).not.toBe(b?.[1])
  expect(a?.[0]?.slice(0, 20)).not.toBe(c?.[0]?.slice(0, 20))
  // Two blocks of sixteen tokens are shared, and no more.
  const sharedWords = a![0]!.split(' ').findIndex((word, i) => word !== d![0]!.split(' ')[i])
  expect(sharedWords).toBeGreaterThanOrEqual(28)
  expect(sharedWords).toBeLessThan(34)
})

it('keeps the wanted number of tokens, whatever is shared', () => {
  for (const hashes of [[], Array.from({ length: 60 }, (_, i) => i)]) {
    const tokens = textsOf(request('a', [400, 600], hashes)).reduce((sum, text) => sum + encode(text).length, 0)
    expect(Math.abs(tokens - 1_000)).toBeLessThan(50)
  }
})
