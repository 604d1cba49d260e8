import { assert } from '../../base/assert.ts'
import type { Instant } from '../../base/clock.ts'
import { QuantileSketch } from '../../base/quantile.ts'
import type { Calibrated, Patience, Prediction } from './feasibility.ts'

/**
 * How far can our predictions be trusted?
 *
 * For every admitted ticket we keep actual ÷ predicted, per pool × SLO class × tenant, for the first token and for the
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
 * Blame is personal. A tenant far above its share has a long queue of its own, and the scatter of its waits is its own
 * doing: while tenants of a class shared one cell, such a tenant drove the margin to its ceiling, and calm tenants that
 * were predicted at 411 of 1,000 ms were refused. So each tenant has a cell, and who has too few tight samples of its own
 * starts from a cell of the whole class. Into that one a tenant gives four samples, and a sixteenth of what all others have
 * given: a margin is a 97th percentile, so no single tenant moves the others' start, and two hundred that each know little
 * know enough together.
 *
 * Expired and evicted tickets count as infinitely late (they are what censoring would hide); cancelled ones are not
 * observed, and first tokens that waited for a few long answers to end teach nothing (`lumpy-wait.ts`). Decisions go over
 * all sizes: they share a queue, and were each size to have terms of its own, the one with the luckiest would
 * take all of it. Fewer than 24 tight samples of the class, too: bias 1 and the floor.
 *
 * Memory: pools × classes × tenants × 2 promises, 0.5 kB each; of a class `tenantsMax` tenants at most, the least recently
 * observed are forgotten. It does not touch decisions already made.
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
  /** Tight samples that a tenant gives to its class at once, and its part of what the others have given. */
  sharedSamples: 4,
  sharedRatio: 1 / 16,
  /** Classes kept at most (pool × SLO): more than any sane configuration has. */
  classesMax: 1_024,
  /** Tenants of a class with a cell of their own: about 2 MB; who was not observed for longest starts anew. */
  tenantsMax: 2_048,
}

export type CalibrationOptions = typeof CALIBRATION_DEFAULTS

/** Ratios are kept in thousandths; 65 times as long as predicted, or never, is the last bucket. */
const RATIO_UNIT = 1_000
const RATIO_MAX = 2 ** 16 - 1

export interface CalibrationCell {
  readonly poolId: string
  readonly sloName: string
  readonly tenantId: string
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

export class Calibration {
  readonly #options: CalibrationOptions
  /** By pool and class. */
  readonly #classes = new Map<string, SloClass>()
  #observed = 0
  #late = 0
  /** The class that was asked for last: a name that was just put together must be read whole before a map can find it. */
  #last: SloClass | undefined

  constructor(options: Partial<CalibrationOptions> = {}) {
    this.#options = { ...CALIBRATION_DEFAULTS, ...options }
    const { tightRatio, marginMax, biasMax, marginFloor } = this.#options
    assert(tightRatio * biasMax < 1 - marginMax, 'the strictest terms still admit tight tickets')
    assert(marginFloor <= marginMax, 'the floor of the margin is below its ceiling')
  }

  get classCount(): number {
    return this.#classes.size
  }

  termsFor(cell: CalibrationCell): { readonly ttft: Calibrated; readonly finish: Calibrated } {
    const known = this.#knownClass(cell)
    const own = known?.tenants.get(cell.tenantId)
    return {
      ttft: own?.ttft.terms() ?? known?.everybody.ttft.terms() ?? this.#unknown(),
      finish: own?.finish.terms() ?? known?.everybody.finish.terms() ?? this.#unknown(),
    }
  }

  /** Its first token has come. Heard at once: in the first seconds of a burst nothing else tells how it goes. */
  begun(now: Instant, seen: BegunTicket): void {
    const { predicted, patience, ttftUs } = seen
    if (predicted.isLumpy === true) return
    const promise = { predictedUs: predicted.ttftUs, patienceUs: patience.ttftUs, actualUs: ttftUs }
    this.#observe(now, seen, 'ttft', promise)
  }

  /** It is over, or will never begin. */
  ended(now: Instant, seen: EndedTicket): void {
    const { predicted, patience, actual } = seen
    const hasBegun = actual.ttftUs < Number.POSITIVE_INFINITY
    if (!hasBegun) this.begun(now, { ...seen, ttftUs: actual.ttftUs })
    this.#observed++
    if (actual.ttftUs > patience.ttftUs || actual.finishUs > patience.finishUs) this.#late++
    const promise = { predictedUs: predicted.finishUs, patienceUs: patience.finishUs, actualUs: actual.finishUs }
    this.#observe(now, seen, 'finish', promise)
  }

  view(): CoverageView {
    const late = this.#late
    return {
      observed: this.#observed,
      falseAdmits: late,
      coverage: this.#observed === 0 ? undefined : 1 - late / this.#observed,
    }
  }

