import { Rng } from '../../src/base/rng.ts'
import { Timers } from '../../src/base/timers.ts'
import { Dispatcher } from '../../src/policy/dispatch/dispatcher.ts'
import type { Effect } from '../../src/policy/dispatch/offer.ts'
import type { FairnessName } from '../../src/policy/fairness/fairness.ts'
import { FixedLimit } from '../../src/policy/limits/fixed.ts'
import { makeEstimate, makeKey, makeTenant } from '../../test/support/demand.ts'
import { type Finding, quantile, tell } from './tell.ts'

/**
 * Claim: with lanes and a shared buffer in which the longest yields, nine tenants that send four fifths of their share
 * lose nothing and wait little beside one that sends twenty times its own. Shown beside one shared queue that refuses
 * whoever comes when it is full, in arrival order and in fair order. Twenty slots, answers of half to one and a half seconds, a queue of
 * 200, ten virtual minutes.
 */
const SECONDS = 600
const SLOTS = 20
const QUEUE_MAX = 200
const SERVICE_US = 1_000_000
const HEAVY_PER_S = 40
const LIGHT_PER_S = 1.6
const LIGHT_COUNT = 9

type Buffer = 'one queue' | 'lanes'

interface Result {
  readonly lostRatio: number
  readonly waitMsP95: number
}

function run(fairness: FairnessName, buffer: Buffer): { light: Result; heavy: Result } {
  // One queue for all is a dispatcher whose own bound is never reached, with a guard before it.
  const queueRequestsMax = buffer === 'lanes' ? QUEUE_MAX : 10 * QUEUE_MAX
  const lanes = { depthMax: 10 * QUEUE_MAX, engineUsMax: 1e15, agingUsPerBid: 1e6 }
  const dispatcher = new Dispatcher({ options: { fairness, queueRequestsMax, lanes } })
  const replica = { id: 'r', poolId: 'pool', model: 'm', releaseId: 'm@1', region: 'here' }
  dispatcher.addReplica(0, { replica, limit: new FixedLimit({ sequencesMax: SLOTS }) })
  const rng = Rng.stream(3, 'arrivals')
  const timers = new Timers()
  const seen = { light: { offered: 0, lost: 0, waits: [0] }, heavy: { offered: 0, lost: 0, waits: [0] } }
  const arrivals = new Map<string, number>()
  let [now, ticketCount] = [0, 0]
  const at = (instant: number, what: () => void): void => void timers.add(instant, what)
  const kindOf = (ticketId: string): 'light' | 'heavy' => (ticketId.startsWith('heavy') ? 'heavy' : 'light')

  const apply = (effects: readonly Effect[]): void => {
    for (const effect of effects) {
      const kind = seen[kindOf(effect.ticketId)]
      if (effect.kind !== 'granted') kind.lost++
      else {
        kind.waits.push(now - (arrivals.get(effect.ticketId) as number))
        const measured = { cost: 500, ending: 'finished', firstTokenUs: 1 } as const
        at(now + Math.round(SERVICE_US * (0.5 + rng.next())), () =>
          apply(dispatcher.release(now, effect.lease.id, measured)),
        )
      }
      arrivals.delete(effect.ticketId)
    }
  }
  const arrive = (tenantId: string, perS: number): void => {
    at(now + Math.round((1e6 / perS) * (0.5 + rng.next())), () => arrive(tenantId, perS))
    const ticketId = `${tenantId}/${ticketCount++}`
    const kind = seen[kindOf(ticketId)]
    kind.offered++
    const isFull = buffer === 'one queue' && (dispatcher.poolFacts('pool')?.queuedCount ?? 0) >= QUEUE_MAX
    if (isFull) {
      kind.lost++
      return
    }
    arrivals.set(ticketId, now)
    const who = { tenant: makeTenant(tenantId), key: makeKey(tenantId, tenantId), band: 'standard', bid: 0 } as const
    const times = { arrivedAt: now, expiresAt: Number.POSITIVE_INFINITY, isReady: true }
    const offered = dispatcher.offer(now, {
      ticketId,
      poolId: 'pool',
      ...who,
      ...times,
      estimate: makeEstimate(100, 100),
    })
    if (offered.kind === 'refused') kind.lost++
    apply(offered.effects)
  }
  at(0, () => arrive('heavy', HEAVY_PER_S))
  for (let i = 0; i < LIGHT_COUNT; i++) at(i * 7_000, () => arrive(`light${i}`, LIGHT_PER_S))
  for (let next = timers.nextAt(); next !== undefined && next < SECONDS * 1e6; next = timers.nextAt()) {
    now = next
    timers.takeDue(next)?.()
  }
  const resultOf = ({ offered, lost, waits }: typeof seen.light): Result => ({
    lostRatio: lost / offered,
    waitMsP95: quantile(Float64Array.from(waits).sort(), 0.95) / 1_000,
  })
  return { light: resultOf(seen.light), heavy: resultOf(seen.heavy) }
}

const findings: Finding[] = []
for (const [name, fairness, buffer] of [
  ['one queue, arrival order', 'fifo', 'one queue'],
  ['one queue, fair order', 'deficit-round-robin', 'one queue'],
  ['lanes, longest yields', 'deficit-round-robin', 'lanes'],
] as const) {
  const { light, heavy } = run(fairness, buffer)
  const claim = buffer === 'lanes' ? { below: 0.01 } : {}
  findings.push({ name: `${name}: light tenants lose`, value: 100 * light.lostRatio, unit: '%', ...claim })
  findings.push({ name: `${name}: light tenants wait p95`, value: light.waitMsP95, unit: 'ms' })
  findings.push({ name: `${name}: the heavy one loses`, value: 100 * heavy.lostRatio, unit: '%' })
}
tell('a queue of 200 and a tenant at twenty times its share', findings)
