import { describe, expect, it } from 'vitest'
import { marksOf, shelfOf } from './shelf.ts'

const ask = {
  tenantId: 'acme',
  releaseId: 'sim@1',
  promptVersion: 'v1',
  corpusVersion: 'vs_1@3/5',
  question: 'Does aspirin at 100 mg help?',
}

describe('a shelf', () => {
  it('is the same for other words with the same marks', () => {
    expect(shelfOf({ ...ask, question: 'Is aspirin helpful at 100 mg?' })).toEqual(shelfOf(ask))
  })

  it.each([
    ['tenant', { tenantId: 'globex' }],
    ['release', { releaseId: 'sim@2' }],
    ['prompt version', { promptVersion: 'v2' }],
    ['corpus version', { corpusVersion: 'vs_1@4/5' }],
    ['number', { question: 'Does aspirin at 1000 mg help?' }],
    ['negation', { question: 'Does aspirin at 100 mg not help?' }],
    ['direction', { question: 'Does aspirin at 100 mg help more?' }],
  ])('is another one for another %s', (_, change) => {
    expect(shelfOf({ ...ask, ...change }).name).not.toBe(shelfOf(ask).name)
  })

  it('cannot be named by moving text from one part to another', () => {
    const moved = { ...ask, releaseId: 'sim@1v', promptVersion: '1' }
    expect(shelfOf(moved).name).not.toBe(shelfOf(ask).name)
    expect(shelfOf({ ...ask, tenantId: 'acm', releaseId: 'esim@1' }).name).not.toBe(shelfOf(ask).name)
  })
})

describe('the marks of a question', () => {
  it.each([
    ['Does it increase the risk?', 'Does it decrease the risk?'],
    ['Did the rate rise before 2019?', 'Did the rate rise after 2019?'],
    ["Isn't it safe?", 'Is it safe?'],
    ['Is 5% enough?', 'Is 5 enough?'],
    ['Is it better in men?', 'Is it better in women?'],
    ['How do I enable it?', 'How do I disable it?'],
  ])('differ: %s / %s', (a, b) => expect(marksOf(a)).not.toBe(marksOf(b)))

  it.each([
    ['Does it increase the risk?', 'Is the risk increased by it?'],
    ['1,000 patients?', 'patients: 1000?'],
    ['What is a heat pump?', 'Tell me what a heat pump is'],
  ])('are the same: %s / %s', (a, b) => expect(marksOf(a)).toBe(marksOf(b)))
})