  /** The pool is gone: what was learned of it says nothing about another. */
  forgetPool(poolId: string): void {
    this.#last = undefined
    for (const [name, known] of this.#classes) if (known.poolId === poolId) this.#classes.delete(name)
  }

  #unknown(): Calibrated {
    return { biasRatio: 1, marginRatio: this.#options.marginFloor }
  }

  #observe(now: Instant, seen: CalibrationCell, which: 'ttft' | 'finish', promise: SeenPromise): void {
    const terms = this.termsFor(seen)[which]
    const known = this.#knownClass(seen) ?? this.#makeClass(now, seen)
    this.#fade(now, known.everybody)
    const own = this.#tenantOf(now, known, seen.tenantId)
    own[which].observe(promise, terms)
    const everybody = known.everybody[which]
    if (own[which].mayTeach(everybody)) own[which].teach(everybody, promise, terms)
  }

  #knownClass({ poolId, sloName }: CalibrationCell): SloClass | undefined {
    if (this.#last?.poolId === poolId && this.#last.sloName === sloName) return this.#last
    const known = this.#classes.get(`${poolId}/${sloName}`)
    if (known !== undefined) this.#last = known
    return known
  }

  #makeClass(now: Instant, { poolId, sloName }: CalibrationCell): SloClass {
    const made = { poolId, sloName, everybody: this.#makeCell(now), tenants: new Map<string, Cell>() }
    makeRoom(this.#classes, this.#options.classesMax)
    this.#classes.set(`${poolId}/${sloName}`, made)
    this.#last = made
    return made
  }

  /** The last one observed is the last one of the map. */
  #tenantOf(now: Instant, { tenants }: SloClass, tenantId: string): Cell {
    const known = tenants.get(tenantId)
    if (known === undefined) makeRoom(tenants, this.#options.tenantsMax)
    else {
      tenants.delete(tenantId)
      this.#fade(now, known)
    }
    const cell = known ?? this.#makeCell(now)
    tenants.set(tenantId, cell)
    return cell
  }

  #makeCell(now: Instant): Cell {
    return { ttft: new Trust(this.#options), finish: new Trust(this.#options), fadedAt: now }
  }

  #fade(now: Instant, cell: Cell): void {
    if (now - cell.fadedAt < this.#options.fadeEveryUs) return
    cell.fadedAt = now
    cell.ttft.fade()
    cell.finish.fade()
  }
}

function makeRoom(map: Map<string, unknown>, sizeMax: number): void {
  const [oldest] = map.size >= sizeMax ? map.keys() : []
  if (oldest !== undefined) map.delete(oldest)
}

interface SloClass {
  readonly poolId: string
  readonly sloName: string
  /** The start of those who know too little of themselves. */
  readonly everybody: Cell
  readonly tenants: Map<string, Cell>
}

interface Cell {
  readonly ttft: Trust
  readonly finish: Trust
  fadedAt: Instant
}

interface SeenPromise {
  readonly predictedUs: number
  readonly patienceUs: number
  readonly actualUs: number
}

/** What is known about one promise in one cell. */
class Trust {
  readonly #options: CalibrationOptions
  readonly #ratios: QuantileSketch
  #level: number
  #terms: Calibrated | undefined
  /** Tight samples that the tenant has given to its class, or that the class was given; old ones fade as samples do. */
  #given = 0

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
    this.#given /= 2
    this.#terms = undefined
  }

  /** Whether the class may learn from one more sample of the tenant whose trust this is. */
  mayTeach(everybody: Trust): boolean {
    const { sharedSamples, sharedRatio } = this.#options
    return this.#given < sharedSamples + sharedRatio * Math.max(0, everybody.#given - this.#given)
  }

  teach(everybody: Trust, seen: SeenPromise, terms: Calibrated): void {
    everybody.observe(seen, terms)
    if (!this.#isTight(seen)) return
    this.#given++
    everybody.#given++
  }

  observe(seen: SeenPromise, terms: Calibrated): void {
    const { predictedUs, patienceUs, actualUs } = seen
    const { coverageTarget, levelStep, levelMin, levelMax } = this.#options
    if (!Number.isFinite(patienceUs) || !Number.isFinite(predictedUs)) return
    const isLate = actualUs > patienceUs
    const wouldBeAdmitted = predictedUs * terms.biasRatio <= patienceUs * (1 - terms.marginRatio)
    const isTight = this.#isTight(seen)
    if (isLate ? wouldBeAdmitted : isTight) {
      const step = levelStep * (isLate ? coverageTarget : coverageTarget - 1)
      this.#level = Math.min(levelMax, Math.max(levelMin, this.#level + step))
    }
    if (isTight) {
      this.#ratios.observe(Math.min(RATIO_MAX, (actualUs / predictedUs) * RATIO_UNIT))
    }
    this.#terms = undefined
  }

  #isTight({ predictedUs, patienceUs }: SeenPromise): boolean {
    if (!Number.isFinite(patienceUs) || !Number.isFinite(predictedUs)) return false
    return predictedUs >= this.#options.tightRatio * patienceUs
  }
}
