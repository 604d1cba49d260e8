import { describe, expect, it } from 'vitest'
import { Rng } from '../base/rng.ts'
import { AnswerMaterial, type SourceText, sentencesOf } from './extract-answer.ts'

const DOC = 'Weirs are low. A spillway lets water pass a dam. Concrete is common.'

function firstSentences(source: readonly SourceText[], count: number, choice = 0, seed = 1): string[] {
  const sentences = new AnswerMaterial(source).sentences(Rng.stream(seed, 'test'), choice)
  return Array.from({ length: count }, () => sentences.next().value)
}

const asked = (text: string): SourceText => ({ role: 'user', text })
const told = (text: string): SourceText => ({ role: 'system', text })

describe('an extractive answer', () => {
  it('begins with the sentence that shares most words with the question, and echoes the question last', () => {
    const said = firstSentences([told(DOC), asked('What is a spillway of a dam for?')], 4)
    expect(said).toEqual([
      'A spillway lets water pass a dam.',
      'Weirs are low.',
      'Concrete is common.',
      'What is a spillway of a dam for?',
    ])
  })

  it('goes on without end, never saying a sentence twice in a row', () => {
    const said = firstSentences([asked('Hello there.')], 300)
    expect(said.every((sentence, i) => sentence !== said[i - 1])).toBe(true)
    expect(new Set(said).size).toBeGreaterThan(5)
  })

  it('differs from choice to choice, and repeats for a seed', () => {
    const source = [asked(DOC)]
    expect(firstSentences(source, 20, 1)).toEqual(firstSentences(source, 20, 1))
    expect(firstSentences(source, 20, 1)).not.toEqual(firstSentences(source, 20, 0))
    expect(firstSentences(source, 20, 0, 2).slice(3)).not.toEqual(firstSentences(source, 20, 0, 1).slice(3))
  })

  it('says so when there is no text', () => {
    expect(firstSentences([asked(' \n ')], 1)).toEqual(['The prompt has no text to answer from.'])
  })

  it.each([
    ['one per full stop', 'One. Two! Three? Four', ['One.', 'Two!', 'Three?', 'Four.']],
    ['numbers and quotes stay whole', 'It rose 3.5 m. "Open it." He did.', ['It rose 3.5 m.', '"Open it."', 'He did.']],
    ['lists and headings', '# Dams\n- tall\n* old (very)\n> quoted', ['Dams.', 'tall.', 'old (very)', 'quoted.']],
    ['blanks', '  a\t b\r\n\r\n c  ', ['a b.', 'c.']],
    ['Chinese', '水满了。开闸吗？开！', ['水满了。', '开闸吗？', '开！']],
    ['repeated ones once', 'Ha. Ha. Ha.', ['Ha.']],
    ['nothing to say', '--- *** ...', []],
    ['half a surrogate pair', 'a\ud83d b.', ['a\ufffd b.']],
  ])('splits sentences: %s', (_, text, sentences) => {
    expect(sentencesOf(text)).toEqual(sentences)
  })

  it.each([
    ['at a comma', `${'long clause without end, '.repeat(40)}done.`],
    ['at a blank', 'word '.repeat(300)],
    ['anywhere', '🌊x'.repeat(500)],
  ])('breaks overlong lines up %s, losing nothing', (_, text) => {
    const parts = sentencesOf(text)
    expect(parts.every((part) => part.length <= 301 && part.isWellFormed())).toBe(true)
    expect(parts.length).toBeGreaterThan(0)
  })
})
