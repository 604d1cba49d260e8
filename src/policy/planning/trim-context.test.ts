import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Segment } from '../../domain/request.ts'
import { trimContext } from './trim-context.ts'

const half = { contextRatioMax: 0.5, contextTokensFloor: 0 }

/** 's200 u100 a400' → segments. */
function parse(script: string): Segment[] {
  const roles = { s: 'system', u: 'user', a: 'assistant', t: 'tool', p: 'passage' } as const
  return script.split(' ').map((word) => ({
    role: roles[word[0] as keyof typeof roles],
    tokens: Number(word.slice(1)),
  }))
}

const keptOf = (script: string, terms = half): string => trimContext(parse(script), terms).indices.join(' ')

describe('trim context', () => {
  it.each([
    ['keeps what fits', 's10 u10', { contextRatioMax: 1, contextTokensFloor: 0 }, '0 1'],
    ['does not touch short prompts', 's10 u10 a10 u10', { contextRatioMax: 0.1, contextTokensFloor: 512 }, '0 1 2 3'],
    ['drops the oldest turns whole', 's200 u100 a400 u50 a250 u80', half, '0 5'],
    ['keeps the newest that fit', 's100 u100 a100 u100 a100 u100 a100 u100', half, '0 5 6 7'],
    ['keeps a turn’s tool call with its result', 's10 u500 a500 t500 u100 a50 t50 u90', half, '0 4 5 6 7'],
    ['keeps everything after the last question', 'u900 a900 u100 a10 t10', half, '2 3 4'],
    ['keeps system prompts wherever they stand', 'u500 s50 a500 u500 s10 a400 u100', half, '1 4 6'],
    ['keeps what must stay even when it is too much', 's900 u100 a100 u900', half, '0 3'],
    ['keeps the last of a prompt without users', 's10 a500 a500 a10', half, '0 3'],
    ['keeps a single message whole', 'u5000', half, '0'],
  ])('%s', (_, script, terms, kept) => {
    expect(keptOf(script, terms)).toBe(kept)
  })

  it('always keeps system prompts and the last turn, in order, and counts right', () => {
    const segment = fc.record({
      role: fc.constantFrom<Segment['role']>('system', 'user', 'assistant', 'tool', 'passage'),
      tokens: fc.nat(2_000),
    })
    fc.assert(
      fc.property(
        fc.array(segment, { minLength: 1, maxLength: 30 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (segments, contextRatioMax) => {
          const kept = trimContext(segments, { contextRatioMax, contextTokensFloor: 100 })
          const lastTurn = segments.findLastIndex((s) => s.role === 'user')
          const mustStay = segments.flatMap((s, i) =>
            s.role === 'system' || i === segments.length - 1 || (lastTurn >= 0 && i >= lastTurn) ? [i] : [],
          )
          expect(kept.indices).toEqual(expect.arrayContaining(mustStay))
          expect(kept.indices).toEqual(kept.indices.toSorted((a, b) => a - b))
          expect(kept.segments).toEqual(kept.indices.map((i) => segments[i]))
          expect(kept.tokens).toBe(kept.segments.reduce((sum, s) => sum + s.tokens, 0))
          expect(kept.leadingTokens).toBeLessThanOrEqual(kept.tokens)
        },
      ),
    )
  })
})
