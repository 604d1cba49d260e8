import { describe, expect, it } from 'vitest'
import { loadNameTagger } from './fs-name-tagger.ts'
import { NAME_FEATURE_BITS, readNameTokens } from './name-features.ts'
import { decodeNameWeights, encodeNameWeights } from './name-file.ts'
import { bestTags, mayFollow, NameTagger, TAG_COUNT } from './name-tagger.ts'

const tagger = loadNameTagger()
const foundIn = (text: string): string[] =>
  tagger.find(text).map(({ category, start, end }) => `${category}: ${text.slice(start, end)}`)

const rowCount = TAG_COUNT << NAME_FEATURE_BITS
const stepCount = (TAG_COUNT + 1) * TAG_COUNT

describe('the tagger of names', () => {
  it('finds names and addresses where they stand as they mostly do', () => {
    expect(foundIn('My name is Anna Schmidt, and I have a question.')).toEqual(['person: Anna Schmidt'])
    expect(foundIn('Please deliver the parcel to 27 Mill Lane, and call Peter Brown.')).toEqual([
      'address: 27 Mill Lane',
      'person: Peter Brown',
    ])
  })

  it('leaves ordinary questions, code and single words alone', () => {
    for (const text of [
      'What is the capital of France?',
      'Write a function that sorts a list in Python.',
      'const total = items.map((item) => item.price)',
      'Anna',
      '',
    ])
      expect(foundIn(text), text).toEqual([])
  })

  it('sees through characters without width, and gives the place in the text as it was', () => {
    expect(foundIn('My name is An\u200bna Schmidt, and I have a question.')).toEqual(['person: An\u200bna Schmidt'])
  })

  it('never crosses what ends a string, and takes no bare number out of JSON', () => {
    const eager = new NameTagger(eagerWeights())
    const texts = ['{"first": "Anna Maria", "zip": 43015, "t": [1, 2]}', '["Mill Lane", "Peter", 12]']
    for (const text of texts) {
      const spans = eager.find(text)
      expect(spans.length).toBeGreaterThan(0)
      let cut = text
      for (const { start, end } of spans.toReversed()) cut = `${cut.slice(0, start)}<X>${cut.slice(end)}`
      expect(() => JSON.parse(cut) as unknown, cut).not.toThrow()
    }
    // The same weights take everything in prose.
    expect(eager.find('Anna is 12 today').map(({ start, end }) => [start, end])).toEqual([[0, 16]])
  })

  it('only goes on with what has begun', () => {
    const random = seededWeights()
    for (const text of ['One two three four five 6 7 8.', 'a b c d e f g h i j', 'Mr. X, 9 "Y" Z']) {
      let before = 0
      for (const tag of bestTags(readNameTokens(text), random)) {
        expect(mayFollow(before, tag)).toBe(true)
        before = tag
      }
    }
  })

  it('has at most one token for each character, whatever the text is', () => {
    // A row of one long word, of single letters, and of marks: each unit is looked at a fixed number of times.
    for (const text of ['a'.repeat(200_000), 'A '.repeat(50_000), '"'.repeat(50_000)])
      expect(readNameTokens(text).count).toBeLessThanOrEqual(text.length)
    expect(tagger.find('x'.repeat(200_000))).toEqual([])
  })

  it('keeps weights as bytes, and refuses others', () => {
    const rows = new Float64Array(rowCount)
    const steps = new Float64Array(stepCount)
    rows[5] = 2
    rows[6] = -1
    steps[7] = 100
    const decoded = decodeNameWeights(encodeNameWeights(rows, steps))
    expect([decoded.rows[5], decoded.rows[6], decoded.rows[8]]).toEqual([127, -127, 0])
    expect(decoded.steps[7]).toBe(127)
    const bytes = encodeNameWeights(rows, steps)
    expect(() => decodeNameWeights(bytes.subarray(1))).toThrow('no weights of the tagger')
    bytes[0] = 0
    expect(() => decodeNameWeights(bytes)).toThrow('no weights of the tagger')
  })
})

/** Weights that make a person of everything that may be one. */
function eagerWeights(): { rows: Float64Array; steps: Float64Array } {
  const rows = new Float64Array(rowCount)
  for (let row = 0; row < rowCount; row += TAG_COUNT) {
    rows[row + 1] = 100
    rows[row + 2] = 110
  }
  return { rows, steps: new Float64Array(stepCount) }
}

function seededWeights(): { rows: Float64Array; steps: Float64Array } {
  let state = 7
  const next = (): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % 255
  }
  return { rows: new Float64Array(rowCount).map(next), steps: new Float64Array(stepCount).map(next) }
}
