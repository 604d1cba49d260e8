import { describe, expect, it } from 'vitest'
import { CALL_ROUTES } from '../domain/key-terms.ts'
import { TRANSIT_WAYS, transitBody, transitUsage } from './transit.ts'

const estimateTokens = (text: string): number => text.length
const priceOf = (path: string, fields: Record<string, unknown>, bytes?: number): readonly number[] =>
  TRANSIT_WAYS.find((way) => way.path === path)!.price({ fields, bytes, estimateTokens })
const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0)

describe('the price of a transit', () => {
  it.each([
    ['speech is its text', '/v1/audio/speech', { input: 'x'.repeat(50) }, 100, 51],
    ['a recording is its KiB', '/v1/audio/transcriptions', {}, 10_240, 10],
    ['a recording of unknown size is 8 MiB', '/v1/audio/translations', {}, undefined, 8_192],
    ['pictures are a thousand each', '/v1/images/generations', { prompt: 'abcde', n: 3 }, 100, 3_005],
    ['pictures of a form are counted by its field', '/v1/images/edits', { prompt: 'abcde', n: '2' }, 2_048, 2_007],
    ['a wrong number of pictures is one', '/v1/images/generations', { n: 'many' }, 100, 1_001],
    ['pairs have the query each', '/v1/rerank', { query: 'ab', documents: ['abc', 'abcd'] }, 100, 11],
    ['documents may be objects', '/v1/rerank', { query: 'ab', documents: [{ a: 1 }] }, 100, 9],
    ['a score is a pair', '/v1/score', { text_1: 'ab', text_2: 'abc' }, 100, 5],
    ['tokens are their KiB', '/tokenize', { prompt: 'x'.repeat(5_000) }, 5_020, 5],
  ])('%s', (_what, path, fields, bytes, tokens) => {
    expect(sum(priceOf(path, fields, bytes))).toBe(tokens)
  })

  it('is bounded in its rows, not in its sum', () => {
    const documents = Array.from({ length: 10_000 }, () => 'abc')
    const price = priceOf('/v1/rerank', { query: 'ab', documents })
    expect(price.length).toBeLessThan(3_000)
    expect(sum(price)).toBe(50_000)
  })

  it('is one at least, whatever is missing', () => {
    for (const way of TRANSIT_WAYS) expect(sum(priceOf(way.path, {}, 0)), way.path).toBeGreaterThanOrEqual(1)
  })
})

describe('the ways', () => {
  it('have each a path of their own, and a route that a key can be limited to', () => {
    expect(new Set(TRANSIT_WAYS.map(({ path }) => path)).size).toBe(TRANSIT_WAYS.length)
    for (const { route } of TRANSIT_WAYS) expect(CALL_ROUTES).toContain(route)
  })
})

describe('a body', () => {
  it('is sent as it came, unless the model has another name', () => {
    const bytes = Buffer.from('{"model":"a", "x":1.0}')
    expect(transitBody(bytes, { model: 'a', x: 1 }, 'a')).toBe(bytes)
    expect(JSON.parse(String(transitBody(bytes, { model: 'a', x: 1 }, 'b')))).toEqual({ model: 'b', x: 1 })
  })
})

describe('what an engine used', () => {
  it.each([
    [{ usage: { total_tokens: 7, prompt_tokens: 3 } }, 7],
    [{ usage: { input_tokens: 7, output_tokens: 3 } }, 10],
    [{ usage: { type: 'duration', seconds: 3 } }, undefined],
    [{ usage: { total_tokens: -1 } }, undefined],
    [{ usage: { total_tokens: 1e300 } }, undefined],
    [{ usage: 'many' }, undefined],
    [[], undefined],
    [null, undefined],
  ])('%j is %s', (json, tokens) => {
    expect(transitUsage(json)).toBe(tokens)
  })
})
