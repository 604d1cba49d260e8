import type { Instant } from '../../base/clock.ts'
import { Ring } from '../../base/ring.ts'
import { RatioSketch } from './ratio-sketch.ts'

/**
 * How much work will be asked for one cold start from now, and how wrong may that be?
 *
 * A replica that is ordered now works one cold start later, so that is the horizon. Several forecasters look there:
 * averages of the rate of offered work with memories from seconds to minutes, and Holt's level and trend (1957). Which is
 * best depends on the traffic. A hundred small requests a second with gusts of minutes want a short memory; a few huge ones
 * want a long one, for their scatter is no news; a steady ramp wants the trend, which elsewhere takes gusts for one and
 * costs replicas both ways. So each is held against what came: forecasts are kept until their time has come, and compared
 * with what was then asked for over `seenUs` (shorter gusts are the queue's to carry). The forecaster that would have been
 * cheapest at a lateness of `lateRatio` speaks (follow the leader: Cesa-Bianchi and Lugosi, Prediction, Learning, and
 * Games, 2006), until another one would have been cheaper by `betterRatio`.
 *
 * The margin is calibrated, not chosen: the `marginQuantile` of asked ÷ forecast of whoever speaks (`ratio-sketch.ts`).
 * Before there are `errorsMin` comparisons of the present size it is `firstMarginRatio`: what came after hours of next to
 * nothing says little about much. A trend may double the level and no more, because a
 * line through the first half of a spike leads anywhere.
 *
 * Bounds: FORECASTS_MAX forecasts on their way, one sketch for each forecaster. Deliberately not: no seasons (a day's
 * shape is slow beside a cold start), no reversion to a mean (it is caught short by every lasting rise), no clock.
 * Example: level 100/s, trend +0.5/s², cold start 60 s: 130/s. If nine tenths of the work were of late forecast at most 8 %
 * short, it plans for 140/s.
 */
export const FORECAST_DEFAULTS = {
  /** Memories of the averages: from a few bursts to several minutes, each three times the last. */
  memoriesUs: [10_000_000, 30_000_000, 90_000_000, 270_000_000],
  /** A trend is believed after ten minutes. */
  trendUs: 600_000_000,
  /** Demand is compared over this time: what a short queue carries needs no replica. */
  seenUs: 5_000_000,
  /** Time between two forecasts that are kept for comparison. */
  keepUs: 5_000_000,
  /** Comparisons fade over four hours: long enough for some rare rises, short enough for day and night. */
  errorsUs: 14_400_000_000,
  errorsMin: 24,
  marginQuantile: 0.7,
  firstMarginRatio: 0.2,
  /** Share of work that may be late where forecasters are compared. */
  lateRatio: 0.002,
  betterRatio: 0.02,
  /** Most that a trend may add, as a part of the level. */
  trendRatioMax: 1,
}

export type ForecastOptions = typeof FORECAST_DEFAULTS

/** Of Holt's level. */
const LEVEL_US = 20_000_000
/** On their way at once: an hour's cold start, at one each five seconds. */
const FORECASTS_MAX = 720

interface Offered {
  readonly cost: number
  readonly elapsedUs: number
  readonly horizonUs: number
}

interface Kept {
  readonly dueAt: Instant
  /** One of each forecaster. */
  readonly rates: readonly number[]
}

interface Forecaster {
  readonly memoryUs: number
  /** Undefined: no trend. */
  readonly trendUs: number | undefined
  level: number
  trend: number
  readonly sketch: RatioSketch
}

export class DemandForecast {
  readonly #options: ForecastOptions
  readonly #forecasters: readonly Forecaster[]
  readonly #holt: Forecaster
  #speaker: Forecaster
  #ageUs = 0
  #seen = 0
  #keptAt: Instant = Number.NEGATIVE_INFINITY
  readonly #kept = new Ring<Kept>(FORECASTS_MAX)
  #oldest: Kept | undefined
  #errorsCount = 0
  #factor: number | undefined

