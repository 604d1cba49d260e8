import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cutAt } from '../../test/support/cuts.ts'
import { PLACEHOLDER_LENGTH_MAX, RestoringHold } from './restoring-hold.ts'

const VALUES: Readonly<Record<string, string>> = { '<EMAIL_3f>': 'ada@x.org', '<CARD_00ff>': '<B>' }
const hold = () => new RestoringHold({ valueOf: (name) => (Object.hasOwn(VALUES, name) ? VALUES[name] : undefined) })

function through(pieces: readonly string[]): { out: string; kept: string } {
  const restoring = hold()
  let out = ''
  let kept = ''
  for (const piece of pieces) {
    out += restoring.push(piece)
    kept += restoring.kept
  }
  out += restoring.flush()
  return { out, kept: kept + restoring.kept }
}

describe('placeholders in an answer', () => {
  it.each([
    ['Write to <EMAIL_3f>.', 'Write to ada@x.org.'],
    ['<EMAIL_3f><EMAIL_3f>', 'ada@x.orgada@x.org'],
    ['<<EMAIL_3f>>', '<ada@x.org>'],
    ['a < b and <EMAIL_99> and <EMAIL_3f', 'a < b and <EMAIL_99> and <EMAIL_3f'],
    ['<CARD_00ff>', '<B>'],
    ['<div class="x"> 1<2', '<div class="x"> 1<2'],
  ])('%s → %s, whatever the cut; stores keep it as it was', (text, wanted) => {
    for (let at = 0; at <= text.length; at++)
      expect(through([text.slice(0, at), text.slice(at)])).toEqual({ out: wanted, kept: text })
    expect(through(text.split(''))).toEqual({ out: wanted, kept: text })
  })

  it('are the same over any cut of any text', () => {
    const words = fc.constantFrom(
      '<EMAIL_3f>',
      '<CARD_00ff>',
      '<EMAIL_',
      '<',
      '>',
      'A',
      'a',
      ' ',
      '3f>',
      '<X'.repeat(40),
    )
    fc.assert(
      fc.property(fc.array(words, { maxLength: 12 }), fc.array(fc.nat(200), { maxLength: 20 }), (parts, cuts) => {
        const text = parts.join('')
        expect(through(cutAt(text, cuts))).toEqual(through([text]))
        expect(through([text]).kept).toBe(text)
      }),
    )
  })

  it('holds no more than a placeholder can have', () => {
    const restoring = hold()
    expect(restoring.push(`<${'A'.repeat(PLACEHOLDER_LENGTH_MAX - 2)}`)).toBe('')
    expect(restoring.heldLength).toBe(PLACEHOLDER_LENGTH_MAX - 1)
    expect(restoring.push('AA')).not.toBe('')
    expect(restoring.heldLength).toBe(0)
    expect(restoring.push('plain')).toBe('plain')
  })
})
