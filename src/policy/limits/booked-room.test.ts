import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Estimate } from '../../domain/plan.ts'
import { BookedRoom, beyondTokensOf, kvTokensOf } from './booked-room.ts'

const answer = (promptTokens: number, outputTokens: number, outputTokensHigh: number): Estimate => ({
  promptTokens,
  outputTokens,
  outputTokensHigh,
  cachedTokens: 0,
  cost: 1,
  engineUs: 1,
})

const REASONING = answer(500, 2_000, 6_000)

function roomOf(count: number, estimate: Estimate): BookedRoom {
  const room = new BookedRoom()
  for (let i = 0; i < count; i++) room.add(estimate)
  return room
}

describe('booked room', () => {
  test('one answer books what it may become, many together much less', () => {
    expect(roomOf(1, REASONING).tokens).toBe(6_500)
    expect(roomOf(16, REASONING).tokens).toBe(40_000 + 16_000)
    expect(roomOf(15, REASONING).tokensWith(REASONING)).toBe(56_000)
  })

  test('short answers, and those of a known length, book all of it', () => {
    expect(roomOf(16, answer(500, 200, 1_024)).tokens).toBe(16 * 1_524)
    expect(roomOf(16, answer(500, 8_000, 8_000)).tokens).toBe(16 * 8_500)
  })

  test('an answer that grows takes from its doubt first', () => {
    const room = roomOf(16, REASONING)
    room.grow(REASONING, 0, 1_000)
    expect(room.tokens).toBe(41_000 + Math.ceil(Math.sqrt(15 * 4_000 ** 2 + 3_000 ** 2)))
    expect(beyondTokensOf(REASONING, 1_000)).toBe(0)
    room.grow(REASONING, 1_000, 4_000)
    expect(room.tokens).toBe(45_000 + Math.ceil(Math.sqrt(15 * 4_000 ** 2)))
    expect(beyondTokensOf(REASONING, 5_000)).toBe(1_000)
  })

  test('what it would be without some is what it is when they are gone', () => {
    const room = roomOf(5, REASONING)
    const off = new BookedRoom()
    off.add(REASONING)
    off.add(REASONING, 700)
    room.grow(REASONING, 0, 700)
    const without = room.tokensWith(REASONING, off)
    room.remove(REASONING, 700)
    room.remove(REASONING, 0)
    expect(room.tokensWith(REASONING)).toBe(without)
  })
})

const drawn = fc.record({
  prompt: fc.nat(5_000),
  output: fc.nat(8_000),
  more: fc.nat(20_000),
  steps: fc.array(fc.nat(3_000), { maxLength: 4 }),
})

describe('booked room, whatever runs', () => {
  const estimateOf = ({ prompt, output, more }: { prompt: number; output: number; more: number }): Estimate =>
    answer(prompt, output, output + more)

  test('is at least what each holds and what any one may become, and at most what all may become', () => {
    fc.assert(
      fc.property(fc.array(drawn, { minLength: 1 }), (works) => {
        const room = new BookedRoom()
        let held = 0
        let most = 0
        let largestDoubt = 0
        for (const work of works) {
          const estimate = estimateOf(work)
          const grown = work.steps.reduce((sum, step) => sum + step, 0)
          expect(room.tokensWith(estimate)).toBeGreaterThanOrEqual(room.tokens + work.prompt + work.output)
          room.add(estimate)
          let before = 0
          for (const step of work.steps) {
            const atMost = room.tokens + step
            const atLeast = room.tokens
            room.grow(estimate, before, step)
            before += step
            expect(room.tokens).toBeGreaterThanOrEqual(atLeast)
            expect(room.tokens).toBeLessThanOrEqual(atMost)
          }
          held += work.prompt + work.output + grown
          most += kvTokensOf(estimate) + beyondTokensOf(estimate, grown)
          largestDoubt = Math.max(largestDoubt, kvTokensOf(estimate) - work.prompt - work.output - grown)
        }
        expect(room.tokens).toBeGreaterThanOrEqual(held + largestDoubt)
        expect(room.tokens).toBeLessThanOrEqual(most)
        room.assertInvariants()
      }),
    )
  })

  test('gives back exactly what was booked, in any order', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(drawn, fc.boolean())), (works) => {
        const room = new BookedRoom()
        const kept = new BookedRoom()
        for (const [work] of works) room.add(estimateOf(work))
        for (const [work, isKept] of works) {
          const grown = work.steps.reduce((sum, step) => sum + step, 0)
          room.grow(estimateOf(work), 0, grown)
          if (isKept) kept.add(estimateOf(work), grown)
          else room.remove(estimateOf(work), grown)
        }
        expect([room.tokens, room.grantedTokens]).toEqual([kept.tokens, kept.grantedTokens])
        for (const [work, isKept] of works)
          if (isKept)
            room.remove(
              estimateOf(work),
              work.steps.reduce((sum, step) => sum + step, 0),
            )
        expect(room.isEmpty).toBe(true)
      }),
    )
  })
})
