import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cutAt } from '../../test/support/cuts.ts'
import type { ScreenAction } from '../domain/screening.ts'
import { FindingTally } from './findings.ts'
import { HELD_LENGTH_MAX, SentenceHold } from './sentence-hold.ts'

const judge = (action: ScreenAction, asked: string[] = []) => ({
  screen: 'toxicity' as const,
  category: 'toxicity',
  action,
  scoreMin: 0.5,
  score: (text: string) => {
    asked.push(text)
    return text.includes('darn') ? 0.9 : 0
  },
})

function through(pieces: readonly string[], tokensMax: number | undefined, action: ScreenAction = 'flag') {
  const tally = new FindingTally('output')
  const asked: string[] = []
  const hold = new SentenceHold([judge(action, asked)], tally, tokensMax)
  const parts: string[] = []
  let most = 0
  for (const piece of pieces) {
    parts.push(hold.push(piece))
    most = Math.max(most, hold.heldLength)
  }
  parts.push(hold.flush())
  return { text: parts.join(''), parts: parts.filter((part) => part !== ''), asked, findings: tally.list, most, tally }
}

describe('an answer that is judged', () => {
  it('goes out sentence by sentence', () => {
    const text = 'One. Two? "Three!" Four is 3.14 long… 五。六'
    expect(through(text.split(''), 64).parts).toEqual([
      'One. ',
      'Two? ',
      '"Three!" ',
      'Four is 3.14 long… ',
      '五。',
      '六',
    ])
  })

  it('goes out in parts where a sentence is too long, each judged with what was said before it', () => {
    const { parts, asked, findings } = through('aa bb cc da'.concat('rn dd ee ff').split(''), 2)
    expect(parts.every((part) => part.length <= 9)).toBe(true)
    expect(asked.at(-1)).toBe('aa bb cc darn ')
    expect(findings).toMatchObject([{ count: 1, score: 0.9, action: 'flag' }])
  })

  it('is cut by its letters alone', () => {
    const words = fc.constantFrom('darn', 'a', ' ', '. ', '!', '\n', '12345', '😀', '。', 'word ')
    const tokens = fc.constantFrom(1, 4, 16, undefined)
    fc.assert(
      fc.property(fc.array(words), fc.array(fc.nat(300)), tokens, (parts, cuts, tokensMax) => {
        const text = parts.join('')
        const whole = through([text], tokensMax)
        const pieces = through(cutAt(text, cuts), tokensMax)
        expect(pieces.text).toBe(text)
        expect(pieces.asked).toEqual(whole.asked)
        expect(pieces.findings).toEqual(whole.findings)
      }),
    )
  })

  it('ends before the sentence that is blocked', () => {
    const { text, tally } = through(['Well. You ', 'darn', ' fool. Bye.'], 64, 'block')
    expect(text).toBe('Well. ')
    expect(tally.blockedBy).toMatchObject({ action: 'block', count: 1 })
  })

  it('is held whole where the policy wants that, up to a bound', () => {
    const { parts, asked } = through(['One. ', 'Two. ', 'Three.'], undefined)
    expect(parts).toEqual(['One. Two. Three.'])
    expect(asked).toEqual(['One. Two. Three.'])
    const piece = 'x'.repeat(1 << 20)
    expect(
      through(
        Array.from({ length: 6 }, () => piece),
        undefined,
      ).most,
    ).toBeLessThanOrEqual(HELD_LENGTH_MAX)
  })

  it('takes time by its length, whatever it is', () => {
    const long = 'x'.repeat(1 << 18)
    expect(through([long], 4).text).toBe(long)
  })
})
