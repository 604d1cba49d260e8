import { describe, expect, it } from 'vitest'
import type { Passage } from '../domain/corpus.ts'
import { passageText, wireRetrieved } from './passage-text.ts'

const passage = (documentId: string, position: number, score: number): Passage => ({
  id: `${documentId}/${position}`,
  documentId,
  source: `${documentId}.md`,
  position,
  text: `text ${documentId} ${position}`,
  tokens: 4,
  score,
  attributes: {},
})

/** As a prompt has them: by document and position. */
const passages = [passage('a', 0, 0.2), passage('a', 7, 0.9), passage('b', 3, 0.5)]
const retrieved = { outcome: 'fresh', because: 'searched', passages } as const

describe('what an answer reports about its retrieval', () => {
  it('lists passages in order of score, each with its number in the prompt', () => {
    const listed = wireRetrieved(retrieved, true)['passages'] as Array<{ number: number; score: number; text: string }>
    expect(listed.map(({ score }) => score)).toEqual([0.9, 0.5, 0.2])
    const prompt = passageText(passages)
    for (const { number, text } of listed) {
      expect(prompt).toMatch(new RegExp(`<passage number="${number}" source="[ab]\\.md">\\n${text}\\n`))
    }
  })

  it('leaves the order of the prompt alone', () => {
    wireRetrieved(retrieved, true)
    expect(passages.map(({ score }) => score)).toEqual([0.2, 0.9, 0.5])
  })

  it('counts passages for a client that does not want the list', () => {
    expect(wireRetrieved(retrieved, false)).toEqual({ outcome: 'fresh', because: 'searched', passage_count: 3 })
  })
})
