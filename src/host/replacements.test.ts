import { describe, expect, it } from 'vitest'
import { Replacements } from './replacements.ts'

const SECOND = 1_000_000

describe('when a process is replaced', () => {
  it('at once after a useful life', () => {
    expect(new Replacements().ended(60 * SECOND, 0, 1)).toEqual({ kind: 'start', afterUs: 0 })
  })

  it('with doubling pauses up to half a minute while others serve, for ever', () => {
    const replacements = new Replacements()
    const pauses = Array.from({ length: 12 }, () => {
      const next = replacements.ended(0, undefined, 1)
      return next.kind === 'start' ? next.afterUs / SECOND : next.kind
    })
    expect(pauses).toEqual([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30, 30])
  })

  it('not again when nobody serves and each dies young', () => {
    const replacements = new Replacements()
    const kinds = Array.from({ length: 6 }, () => replacements.ended(SECOND, 0, 0).kind)
    expect(kinds).toEqual(['start', 'start', 'start', 'start', 'start', 'give-up'])
  })

  it('as before after one that lived', () => {
    const replacements = new Replacements()
    for (let i = 0; i < 5; i++) replacements.ended(0, undefined, 0)
    replacements.ended(60 * SECOND, 0, 0)
    expect(replacements.ended(0, undefined, 0)).toEqual({ kind: 'start', afterUs: 0.1 * SECOND })
  })
})
