import { steadyLog2, steadyPow2 } from '../../base/steady-log.ts'
import type { TwinPrior } from './twin-prior.ts'

/**
 * Which known engine is this one most like?
 *
 * Each prior says what it would have expected of every row; the one whose logarithms are nearest, by the mean square,
 * is the likeliest. It is looked at again at 8, 16, 32 … rows, up to some hundreds, and then stays. What is left between
 * the nearest and what was seen is a factor, one for decoding and one for reading: a prior gives the proportions, and
 * the first rows give the size.
 *
 * Example: rows of 30 ms where profile A expects 28 and B 9: A, scaled by 1.07.
 */
const ROWS_MIN = 8
const ROWS_MAX = 512

interface Standing {
  readonly prior: TwinPrior
  readonly decode: LogError
  readonly read: LogError
}

export class PriorChoice {
  readonly #standings: readonly Standing[]
  #chosen: Standing
  #rows = 0
  #lookAt = ROWS_MIN
  #isSettled = false
  #isNew = false

  constructor(priors: readonly TwinPrior[], cautious: TwinPrior) {
    const all = priors.includes(cautious) ? priors : [...priors, cautious]
    this.#standings = all.map((prior) => ({ prior, decode: new LogError(), read: new LogError() }))
    this.#chosen = this.#standings.find(({ prior }) => prior === cautious) as Standing
  }

  get prior(): TwinPrior {
    return this.#chosen.prior
  }

  /** What the chosen prior must be multiplied with. */
  get scale(): { readonly decode: number; readonly read: number } {
    return { decode: this.#chosen.decode.factor, read: this.#chosen.read.factor }
  }

  /** True once after each look. */
  isNew(): boolean {
    const isNew = this.#isNew
    this.#isNew = false
    return isNew
  }

  /** The engine has shown that it is none of these: the twin's own past is its prior from here on. */
  settle(): void {
    this.#isSettled = true
  }

  sawDecode(x: readonly number[], y: number): void {
    if (this.#isSettled) return
    for (const { prior, decode } of this.#standings) decode.observe(y / dot(prior.decode, x))
    this.#look()
  }

  sawRead(x: readonly number[], y: number): void {
    if (this.#isSettled) return
    for (const { prior, read } of this.#standings) read.observe(y / dot(prior.read, x))
    this.#look()
  }

  #look(): void {
    if (++this.#rows < this.#lookAt) return
    this.#lookAt *= 2
    for (const standing of this.#standings) {
      if (errorOf(standing) < errorOf(this.#chosen)) this.#chosen = standing
    }
    this.#isNew = true
    if (this.#rows >= ROWS_MAX) this.#isSettled = true
  }
}

const errorOf = ({ decode, read }: Standing): number => decode.meanSquare + read.meanSquare

class LogError {
  #count = 0
  #sum = 0
  #squares = 0

  observe(ratio: number): void {
    const log = steadyLog2(Math.min(64, Math.max(1 / 64, ratio)))
    this.#count++
    this.#sum += log
    this.#squares += log * log
  }

  get meanSquare(): number {
    return this.#count === 0 ? 0 : this.#squares / this.#count
  }

  get factor(): number {
    return this.#count === 0 ? 1 : steadyPow2(this.#sum / this.#count)
  }
}

function dot(a: readonly number[], b: readonly number[]): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!
  return Math.max(sum, Number.MIN_VALUE)
}
