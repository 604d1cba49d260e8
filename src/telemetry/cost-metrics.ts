import type { MetricFeed } from './metric-feed.ts'
import { MinuteRate } from './minute-rate.ts'
import { TopLabels, type TopLabelsOptions } from './top-labels.ts'

const NANO = 1e-9
const MICRO = 1e-6

/**
 * What do engines cost, and whom? From closed seconds and final costs; a second is closed within 3 s.
 *
 * `idle`, `waste`, `platform`, `crashed` and `late` are what no tenant pays for. Together with the tenants' lines they are
 * the bill, to the nano-dollar (law L15). Gauges cover the last minute; what is not known has no series.
 *
 * Bound: tenants by `TopLabels`; one record for each pool that the fleet has.
 */
export function declareCostMetrics(feed: MetricFeed, tenantOptions: TopLabelsOptions = {}): void {
  declarePoolCosts(feed)
  declareTenantCosts(feed, tenantOptions)
}

function declarePoolCosts({ registry, on }: MetricFeed): void {
  const byLine = registry.counter({
    name: 'spillway_platform_cost_usd_total',
    help: 'Cost of replicas that no tenant pays for, in dollars: idle, waste, platform, crashed, late.',
    labels: ['pool', 'line'],
  })
  const bill = registry.counter({
    name: 'spillway_bill_usd_total',
    help: 'Cost of the replicas of the pool, in dollars, from start to release.',
    labels: ['pool'],
  })
  const busy = registry.gauge({
    name: 'spillway_gpu_busy_ratio',
    help: 'Share of the last minute in which the pool’s replicas ran steps, measured or estimated.',
    labels: ['pool'],
  })
  const pools = new Map<string, { readonly busy: MinuteRate; readonly there: MinuteRate }>()
  on('second-closed', ({ at, poolId, billNano, busyUs, fromAt, toAt, lines }) => {
    if (billNano > 0) bill.with(poolId).inc(billNano * NANO)
    for (const [line, nano] of Object.entries(lines)) {
      if (nano > 0) byLine.with(poolId, line.replace('Nano', '')).inc(nano * NANO)
    }
    const pool = pools.get(poolId) ?? { busy: new MinuteRate(), there: new MinuteRate() }
    pools.set(poolId, pool)
    pool.busy.add(at, busyUs * MICRO)
    pool.there.add(at, (toAt - fromAt) * MICRO)
    const there = pool.there.perSecond(at)
    if (there > 0) busy.with(poolId).set(pool.busy.perSecond(at) / there)
  })
  on('fleet-changed', ({ what, name }) => {
    if (what !== 'pool-removed') return
    pools.delete(name)
    for (const family of [bill, byLine, busy]) family.forget(name)
  })
}

function declareTenantCosts({ registry, on }: MetricFeed, tenantOptions: TopLabelsOptions): void {
  const cost = registry.counter({
    name: 'spillway_cost_usd_total',
    help: 'Cost of engine time by tenant, in dollars: for its tickets (used) and for its part of idle time (idle).',
    labels: ['tenant', 'kind'],
  })
  const memory = registry.counter({
    name: 'spillway_kv_token_seconds_total',
    help: 'Tokens in KV memory × seconds of the requests whose cost is final; ÷ their number: GPU memory per request.',
    labels: ['tenant'],
  })
  const saved = registry.counter({
    name: 'spillway_saved_usd_total',
    help: 'What requests would have cost more, in dollars: alone in their engine (batching), without cached prompts (prefix).',
    labels: ['by'],
  })
  const perMillion = registry.gauge({
    name: 'spillway_tenant_usd_per_million_tokens',
    help: 'Cost of the engine time of the tenant’s requests ÷ their tokens, over the last minute.',
    labels: ['tenant'],
  })
  const minutes = new Map<string, { readonly usd: MinuteRate; readonly tokens: MinuteRate }>()
  const onForget = (tenant: string): void => {
    for (const family of [cost, memory, perMillion]) family.forget(tenant)
    minutes.delete(tenant)
  }
  const tenants = new TopLabels({ ...tenantOptions, onForget })
  const minuteOf = (label: string) => {
    const known = minutes.get(label) ?? { usd: new MinuteRate(), tokens: new MinuteRate() }
    minutes.set(label, known)
    return known
  }
  on('settled', ({ at, tenantId, usage, attempts }) => {
    if (attempts === 0) return
    minuteOf(tenants.observe(at, tenantId, 0)).tokens.add(at, usage.promptTokens + usage.outputTokens)
  })
  on('second-closed', (closed) => {
    for (const { tenantId, idleNano } of closed.tenants) {
      if (idleNano > 0) cost.with(tenants.observe(closed.at, tenantId, idleNano), 'idle').inc(idleNano * NANO)
    }
  })
  // A second's line of a tenant may be a credit, and a counter never falls: tenants are counted by final costs.
  on('cost-closed', ({ at, tenantId, isErrand, isPriced, costNano, batchSavedNano, prefixSavedNano, time }) => {
    const label = tenants.observe(at, tenantId, costNano)
    memory.with(label).inc(time.kvTokenUs * MICRO)
    if (isErrand || !isPriced) return
    saved.with('batching').inc(batchSavedNano * NANO)
    saved.with('prefix').inc(prefixSavedNano * NANO)
    cost.with(label, 'used').inc(costNano * NANO)
    const minute = minuteOf(label)
    minute.usd.add(at, costNano * NANO)
    const millions = minute.tokens.perSecond(at) / 1e6
    if (millions > 0) perMillion.with(label).set(minute.usd.perSecond(at) / millions)
  })
}
