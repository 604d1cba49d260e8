import { assert } from '../../base/assert.ts'
import type { Instant } from '../../base/clock.ts'
import { QuantileSketch } from '../../base/quantile.ts'
import type { Calibrated, Patience, Prediction } from './feasibility.ts'

/**
 * How far can our predictions be trusted?
 *
 * For every admitted ticket we keep actual ÷ predicted, per pool × SLO class × size, for the first token and for the
 * finish. The median is the bias (predictions are multiplied by it); what lies between the median and the quantile of
 * the target coverage is scatter, and becomes the margin: with spread s = q97 ÷ q50, a margin of 1 − 1/s makes 97 of
 * 100 in time. This is split conformal prediction: no assumption about the shape of the error.
 *
 * The level of the quantile is itself steered by what happens (adaptive conformal inference, Gibbs and Candès, 2021):
 * a late ticket raises it by γ·0.97, one in time lowers it by γ·0.03, which keeps the long-run share of late ones at
 * the target even when the world drifts or answers back. Three things keep the loop stable. A ratio, unlike a
 * difference, does not depend on how full the pool is. A late ticket that today's terms would not have admitted
 * teaches the level nothing, so a herd that was let in together counts once. And only *tight* tickets (predicted to
 * use a good part of their patience) form the quantiles and lower the level, because it is on them that the margin
 * decides: a quiet night does not wear it off. Bias and margin together never rise so far that no tight tickets are
 * admitted, so it always goes on learning.
 *
 * Expired and evicted tickets count as infinitely late (they are what censoring would hide); cancelled ones are not
 * observed, and first tokens that waited for a few long answers to end teach nothing (`lumpy-wait.ts`). Decisions go by
 * class, over all sizes: they share a queue, and were each size to have terms of its own, the one with the luckiest would
 * take all of it. Sizes are kept for the report. Fewer than 24 tight samples: bias 1 and the floor.
 *
 * Memory: pools × classes × 5 sizes × 2 promises, 0.5 kB each, with a bound. It does not touch decisions already made.
 *
 * Example: actual ÷ predicted has median 1.2 and q97 1.8. Bias 1.2, spread 1.5, margin 33 %. Patience 500 ms: admitted
 * up to a prediction of 500 · 0.67 ÷ 1.2 = 278 ms, which takes 500 ms in the 97th case of a hundred.
 */
export const CALIBRATION_DEFAULTS = {
  /** Share of the admitted that must be in time. */
  coverageTarget: 0.97,
  /** ADMISSION_SAFETY_MARGIN: the margin is never below this. */
  marginFloor: 0.15,
  /** Nor above this: with the largest bias, 0.6 still lets in what needs a fifth of its patience. */
  marginMax: 0.6,
  /** Predicted ÷ patience from which a ticket is tight: below that fifth, or a bad hour would end all learning. */
  tightRatio: 0.15,
  /** Tight samples that a cell remembers: a few hundred carry a 97th percentile. */
  memorySamples: 256,
  /** And this often old ones weigh half, few or many: what went wrong ten minutes ago is no reason to refuse now. */
  fadeEveryUs: 120_000_000,
  /** Below this a cell asks its parent: with fewer the 97th percentile is the maximum. */
  samplesMin: 24,
  /** Step of the level: one late ticket in a row of 33 leaves it where it was. */
  levelStep: 0.01,
  /** Lower than this it would forget in quiet times what it needs in the first seconds of a burst. */
  levelMin: 0.85,
  levelMax: 0.995,
  /**
   * Predictions are never made rosier than they are. What is learned comes seconds after what it is learned from; a
   * pool that has just become faster would be promised twice what it has gained. And nothing is lost: a queue shorter
   * than could be afforded keeps the engines as busy as a longer one.
   */
  biasMin: 1,
  /** A bias beyond this is a broken model; admission goes on with the bound and the coverage tells. */
  biasMax: 2,
  /** Cells kept at most (pool × class × size): more than any sane configuration has. */
  cellsMax: 1_024,
}

export type CalibrationOptions = typeof CALIBRATION_DEFAULTS

/** Ratios are kept in thousandths; 65 times as long as predicted, or never, is the last bucket. */
const RATIO_UNIT = 1_000
const RATIO_MAX = 2 ** 16 - 1

