import type { MetricFeed } from './metric-feed.ts'
import { MinuteRate } from './minute-rate.ts'

/** Kinds of tokens, as in `spillway_tokens_total`: cached tokens are part of the prompt tokens. */
const KINDS = ['prompt', 'cached', 'output'] as const

type PoolRates = Readonly<Record<(typeof KINDS)[number], MinuteRate>>

/**
 * How many tokens a second does each pool deliver? Tokens count when their request settles, as the engine counted them:
 * a long answer counts all at once, at its end. Gauges move with the tick of the pool, so an idle pool falls to 0.
 *
 * Bound: rates of the pools that the fleet has; a pool that is removed takes its rates with it.
 */
export function declareThroughputMetrics({ registry, on }: MetricFeed): void {
  const rate = registry.gauge({
    name: 'spillway_pool_tokens_per_second',
    help: 'Tokens a second of the requests that settled at the pool in the last minute; cached are part of prompt.',
    labels: ['pool', 'kind'],
  })
  const pools = new Map<string, PoolRates>()
  on('settled', ({ at, poolId, usage }) => {
    const rates = poolId === undefined ? undefined : pools.get(poolId)
    if (rates === undefined) return
    rates.prompt.add(at, usage.promptTokens)
    rates.cached.add(at, usage.cachedTokens)
    rates.output.add(at, usage.outputTokens)
  })
  on('pool-reported', ({ at, poolId }) => {
    let rates = pools.get(poolId)
    if (rates === undefined) {
      rates = { prompt: new MinuteRate(), cached: new MinuteRate(), output: new MinuteRate() }
      pools.set(poolId, rates)
    }
    for (const kind of KINDS) rate.with(poolId, kind).set(rates[kind].perSecond(at))
  })
  on('fleet-changed', ({ what, name }) => {
    if (what !== 'pool-removed') return
    pools.delete(name)
    rate.forget(name)
  })
}
