import { FEATURE_COUNT, FeatureReader } from '../../src/safety/models/read-features.ts'
import { makeDraw } from './expand.ts'

/**
 * Logistic regression over hashed features, by AdaGrad. What is fitted is what is scored: of each text the window with
 * the largest margin, so that a harmless text is harmless in all its windows, and an attack needs one.
 */
export interface Sample {
  readonly text: string
  readonly isPositive: boolean
  /** Where the text comes from: texts of one source share one weight. */
  readonly source: string
  /** Cluster of near-duplicates or template; never on both sides of a split. */
  readonly group: string
}

export interface FitTerms {
  readonly windowLength: number
  readonly lengthPower: number
  /** Whether features of characters count, or those of words alone. */
  readonly readsCharacters: boolean
  readonly epochs: number
  readonly rate: number
  readonly decay: number
  /** Weight of all texts of a source together is its count to this power. */
  readonly sourcePower: number
  /** Weights of single sources, in addition. */
  readonly sourceWeights?: Readonly<Record<string, number>>
}

export interface FloatModel {
  readonly weights: Float64Array
  readonly bias: number
  readonly terms: FitTerms
}

/** Sentences of a text as features. */
export interface Read {
  readonly ids: readonly Uint16Array[]
  readonly lengths: readonly number[]
}

/** Windows of longer texts are drawn from this many sentences from the start: enough for every attack there is. */
const SENTENCES_MAX = 400
const WINDOW_SENTENCES_MAX = 32

const reader = new FeatureReader()
const reads = [new Map<string, Read>(), new Map<string, Read>()]

export function readText(text: string, readsCharacters: boolean): Read {
  const kept = reads[+readsCharacters] as Map<string, Read>
  const known = kept.get(text)
  if (known !== undefined) return known
  const ids: Uint16Array[] = []
  const lengths: number[] = []
  reader.open(text)
  while (ids.length < SENTENCES_MAX && reader.next()) {
    const characterCount = readsCharacters ? reader.characterCount : 0
    const own = new Uint16Array(reader.wordCount + characterCount)
    own.set(reader.wordIds.subarray(0, reader.wordCount))
    own.set(reader.characterIds.subarray(0, characterCount), reader.wordCount)
    ids.push(own)
    lengths.push(reader.length)
  }
  const read = { ids, lengths }
  kept.set(text, read)
  return read
}

interface Found {
  margin: number
  from: number
  to: number
  count: number
}

/** The window with the largest margin: of those that end with each sentence, one sentence, two, and the longest. */
export function bestWindow({ ids, lengths }: Read, weights: Float64Array, bias: number, terms: FitTerms): Found {
  const sums: number[] = []
  const best = { margin: -Infinity, from: 0, to: 0, count: 1 }
  const look = (sum: number, from: number, to: number, count: number): void => {
    const margin = bias + sum / count ** terms.lengthPower
    if (margin > best.margin) Object.assign(best, { margin, from, to, count })
  }
  let from = 0
  let sum = 0
  let count = 0
  let length = 0
  for (const [at, own] of ids.entries()) {
    let ownSum = 0
    for (const id of own) ownSum += weights[id] as number
    const ownLength = lengths[at] as number
    sums.push(ownSum)
    while (from < at && (at - from === WINDOW_SENTENCES_MAX || length + ownLength > terms.windowLength)) {
      sum -= sums[from] as number
      count -= (ids[from] as Uint16Array).length
      length -= lengths[from] as number
      from++
    }
    sum += ownSum
    count += own.length
    length += ownLength
    look(sum, from, at + 1, count)
    if (at - from >= 1) look(ownSum, at, at + 1, own.length)
    if (at - from >= 2) {
      look(ownSum + (sums[at - 1] as number), at - 1, at + 1, own.length + (ids[at - 1] as Uint16Array).length)
    }
  }
  return best
}

export function fitModel(samples: readonly Sample[], terms: FitTerms): FloatModel {
  const sampleWeights = weigh(samples, terms)
  const weights = new Float64Array(FEATURE_COUNT)
  const squares = new Float64Array(FEATURE_COUNT).fill(1e-2)
  const mean = new Float64Array(FEATURE_COUNT)
  let meanBias = 0
  let means = 0
  let bias = 0
  let biasSquares = 1e-2
  const order = samples.map((_, index) => index)
  const draw = makeDraw(20_261_116)
  for (let epoch = 0; epoch < terms.epochs; epoch++) {
    shuffle(order, draw)
    for (const index of order) {
      const sample = samples[index] as Sample
      const read = readText(sample.text, terms.readsCharacters)
      if (read.ids.length === 0) continue
      const best = bestWindow(read, weights, bias, terms)
      const target = sample.isPositive ? 1 : 0
      const error = (1 / (1 + Math.exp(-best.margin)) - target) * (sampleWeights[index] as number)
      const step = error / best.count ** terms.lengthPower
      for (let at = best.from; at < best.to; at++) {
        for (const id of read.ids[at] as Uint16Array) {
          const gradient = step + terms.decay * (weights[id] as number)
          const squared = (squares[id] as number) + gradient * gradient
          squares[id] = squared
          weights[id] = (weights[id] as number) - (terms.rate * gradient) / Math.sqrt(squared)
        }
      }
      biasSquares += error * error
      bias -= (terms.rate * error) / Math.sqrt(biasSquares)
    }
    // The mean of the last half: the last text of an epoch says no more than the first.
    if (epoch * 2 >= terms.epochs) {
      for (let id = 0; id < FEATURE_COUNT; id++) mean[id] = (mean[id] as number) + (weights[id] as number)
      meanBias += bias
      means++
    }
  }
  return { weights: mean.map((sum) => sum / means), bias: meanBias / means, terms }
}

export function marginOf(model: FloatModel, text: string): number {
  return bestWindow(readText(text, model.terms.readsCharacters), model.weights, model.bias, model.terms).margin
}

/** Both labels weigh the same; within one, a source weighs by a power of its size. */
function weigh(samples: readonly Sample[], { sourcePower, sourceWeights }: FitTerms): Float64Array {
  const counts = new Map<string, number>()
  const key = (sample: Sample): string => `${sample.isPositive} ${sample.source}`
  for (const sample of samples) counts.set(key(sample), (counts.get(key(sample)) ?? 0) + 1)
  const weights = new Float64Array(samples.length)
  const totals = [0, 0]
  for (const [index, sample] of samples.entries()) {
    const weight = (counts.get(key(sample)) as number) ** (sourcePower - 1) * (sourceWeights?.[sample.source] ?? 1)
    weights[index] = weight
    totals[+sample.isPositive] = (totals[+sample.isPositive] as number) + weight
  }
  return weights.map(
    (weight, index) => (weight * samples.length) / 2 / (totals[+(samples[index] as Sample).isPositive] as number),
  )
}

function shuffle(order: number[], draw: (below: number) => number): void {
  for (let at = order.length - 1; at > 0; at--) {
    const other = draw(at + 1)
    const kept = order[at] as number
    order[at] = order[other] as number
    order[other] = kept
  }
}
