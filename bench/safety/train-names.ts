/**
 * Trains the tagger of names and writes its weights.
 *
 *   node bench/safety/train-names.ts FOLDER [OUT]
 *
 * FOLDER has `pii-presidio-v2.json` and clean texts; they are not part of the project, the weights are. Of Presidio's
 * texts only those of even templates are read. The same texts give the same bytes on every machine.
 *
 * An averaged perceptron: where the best tags are not the right ones, the right ones get a point and the others lose one;
 * the weights are the mean over all steps, which forgets the last texts' whims.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  NAME_FEATURE_BITS,
  NAME_FEATURES,
  type NameTokens,
  nameFeaturesOf,
  readNameTokens,
} from '../../src/safety/names/name-features.ts'
import { encodeNameWeights } from '../../src/safety/names/name-file.ts'
import { bestTags, TAG_COUNT } from '../../src/safety/names/name-tagger.ts'
import { makeDraw } from './expand.ts'
import { loadNameTexts, type NamedText } from './name-texts.ts'

const [folder, out = join(import.meta.dirname, '..', '..', 'src', 'safety', 'names', 'weights', 'names.bin')] =
  process.argv.slice(2)
if (folder === undefined) throw new Error('usage: node bench/safety/train-names.ts FOLDER [OUT]')

const ROUNDS = 8

interface Example {
  readonly tokens: NameTokens
  readonly tags: Uint8Array
}

const toExample = ({ text, places }: NamedText): Example => {
  const tokens = readNameTokens(text)
  const tags = new Uint8Array(tokens.count)
  for (const { kind, start, end } of places) {
    let isFirst = true
    for (let i = 0; i < tokens.count; i++) {
      if (tokens.starts[i]! >= end || tokens.ends[i]! <= start || tokens.breaks[i]!) continue
      tags[i] = (kind === 'person' ? 1 : 3) + (isFirst ? 0 : 1)
      isFirst = false
    }
  }
  // Parts of one address that touch are one address.
  for (let i = 1; i < tags.length; i++) if (tags[i] === 3 && (tags[i - 1] === 3 || tags[i - 1] === 4)) tags[i] = 4
  return { tokens, tags }
}

/** Weights, and their sums over all steps, by the lazy rule: a change counts for all steps that are left. */
class Averaged {
  readonly now: Float64Array
  readonly #late: Float64Array

  constructor(size: number) {
    this.now = new Float64Array(size)
    this.#late = new Float64Array(size)
  }

  add(at: number, by: number, step: number): void {
    this.now[at]! += by
    this.#late[at]! += by * step
  }

  mean(steps: number): Float64Array {
    return this.now.map((value, i) => value - this.#late[i]! / steps)
  }
}

const examples = loadNameTexts(folder).train.map(toExample)
const rows = new Averaged(TAG_COUNT << NAME_FEATURE_BITS)
const steps = new Averaged((TAG_COUNT + 1) * TAG_COUNT)
const features = new Int32Array(NAME_FEATURES)
const draw = makeDraw(5)
const order = examples.map((_, i) => i)
let step = 1

const learn = ({ tokens, tags }: Example): boolean => {
  const guess = bestTags(tokens, { rows: rows.now, steps: steps.now })
  if (guess.every((tag, i) => tag === tags[i])) return true
  for (let i = 0; i < tokens.count; i++) {
    const [right, wrong] = [tags[i]!, guess[i]!]
    const before = i === 0 ? TAG_COUNT : tags[i - 1]!
    const guessedBefore = i === 0 ? TAG_COUNT : guess[i - 1]!
    if (right !== wrong || before !== guessedBefore) {
      steps.add(before * TAG_COUNT + right, 1, step)
      steps.add(guessedBefore * TAG_COUNT + wrong, -1, step)
    }
    if (right === wrong) continue
    nameFeaturesOf(tokens, i, features)
    for (const feature of features) {
      rows.add(feature * TAG_COUNT + right, 1, step)
      rows.add(feature * TAG_COUNT + wrong, -1, step)
    }
  }
  return false
}

for (let round = 1; round <= ROUNDS; round++) {
  for (let i = order.length - 1; i > 0; i--) {
    const j = draw(i + 1)
    ;[order[i], order[j]] = [order[j]!, order[i]!]
  }
  let right = 0
  for (const at of order) {
    if (learn(examples[at]!)) right++
    step++
  }
  console.log(`round ${round}: ${right} of ${examples.length} texts right`)
}
const bytes = encodeNameWeights(rows.mean(step), steps.mean(step))
writeFileSync(out, bytes)
console.log(`${bytes.length} bytes`)