/** Upper bounds of the size buckets, in prompt tokens: a factor of four apart, five in all. */
const SIZE_BOUNDS: readonly number[] = [256, 1_024, 4_096, 16_384]

export interface CalibrationCell {
  readonly poolId: string
  readonly sloName: string
  readonly promptTokens: number
}

interface Promised extends CalibrationCell {
  readonly predicted: Prediction
  readonly patience: Patience
}

export interface BegunTicket extends Promised {
  /** From the decision on. */
  readonly ttftUs: number
}

export interface EndedTicket extends Promised {
  /** Durations from the decision on; Infinity for expired and evicted. */
  readonly actual: { readonly ttftUs: number; readonly finishUs: number }
}

export interface CoverageView {
  readonly observed: number
  /** Admitted and yet late, expired or evicted. */
  readonly falseAdmits: number
  /** Share in time, over everything observed; undefined before the first. */
  readonly coverage: number | undefined
}

export interface CellView extends CoverageView {
  readonly name: string
  readonly ttft: Calibrated
  readonly finish: Calibrated
}

export class Calibration {
  readonly #options: CalibrationOptions
  readonly #cells = new Map<string, Cell>()
  readonly #names = new CellNames()
  #observed = 0
  #late = 0

  constructor(options: Partial<CalibrationOptions> = {}) {
    this.#options = { ...CALIBRATION_DEFAULTS, ...options }
    const { tightRatio, marginMax, biasMax, marginFloor } = this.#options
    assert(tightRatio * biasMax < 1 - marginMax, 'the strictest terms still admit tight tickets')
    assert(marginFloor <= marginMax, 'the floor of the margin is below its ceiling')
  }

  termsFor(cell: CalibrationCell): { readonly ttft: Calibrated; readonly finish: Calibrated } {
    const parent = this.#cells.get(this.#names.ofClass(cell))
    return {
      ttft: parent?.ttft.terms() ?? this.#unknown(),
      finish: parent?.finish.terms() ?? this.#unknown(),
    }
  }