  constructor(options: Partial<ForecastOptions> = {}) {
    this.#options = { ...FORECAST_DEFAULTS, ...options }
    const { memoriesUs, errorsUs, trendUs } = this.#options
    const make = (memoryUs: number, ownTrendUs?: number): Forecaster => ({
      memoryUs,
      trendUs: ownTrendUs,
      level: 0,
      trend: 0,
      sketch: new RatioSketch(errorsUs),
    })
    const averages = memoriesUs.map((memoryUs) => make(memoryUs))
    this.#holt = make(LEVEL_US, trendUs)
    this.#forecasters = [...averages, this.#holt]
    // Until there is something to compare, the one that follows fastest.
    this.#speaker = averages[0] ?? this.#holt
  }

  /** What is asked for now. */
  get level(): number {
    return this.#holt.level
  }

  /** So much work was offered in the last `elapsedUs`; the next forecast looks `horizonUs` ahead. */
  observe(now: Instant, { cost, elapsedUs, horizonUs }: Offered): void {
    if (elapsedUs <= 0) return
    this.#ageUs += elapsedUs
    const rate = cost / elapsedUs
    for (const each of this.#forecasters) this.#follow(each, rate, elapsedUs)
    this.#seen += (rate - this.#seen) * this.#news(this.#options.seenUs, elapsedUs)
    this.#compare(now)
    if (now - this.#keptAt < this.#options.keepUs) return
    this.#keptAt = now
    this.#kept.push({ dueAt: now + horizonUs, rates: this.#forecasters.map((each) => this.#ahead(each, horizonUs)) })
    this.#choose()
  }

  /** The expected rate so long from now. */
  at(horizonUs: number): number {
    return this.#ahead(this.#speaker, horizonUs)
  }

  /** What to plan for on top of this forecast. */
  marginOn(rate: number): number {
    const { errorsMin, firstMarginRatio, marginQuantile } = this.#options
    if (this.#speaker.sketch.forecast < errorsMin * rate) return rate * firstMarginRatio
    this.#factor ??= Math.max(1, this.#speaker.sketch.quantile(marginQuantile))
    return rate * (this.#factor - 1)
  }

  #follow(each: Forecaster, rate: number, elapsedUs: number): void {
    const isFirst = this.#ageUs === elapsedUs
    const ahead = each.level + each.trend * elapsedUs
    const change = (rate - ahead) * this.#news(each.memoryUs, elapsedUs)
    each.level = Math.max(0, ahead + change)
    if (each.trendUs !== undefined && !isFirst) each.trend += change / (each.trendUs + elapsedUs)
  }

  /** Weight of what is new. While less has been seen than is remembered, everything seen weighs the same. */
  #news(memoryUs: number, elapsedUs: number): number {
    return Math.max(elapsedUs / (memoryUs + elapsedUs), elapsedUs / this.#ageUs)
  }

  #ahead({ level, trend }: Forecaster, horizonUs: number): number {
    const most = this.#options.trendRatioMax * level
    return Math.max(0, level + Math.min(most, trend * horizonUs))
  }

  #compare(now: Instant): void {
    for (;;) {
      this.#oldest ??= this.#kept.shift()
      if (this.#oldest === undefined || this.#oldest.dueAt > now) return
      const { rates } = this.#oldest
      this.#oldest = undefined
      for (const [i, { sketch }] of this.#forecasters.entries()) {
        const forecast = rates[i] as number
        if (forecast > 0) sketch.observe(this.#seen, forecast, this.#options.keepUs)
      }
      this.#errorsCount++
      this.#factor = undefined
    }
  }

  #choose(): void {
    const { errorsMin, lateRatio, betterRatio } = this.#options
    if (this.#errorsCount < errorsMin) return
    let least = this.#speaker.sketch.costAt(lateRatio) * (1 - betterRatio)
    for (const each of this.#forecasters) {
      const cost = each.sketch.costAt(lateRatio)
      if (cost >= least) continue
      least = cost
      this.#speaker = each
      this.#factor = undefined
    }
  }
}
