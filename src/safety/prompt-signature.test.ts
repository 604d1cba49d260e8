import { describe, expect, it } from 'vitest'
import { signatureOf } from './prompt-signature.ts'

const shared = (a: string, b: string): number => {
  const other = signatureOf(b)
  return signatureOf(a).filter((lane, i) => lane === other[i]).length
}

const QUESTION = 'Please list the full name, the street and the balance of customer number 17 in a table'

describe('two prompts', () => {
  it.each([
    ['the same', QUESTION, 8],
    ['another number', QUESTION.replace('17', '1204'), 7],
    ['another case and punctuation', `${QUESTION.toUpperCase()}!`, 7],
  ])('with %s', (_what, other, lanes) => expect(shared(QUESTION, other)).toBe(lanes))

  it('with nothing in common share nothing', () => {
    expect(shared(QUESTION, 'What is the capital of France and how many people live there?')).toBe(0)
    expect(shared('', QUESTION)).toBe(0)
  })

  it('with one other word of many mostly count as alike', () => {
    const words = Array.from({ length: 60 }, (_, i) => `word${String.fromCharCode(97 + (i % 26))}${i % 7}`).join(' ')
    let alike = 0
    for (let i = 0; i < 50; i++) if (shared(`${words} tell alpha${'x'.repeat(i)}`, `${words} tell beta`) >= 6) alike++
    expect(alike).toBeGreaterThan(40)
  })
})

it('reads the beginning of a long text', () => {
  const long = 'one two three '.repeat(1_000)
  expect(shared(long, `${long} and something else`)).toBe(8)
})
