import type { FeatureReader } from './read-features.ts'

/**
 * How much does a text look like what a model was trained on? A weight per feature, summed over a *window* of whole
 * sentences, divided by a power of the window's length, the largest sum of all windows as a probability. A window ends with
 * each sentence: the sentence alone, with the one before it, and with as many as fit. So an attack is found inside a long
 * harmless text, and one that is spread over sentences, too. A model of single sentences has windows of one sentence.
 *
 * Weights are int8: 64 kB a model, small enough to stay in the cache beside the text.
 */
export interface LinearWeights {
  readonly name: string
  readonly weights: Int8Array
  /** Turns sums of int8 back into log odds. */
  readonly scale: number
  readonly bias: number
  /** Whether features of characters count, or those of words alone. */
  readonly readsCharacters: boolean
  /** Exponent of the count of features that a sum is divided by. */
  readonly lengthPower: number
  /** Bytes of a window; 0: one sentence. */
  readonly windowLength: number
  /** The probability is 1 / (1 + exp(-(slope · margin + offset))). */
  readonly slope: number
  readonly offset: number
  /** Score from which on a text is a finding: one in a hundred harmless texts of kinds left out of training reaches it. */
  readonly scoreMin: number
  /** Scores between this one and `scoreMin` are a guard model's to decide. */
  readonly greyFrom: number
}

/** Sentences of one window at most: short ones ("A.", "B.") count by their number, not only by their length. */
const WINDOW_SENTENCES_MAX = 32

/** One text under one model: sentences go in, the largest margin of a window comes out. */
export class WindowSums {
  readonly #model: LinearWeights
  readonly #sums = new Int32Array(WINDOW_SENTENCES_MAX)
  readonly #counts = new Int32Array(WINDOW_SENTENCES_MAX)
  readonly #lengths = new Int32Array(WINDOW_SENTENCES_MAX)
  #first = 0
  #sentences = 0
  #sum = 0
  #count = 0
  #length = 0
  #marginMax = -Infinity

  constructor(model: LinearWeights) {
    this.#model = model
  }

  /** Ready for another text. */
  clear(): void {
    this.#first = this.#sentences = this.#sum = this.#count = this.#length = 0
    this.#marginMax = -Infinity
  }

  add(reader: FeatureReader): void {
    const { weights, windowLength, readsCharacters } = this.#model
    const { length } = reader
    let count = reader.wordCount
    let sum = sumOf(weights, reader.wordIds, count)
    if (readsCharacters) {
      sum += sumOf(weights, reader.characterIds, reader.characterCount)
      count += reader.characterCount
    }
    while (this.#sentences > 0 && (this.#sentences === WINDOW_SENTENCES_MAX || this.#length + length > windowLength)) {
      this.#dropFirst()
    }
    const last = (this.#first + this.#sentences + WINDOW_SENTENCES_MAX - 1) % WINDOW_SENTENCES_MAX
    const place = (this.#first + this.#sentences) % WINDOW_SENTENCES_MAX
    this.#sums[place] = sum
    this.#counts[place] = count
    this.#lengths[place] = length
    this.#sentences++
    this.#sum += sum
    this.#count += count
    this.#length += length
    this.#look(this.#sum, this.#count)
    if (this.#sentences > 1) this.#look(sum, count)
    if (this.#sentences > 2) this.#look(sum + (this.#sums[last] as number), count + (this.#counts[last] as number))
  }

  /** −∞ for a text without a word. */
  get marginMax(): number {
    return this.#marginMax
  }

  get score(): number {
    if (this.#marginMax === -Infinity) return 0
    return 1 / (1 + Math.exp(-(this.#model.slope * this.#marginMax + this.#model.offset)))
  }

  #look(sum: number, count: number): void {
    const { bias, scale, lengthPower } = this.#model
    // A square root is many times cheaper than another power.
    const margin = bias + (sum * scale) / (lengthPower === 0.5 ? Math.sqrt(count) : count ** lengthPower)
    if (margin > this.#marginMax) this.#marginMax = margin
  }

  #dropFirst(): void {
    this.#sum -= this.#sums[this.#first] as number
    this.#count -= this.#counts[this.#first] as number
    this.#length -= this.#lengths[this.#first] as number
    this.#first = (this.#first + 1) % WINDOW_SENTENCES_MAX
    this.#sentences--
  }
}

function sumOf(weights: Int8Array, ids: Uint16Array, count: number): number {
  let sum = 0
  for (let at = 0; at < count; at++) sum += weights[ids[at] as number] as number
  return sum
}
