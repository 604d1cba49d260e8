import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { KeywordAutomaton } from './keyword-automaton.ts'

const found = (words: readonly string[], text: string): string[] => {
  const automaton = new KeywordAutomaton(words)
  const all: string[] = []
  for (let word = automaton.start(text, { from: 0, to: text.length }); word >= 0; word = automaton.next())
    all.push(`${words[word]}@${automaton.end}`)
  return all
}

describe('KeywordAutomaton', () => {
  it('finds words inside of words, in any case', () => {
    expect(found(['he', 'she', 'hers', 'his'], 'uSHErs')).toEqual(['she@4', 'he@4', 'hers@6'])
  })

  it('reads only the stretch that it was given', () => {
    const automaton = new KeywordAutomaton(['key'])
    expect(automaton.start('a key', { from: 3, to: 5 })).toBe(-1)
    expect(automaton.start('a key', { from: 2, to: 5 })).toBe(0)
  })

  it('finds what a search for each word finds', () => {
    const word = fc.array(fc.constantFrom('a', 'b', '-'), { minLength: 1, maxLength: 4 }).map((units) => units.join(''))
    const text = fc.array(fc.constantFrom('a', 'b', '-', 'x', 'é'), { maxLength: 20 }).map((units) => units.join(''))
    fc.assert(
      fc.property(fc.uniqueArray(word, { minLength: 1, maxLength: 5 }), text, (words, where) => {
        const naive: string[] = []
        for (const each of words)
          for (let at = where.indexOf(each); at >= 0; at = where.indexOf(each, at + 1))
            naive.push(`${each}@${at + each.length}`)
        expect(found(words, where).sort()).toEqual(naive.sort())
      }),
    )
  })
})
