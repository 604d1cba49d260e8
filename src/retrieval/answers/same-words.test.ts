import { describe, expect, it } from 'vitest'
import { hasSameWords, wordsOf } from './same-words.ts'

const areSame = (a: string, b: string): boolean => hasSameWords(wordsOf(a), wordsOf(b))

describe('two questions speak of the same things', () => {
  it.each([
    ['Does aspirin help against headaches?', 'Please tell me: does aspirin help against headache'],
    ['Which shelf holds the atlas of rivers?', 'rivers: which shelf holds the atlas of them'],
    ['Is glaucoma inherited?', 'Is galucoma inherited?'],
    ['Is the follow-up needed?', 'is the follow up needed'],
  ])('%s / %s', (a, b) => expect(areSame(a, b)).toBe(true))
})

describe('two questions speak of different things', () => {
  it.each([
    ['Is glaucoma inherited?', 'Is asthma inherited?'],
    ['Is glaucoma inherited?', 'Is it inherited?'],
    ['Is the form correct?', 'Is the frmo correct?'],
    ['Does vitamin C help?', 'Does vitamin D help?'],
    ['Is hypertension a risk?', 'Is hypotension a risk?'],
    ['Does aspirin help?', 'Does aspirin help against migraine?'],
  ])('%s / %s', (a, b) => expect(areSame(a, b)).toBe(false))
})
