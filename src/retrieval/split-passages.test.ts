import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SPLIT_DEFAULTS, splitPassages } from './split-passages.ts'

const words = (text: string): string[] => text.split(/\s+/).filter(Boolean)

describe('splitting', () => {
  it('keeps a short text whole', () => {
    expect(splitPassages('One sentence. And another.')).toEqual(['One sentence. And another.'])
    expect(splitPassages('  \n\n ')).toEqual([])
  })

  it('begins at headings, and repeats them', () => {
    const text = '# Travel\n\n## Pets\nSmall ones may fly.\n\n## Bags\nOne is free.'
    expect(splitPassages(text)).toEqual(['Travel', 'Travel › Pets\nSmall ones may fly.', 'Travel › Bags\nOne is free.'])
  })

  it('does not take a comment in code for a heading', () => {
    expect(splitPassages('```sh\n# not a heading\n\nls\n```')).toHaveLength(1)
  })

  it('carries the last sentence over a cut', () => {
    const sentence = (n: number): string => `Sentence number ${n} says something of its own.`
    const text = Array.from({ length: 40 }, (_, i) => sentence(i)).join(' ')
    const passages = splitPassages(text)
    expect(passages.length).toBeGreaterThan(2)
    for (let i = 1; i < passages.length; i++) {
      const last = passages[i - 1]!.match(/Sentence number \d+ says something of its own\.$/)![0]
      expect(passages[i]!.startsWith(last)).toBe(true)
    }
  })

  it('loses no word, keeps its bound, and repeats itself exactly', () => {
    const piece = fc.oneof(
      fc.string({ maxLength: 60 }),
      fc.constantFrom(
        '# Heading\n',
        '\n\n',
        '```\n',
        'A sentence. ',
        '\n',
        'x'.repeat(900),
        '日本語の文章。',
        '😀'.repeat(50),
      ),
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const text = pieces.join('')
        const passages = splitPassages(text)
        expect(splitPassages(text)).toEqual(passages)
        for (const passage of passages) expect(passage.length).toBeLessThanOrEqual(SPLIT_DEFAULTS.charactersMax)
        const kept = passages.join('').replace(/\s+/g, '')
        for (const word of words(text)) {
          // Marks of headings go; words longer than a passage are cut.
          const bare = word.replace(/^#+|#+$/g, '')
          if (bare.length <= 40) expect(kept).toContain(bare)
        }
      }),
      { numRuns: 200 },
    )
  })
})
