import { usToSeconds } from '../base/clock.ts'
import type { MetricFeed } from './metric-feed.ts'

/** Limits that several gateways share: is the lease store heard, and what can go wrong meanwhile? No series without sharing. */
export function declareSharingMetrics({ registry, on }: MetricFeed): void {
  const gateways = registry.gauge({
    name: 'spillway_sharing_gateways',
    help: 'Gateways that share limits, as the lease store last told this one, by whether the store hears them.',
    labels: ['state'],
  })
  const silentShards = registry.gauge({
    name: 'spillway_sharing_silent_shards',
    help: 'Shards of the lease store that do not answer this gateway; it uses its safe share of their limits.',
  })
  const answerAge = registry.gauge({
    name: 'spillway_sharing_answer_age_seconds',
    help: 'Time since the lease store last answered, of the shard that has been silent for longest.',
  })
  const beyondForget = registry.gauge({
    name: 'spillway_sharing_beyond_forget_seconds',
    help: 'Time for which this gateway has been silent beyond sharing.forgetMs, so that others were given its share too.',
  })
  const excess = registry.gauge({
    name: 'spillway_sharing_excess_bound_seconds',
    help: 'Bound of the over-admission by silent gateways, as seconds of a limit\u2019s rate.',
  })
  const calls = registry.counter({
    name: 'spillway_sharing_calls_total',
    help: 'Calls of the lease store, by outcome.',
    labels: ['outcome'],
  })
  const accounts = registry.counter({
    name: 'spillway_sharing_accounts_total',
    help: 'Accounts that were renewed in these calls.',
  })
  const fetches = registry.counter({
    name: 'spillway_sharing_fetches_total',
    help: 'Requests larger than their slice that waited for the lease store, by outcome.',
    labels: ['outcome'],
  })
  on('sharing-reported', (entry) => {
    gateways.with('heard').set(entry.gatewayCount - entry.silentCount)
    gateways.with('silent').set(entry.silentCount)
    silentShards.with().set(entry.silentShardCount)
    answerAge.with().set(usToSeconds(entry.answerAgeUs))
    beyondForget.with().set(usToSeconds(entry.beyondForgetUs))
    excess.with().set(usToSeconds(entry.excessUs))
    calls.with('answered').inc(entry.answerCount)
    calls.with('unanswered').inc(entry.callCount - entry.answerCount)
    accounts.with().inc(entry.accountCount)
    fetches.with('answered').inc(entry.fetchedCount)
    fetches.with('late').inc(entry.fetchCount - entry.fetchedCount)
  })
}
