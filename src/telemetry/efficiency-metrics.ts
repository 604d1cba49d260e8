import type { MetricFeed } from './metric-feed.ts'
import { MinuteRate } from './minute-rate.ts'

interface PoolMinute {
  readonly work: MinuteRate
  readonly workable: MinuteRate
  readonly tokens: MinuteRate
  /** The sums of the last report: reports count since the start. */
  workUs: number
  workableUs: number
}

/**
 * How much do a pool's engines do of what they could, and what does a token cost? Over the last minute, from what the
 * pool reports and from the tokens of the requests that settled there. What is not known has no series: a zero would be
 * read as idle engines, or as tokens for nothing.
 *
 * Bound: one record for each pool that the fleet has; a pool that is removed takes its record with it.
 * Example: two replicas at $4 an hour settle 1.2 million tokens in a minute: $0.1333 ÷ 1.2 = $0.111 per million.
 */
export function declareEfficiencyMetrics({ registry, on }: MetricFeed): void {
  const gauge = (name: string, help: string) => registry.gauge({ name, help, labels: ['pool'] })
  const utilization = gauge(
    'spillway_pool_utilization_ratio',
    'Work of the pool\u2019s engines in the last minute ÷ what full engines would do; not busy time.',
  )
  const usdPerHour = gauge('spillway_pool_usd_per_hour', 'Price of the replicas of the pool, in dollars an hour.')
  const usdPerMillion = gauge(
    'spillway_pool_usd_per_million_tokens',
    'Price of the replicas ÷ tokens of the requests that settled at the pool, in the last minute.',
  )
  const set = (family: typeof usdPerHour, poolId: string, value: number | undefined): void => {
    if (value === undefined) family.forget(poolId)
    else family.with(poolId).set(value)
  }
  const pools = new Map<string, PoolMinute>()
  on('settled', ({ at, poolId, usage }) => {
    if (poolId !== undefined) pools.get(poolId)?.tokens.add(at, usage.promptTokens + usage.outputTokens)
  })
  on('pool-reported', (entry) => {
    const { at, poolId, workUs = 0, workableUs = 0 } = entry
    const minute = pools.get(poolId) ?? newMinute()
    pools.set(poolId, minute)
    minute.work.add(at, workUs - minute.workUs)
    minute.workable.add(at, workableUs - minute.workableUs)
    minute.workUs = workUs
    minute.workableUs = workableUs
    set(utilization, poolId, ratio(minute.work.perSecond(at), minute.workable.perSecond(at)))
    set(usdPerHour, poolId, entry.usdPerHour)
    const millionsPerHour = (minute.tokens.perSecond(at) * SECONDS_PER_HOUR) / MILLION
    set(usdPerMillion, poolId, entry.usdPerHour === undefined ? undefined : ratio(entry.usdPerHour, millionsPerHour))
  })
  on('fleet-changed', ({ what, name }) => {
    if (what !== 'pool-removed') return
    pools.delete(name)
    for (const family of [utilization, usdPerHour, usdPerMillion]) family.forget(name)
  })
}

const SECONDS_PER_HOUR = 3_600
const MILLION = 1_000_000

const newMinute = (): PoolMinute => ({
  work: new MinuteRate(),
  workable: new MinuteRate(),
  tokens: new MinuteRate(),
  workUs: 0,
  workableUs: 0,
})

const ratio = (part: number, whole: number): number | undefined => (whole > 0 ? part / whole : undefined)