  /** Its first token has come. Heard at once: in the first seconds of a burst nothing else tells how it goes. */
  begun(now: Instant, seen: BegunTicket): void {
    const { predicted, patience, ttftUs } = seen
    if (predicted.isLumpy === true) return
    const terms = this.termsFor(seen)
    const promise = { predictedUs: predicted.ttftUs, patienceUs: patience.ttftUs, actualUs: ttftUs }
    for (const name of [this.#names.ofSize(seen), this.#names.ofClass(seen)]) {
      this.#cellOf(now, name, seen.poolId).ttft.observe(promise, terms.ttft)
    }
  }

  /** It is over, or will never begin. */
  ended(now: Instant, seen: EndedTicket): void {
    const { predicted, patience, actual } = seen
    const hasBegun = actual.ttftUs < Number.POSITIVE_INFINITY
    if (!hasBegun) this.begun(now, { ...seen, ttftUs: actual.ttftUs })
    const isLate = actual.ttftUs > patience.ttftUs || actual.finishUs > patience.finishUs
    this.#observed++
    if (isLate) this.#late++
    const terms = this.termsFor(seen)
    const promise = { predictedUs: predicted.finishUs, patienceUs: patience.finishUs, actualUs: actual.finishUs }
    for (const name of [this.#names.ofSize(seen), this.#names.ofClass(seen)]) {
      const cell = this.#cellOf(now, name, seen.poolId)
      cell.observed++
      if (isLate) cell.late++
      cell.finish.observe(promise, terms.finish)
    }
  }

  view(): CoverageView {
    return coverageOf(this.#observed, this.#late)
  }

  cells(): readonly CellView[] {
    return [...this.#cells].map(([name, cell]) => ({
      name,
      ...coverageOf(cell.observed, cell.late),
      ttft: cell.ttft.terms() ?? this.#unknown(),
      finish: cell.finish.terms() ?? this.#unknown(),
    }))
  }

  /** The pool is gone: what was learned of it says nothing about another. */
  forgetPool(poolId: string): void {
    for (const [name, cell] of this.#cells) if (cell.poolId === poolId) this.#cells.delete(name)
  }

  #unknown(): Calibrated {
    return { biasRatio: 1, marginRatio: this.#options.marginFloor }
  }

  #cellOf(now: Instant, name: string, poolId: string): Cell {
    let cell = this.#cells.get(name)
    if (cell !== undefined && now - cell.fadedAt >= this.#options.fadeEveryUs) {
      cell.fadedAt = now
      cell.ttft.fade()
      cell.finish.fade()
    }
    if (cell === undefined) {
      if (this.#cells.size >= this.#options.cellsMax) {
        const oldest = this.#cells.keys().next().value
        if (oldest !== undefined) this.#cells.delete(oldest)
      }
      const ttft = new Trust(this.#options)
      cell = { poolId, ttft, finish: new Trust(this.#options), observed: 0, late: 0, fadedAt: now }
      this.#cells.set(name, cell)
    }
    return cell
  }
}

interface Cell {
  readonly poolId: string
  readonly ttft: Trust
  readonly finish: Trust
  observed: number
  late: number
  fadedAt: Instant
}

/** What is known about one promise in one cell. */
class Trust {
  readonly #options: CalibrationOptions
  readonly #ratios: QuantileSketch
  #level: number
  #terms: Calibrated | undefined

  constructor(options: CalibrationOptions) {
    this.#options = options
    this.#level = options.coverageTarget
    this.#ratios = new QuantileSketch({ valueMax: RATIO_MAX, memorySamples: options.memorySamples })
  }

  /** Undefined while too little is known. Kept until the next sample: decisions are more frequent than endings. */
  terms(): Calibrated | undefined {
    if (this.#terms !== undefined || this.#ratios.sampleCount < this.#options.samplesMin) return this.#terms
    const { marginFloor, marginMax, biasMin, biasMax } = this.#options
    const median = Math.max(1, this.#ratios.quantile(0.5) ?? RATIO_UNIT) / RATIO_UNIT
    const high = Math.max(1, this.#ratios.quantile(this.#level) ?? RATIO_UNIT) / RATIO_UNIT
    const biasRatio = Math.min(biasMax, Math.max(biasMin, median))
    this.#terms = { biasRatio, marginRatio: Math.min(marginMax, Math.max(marginFloor, 1 - biasRatio / high)) }
    return this.#terms
  }

  fade(): void {
    this.#ratios.fade()
    this.#terms = undefined
  }

  observe(
    seen: { readonly predictedUs: number; readonly patienceUs: number; readonly actualUs: number },
    terms: Calibrated,
  ): void {
    const { predictedUs, patienceUs, actualUs } = seen
    const { tightRatio, coverageTarget, levelStep, levelMin, levelMax } = this.#options
    if (!Number.isFinite(patienceUs) || !Number.isFinite(predictedUs)) return
    const isLate = actualUs > patienceUs
    const wouldBeAdmitted = predictedUs * terms.biasRatio <= patienceUs * (1 - terms.marginRatio)
    const isTight = predictedUs >= tightRatio * patienceUs
    if (isLate ? wouldBeAdmitted : isTight) {
      const step = levelStep * (isLate ? coverageTarget : coverageTarget - 1)
      this.#level = Math.min(levelMax, Math.max(levelMin, this.#level + step))
    }
    if (isTight) {
      this.#ratios.observe(Math.min(RATIO_MAX, (actualUs / predictedUs) * RATIO_UNIT))
    }
    this.#terms = undefined
  }
}

function coverageOf(observed: number, late: number): CoverageView {
  return { observed, falseAdmits: late, coverage: observed === 0 ? undefined : 1 - late / observed }
}

/**
 * What cells are called. Names are asked for five times with every request, mostly of the same pool and class as the
 * last: those are kept, because a text that was just put together must be read whole before a map can look it up.
 */
class CellNames {
  #poolId = ''
  #sloName = ''
  #class = '/'
  readonly #sizes: Array<string | undefined> = []

  ofClass({ poolId, sloName }: CalibrationCell): string {
    if (poolId !== this.#poolId || sloName !== this.#sloName) {
      this.#poolId = poolId
      this.#sloName = sloName
      this.#class = `${poolId}/${sloName}`
      this.#sizes.length = 0
    }
    return this.#class
  }

  ofSize(cell: CalibrationCell): string {
    const className = this.ofClass(cell)
    let size = 0
    while (size < SIZE_BOUNDS.length && cell.promptTokens > (SIZE_BOUNDS[size] as number)) size++
    const name = this.#sizes[size] ?? `${className}/${SIZE_BOUNDS[size] ?? 'longer'}`
    this.#sizes[size] = name
    return name
  }
}
