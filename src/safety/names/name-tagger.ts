import type { EntitySpan } from '../../domain/screening.ts'
import { normalise, originalPlace } from '../normalise.ts'
import { NAME_FEATURES, type NameTokens, nameFeaturesOf, readNameTokens } from './name-features.ts'

/**
 * Names of persons and postal addresses, by a tagger: each token is outside, begins a finding or goes on with one, and
 * the best row of tags for the whole text is looked for (Viterbi). The weights are those of an averaged perceptron. It
 * is weak (docs/operations/entities.md has the figures): it finds what stands as names do in the texts that it was
 * trained on, and knows nothing of the world.
 */
export const NAME_TAGS = ['outside', 'begin person', 'in person', 'begin address', 'in address'] as const
export const TAG_COUNT = NAME_TAGS.length

/** A tag that only goes on may follow these. */
export const mayFollow = (before: number, tag: number): boolean =>
  (tag !== 2 && tag !== 4) || before === tag || before === tag - 1

export interface NameWeights {
  /** `TAG_COUNT` for each row of features. */
  readonly rows: Int8Array | Float64Array
  /** From one tag (or, last, from the beginning of the text) to the next. */
  readonly steps: Int8Array | Float64Array
}

const IMPOSSIBLE = -1e15

/** The best tags for a text. */
export function bestTags(tokens: NameTokens, { rows, steps }: NameWeights): Uint8Array {
  const { count } = tokens
  const tags = new Uint8Array(count)
  const from = new Uint8Array(count * TAG_COUNT)
  const features = new Int32Array(NAME_FEATURES)
  let scores = new Float64Array(TAG_COUNT)
  let next = new Float64Array(TAG_COUNT)
  const here = new Float64Array(TAG_COUNT)
  for (let i = 0; i < count; i++) {
    nameFeaturesOf(tokens, i, features)
    here.fill(0)
    for (const feature of features)
      for (let tag = 0; tag < TAG_COUNT; tag++)
        here[tag] = (here[tag] as number) + (rows[feature * TAG_COUNT + tag] as number)
    for (let tag = 0; tag < TAG_COUNT; tag++) {
      let best = IMPOSSIBLE
      for (let before = 0; before < TAG_COUNT; before++) {
        // The text begins as if something outside stood before it.
        if (!mayFollow(before, tag) || (i === 0 && before > 0)) continue
        const step = steps[(i === 0 ? TAG_COUNT : before) * TAG_COUNT + tag] as number
        const score = (i === 0 ? 0 : (scores[before] as number)) + step
        if (score <= best) continue
        best = score
        from[i * TAG_COUNT + tag] = before
      }
      next[tag] = tokens.breaks[i] === true && tag > 0 ? IMPOSSIBLE : best + (here[tag] as number)
    }
    const done = scores
    scores = next
    next = done
  }
  let tag = 0
  for (let other = 1; other < TAG_COUNT; other++) if ((scores[other] as number) > (scores[tag] as number)) tag = other
  for (let i = count - 1; i >= 0; i--) {
    tags[i] = tag
    tag = from[i * TAG_COUNT + tag] as number
  }
  return tags
}

const NOTHING: readonly EntitySpan[] = []
const BEGINNINGS = [1, 3] as const
/** Points that a finding has to be better by than none: a name more costs several texts that have none. */
const CAUTION = 150
const LETTER = /\p{L}/u

export class NameTagger {
  readonly #weights: NameWeights

  constructor({ rows, steps }: NameWeights) {
    const careful = Float64Array.from(steps)
    for (let before = 0; before <= TAG_COUNT; before++)
      for (const tag of BEGINNINGS)
        careful[before * TAG_COUNT + tag] = (steps[before * TAG_COUNT + tag] as number) - CAUTION
    this.#weights = { rows, steps: careful }
  }

  /** Sorted, without overlaps. A text of one word has no neighbours to tell a name by, and is left alone. */
  find(given: string): readonly EntitySpan[] {
    const normalised = normalise(given)
    const { text } = normalised
    const tokens = readNameTokens(text)
    if (tokens.count < 2) return NOTHING
    const tags = bestTags(tokens, this.#weights)
    const spans: EntitySpan[] = []
    // In JSON a number cannot be cut out by itself.
    const needsLetter = /^\s*[{[]/.test(text)
    for (let i = 0; i < tokens.count; i++) {
      const tag = tags[i] as number
      if (tag === 0) continue
      let last = i
      while (last + 1 < tokens.count && tags[last + 1] === tag + 1) last++
      const start = tokens.starts[i] as number
      const end = tokens.ends[last] as number
      i = last
      if (needsLetter && !LETTER.test(text.slice(start, end))) continue
      const category = tag < 3 ? 'person' : 'address'
      spans.push({ screen: 'names', category, ...originalPlace(normalised, { start, end }) })
    }
    return spans
  }
}
