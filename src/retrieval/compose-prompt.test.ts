import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Passage } from '../domain/corpus.ts'
import { composePassages } from './compose-prompt.ts'

const passage = (documentId: string, position: number, tokens: number, score: number): Passage => ({
  id: `${documentId}/${position}`,
  documentId,
  source: documentId,
  position,
  text: 'word '.repeat(tokens).trim(),
  tokens,
  score,
  attributes: {},
})

describe('composing', () => {
  it('takes the best that fit, in the order of their documents', () => {
    const ranked = [passage('b', 1, 50, 0.9), passage('a', 0, 60, 0.8), passage('b', 0, 20, 0.7)]
    const chosen = composePassages(ranked, { passagesMax: 5, tokensMax: 80 })
    expect(chosen.map(({ id }) => id)).toEqual(['b/0', 'b/1'])
  })

  it('cuts the best one when even that is too long', () => {
    const [cut] = composePassages([passage('a', 0, 100, 1)], { passagesMax: 1, tokensMax: 30 })
    expect(cut!.tokens).toBe(30)
    expect(cut!.text.split(' ').length).toBeLessThanOrEqual(31)
  })

  it('gives the same prefix to questions that find the same passages', () => {
    const found = [passage('a', 0, 5, 1), passage('b', 0, 5, 0.5), passage('c', 2, 5, 0.1)]
    const bounds = { passagesMax: 3, tokensMax: 100 }
    const ids = (order: readonly Passage[]): string[] => composePassages(order, bounds).map(({ id }) => id)
    expect(ids(found)).toEqual(ids(found.toReversed()))
  })

  it('keeps its bounds', () => {
    const any = fc.tuple(
      fc.constantFrom('a', 'b'),
      fc.nat(9),
      fc.integer({ min: 1, max: 99 }),
      fc.double({ min: 0, max: 1 }),
    )
    fc.assert(
      fc.property(fc.array(any), fc.nat(10), fc.nat(300), (drafts, passagesMax, tokensMax) => {
        const chosen = composePassages(
          drafts.map((draft) => passage(...draft)),
          { passagesMax, tokensMax },
        )
        expect(chosen.length).toBeLessThanOrEqual(passagesMax)
        expect(chosen.reduce((sum, { tokens }) => sum + tokens, 0)).toBeLessThanOrEqual(tokensMax)
      }),
    )
  })
})
