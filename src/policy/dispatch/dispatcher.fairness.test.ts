import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { makeEstimate, makeKey, makeTenant } from '../../../test/support/demand.ts'
import type { Estimate } from '../../domain/plan.ts'
import { FixedLimit } from '../limits/fixed.ts'
import { ReportedLimit } from '../limits/reported.ts'
import type { QueuedPart } from './backlog-listener.ts'
import { Dispatcher } from './dispatcher.ts'
import type { Effect, Offer } from './offer.ts'

const LANES = { depthMax: 1e6, engineUsMax: 1e15, agingUsPerBid: 1e6 }

interface Given {
  readonly slots: number
  readonly kvTokensMax?: number
  readonly weights?: Readonly<Record<string, number>>
}

/** A pool on which every tenant's tickets are named after it, and served cost is counted per tenant. */
function given({ slots, kvTokensMax, weights = {} }: Given) {
  const backlog = new Map<string, number>()
  const begun: Array<{ readonly cost: number; readonly grantedAt: number; readonly replicaCount: number }> = []
  const countPart = ({ share, cost }: QueuedPart, sign: 1 | -1): void => {
    const { id, weight } = share.tenant
    backlog.set(`${id}@${weight}`, (backlog.get(`${id}@${weight}`) ?? 0) + sign * cost)
  }
  const dispatcher = new Dispatcher({
    options: { queueRequestsMax: 1e6, lanes: LANES },
    listener: {
      joined: (_now, part) => countPart(part, 1),
      granted: (_now, part) => countPart(part, -1),
      left: (part) => countPart(part, -1),
      begun: (_now, { cost }, turn) => void begun.push({ cost, ...turn }),
      ended: () => {},
      reweighed: () => {},
    },
  })
  const replica = { id: 'r', poolId: 'pool', model: 'm', releaseId: 'm@1', region: 'here' }
  const limit = new FixedLimit({ sequencesMax: slots })
  dispatcher.addReplica(0, { replica, limit, ...(kvTokensMax === undefined ? {} : { kvTokensMax }) })
  const served = new Map<string, number>()
  const leases: Array<{ id: number; tenantId: string }> = []
  let count = 0
  const note = (effects: readonly Effect[]): void => {
    for (const effect of effects) {
      if (effect.kind === 'granted')
        leases.push({ id: effect.lease.id, tenantId: effect.ticketId.split('/')[0] as string })
    }
  }
  const offer = (tenantId: string, estimate: Estimate = makeEstimate(100, 100), over: Partial<Offer> = {}): void => {
    const tenant = makeTenant(tenantId, { weight: weights[tenantId] ?? 1 })
    const facts = {
      ticketId: `${tenantId}/${count++}`,
      poolId: 'pool',
      tenant,
      key: makeKey(`${tenantId}-k`, tenantId),
    }
    const rest = { band: 'standard', bid: 0, arrivedAt: 0, expiresAt: Number.POSITIVE_INFINITY, isReady: true } as const
    note(dispatcher.offer(0, { ...facts, ...rest, estimate, ...over }).effects)
  }
  const finish = (which: number, cost: number): void => {
    const [lease] = leases.splice(which % leases.length, 1)
    if (lease === undefined) return
    served.set(lease.tenantId, (served.get(lease.tenantId) ?? 0) + cost)
    note(dispatcher.release(0, lease.id, { cost, ending: 'finished', firstTokenUs: 1 }))
  }
  return { dispatcher, offer, finish, note, leases, served, backlog, begun }
}

describe('fairness through the dispatcher', () => {
  test('L7: two that are always backlogged differ by at most the bound, whatever others do and costs turn out to be', () => {
    const event = fc.record({
      kind: fc.constantFrom('finish', 'finish', 'finish', 'visitor', 'progress'),
      which: fc.nat(50),
      cost: fc.integer({ min: 1, max: 1_000 }),
      predicted: fc.integer({ min: 1, max: 200 }),
    })
    const scenario = fc.record({
      slots: fc.integer({ min: 1, max: 6 }),
      weight: fc.constantFrom(0.5, 1, 3),
      events: fc.array(event, { minLength: 200, maxLength: 400 }),
    })
    fc.assert(
      fc.property(scenario, ({ slots, weight, events }) => {
        const { dispatcher, offer, finish, leases, served } = given({ slots, weights: { b: weight } })
        const topUp = (predicted: number): void => {
          for (const id of ['a', 'b']) {
            while ((dispatcher.backlogOf('pool', id)?.queuedCount ?? 0) < 3) offer(id, makeEstimate(0, predicted))
          }
        }
        for (const { kind, which, cost, predicted } of events) {
          topUp(predicted)
          if (kind === 'visitor') offer(`v${which % 4}`, makeEstimate(0, predicted))
          else if (kind === 'progress') dispatcher.progress(0, leases[which % leases.length]?.id ?? 0, predicted)
          else finish(which, cost)
        }
        dispatcher.assertInvariants()
        const apart = Math.abs((served.get('a') ?? 0) - (served.get('b') ?? 0) / weight)
        // Quanta follow the median of predictions (at most 800); every slot may hold one error, and one turn's cost.
        const costMax = 1_000
        const bound = 2 * 800 + (slots + 2) * costMax * (1 + 1 / weight)
        expect(apart).toBeLessThanOrEqual(bound)
      }),
      { numRuns: 60 },
    )
  })

  test('weights change while tickets wait, and none is lost', () => {
    const { dispatcher, offer, finish, leases, served } = given({ slots: 1 })
    for (let i = 0; i < 400; i++) for (const id of ['a', 'b']) offer(id)
    for (let i = 0; i < 100; i++) finish(0, 500)
    expect(served.get('a')).toBe(served.get('b'))
    dispatcher.reweigh({ kind: 'tenant', tenantId: 'b', orgId: 'elsewhere', weight: 4 })
    served.clear()
    for (let i = 0; i < 250; i++) finish(0, 500)
    expect((served.get('b') as number) / (served.get('a') as number)).toBeCloseTo(4, 0)
    expect(dispatcher.backlogOf('pool', 'b')?.weight).toBe(4)
    while (leases.length > 0) finish(0, 500)
    expect(dispatcher.poolFacts('pool')).toMatchObject({ queuedCount: 0, heldCount: 0, queuedCost: 0, heldCost: 0 })
    dispatcher.assertInvariants()
  })

  test('the listener hears of every change, with the weight that each ticket joined with', () => {
    const { dispatcher, offer, finish, backlog } = given({ slots: 1 })
    offer('a')
    offer('a')
    offer('a', makeEstimate(50, 10), { isReady: false, ticketId: 'a/late' })
    expect([...backlog]).toEqual([['a@1', 500 + 90]])
    dispatcher.ready(0, 'a/late', makeEstimate(60, 10))
    expect(backlog.get('a@1')).toBe(500 + 100)
    dispatcher.reweigh({ kind: 'tenant', tenantId: 'a', orgId: 'a', weight: 2 })
    offer('a', makeEstimate(100, 100), { tenant: makeTenant('a', { weight: 2 }) })
    expect(backlog.get('a@1')).toBe(500 + 100)
    expect(backlog.get('a@2')).toBe(500)
    for (let i = 0; i < 4; i++) finish(0, 500)
    expect([...backlog]).toEqual([
      ['a@1', 0],
      ['a@2', 0],
    ])
  })

  test('who waits is told with its share, by weights of tenants and orgs, within the bound; offline work has none', () => {
    const { dispatcher, offer } = given({ slots: 1, weights: { b: 3 } })
    expect(dispatcher.backlogged('pool', 10)).toEqual([])
    for (const id of ['a', 'a', 'b']) offer(id)
    offer('c', makeEstimate(100, 100), { tenant: makeTenant('c', { orgId: 'b' }) })
    offer('d', makeEstimate(100, 100), { band: 'offline' })
    const shares = (max = 10): readonly number[] => dispatcher.backlogged('pool', max).map(({ share }) => share)
    expect(dispatcher.backlogged('pool', 10).map(({ tenantId }) => tenantId)).toEqual(['a', 'b', 'c'])
    expect(shares()).toEqual([1 / 5, 3 / 5, 1 / 5])
    dispatcher.reweigh({ kind: 'org', orgId: 'b', weight: 1 })
    expect(shares()).toEqual([1 / 2, 3 / 8, 1 / 8])
    expect(shares(2)).toEqual([1 / 2, 3 / 8])
    dispatcher.reweigh({ kind: 'tenant', tenantId: 'c', orgId: 'c', weight: 2 })
    expect(shares()).toEqual([1 / 4, 1 / 4, 1 / 2])
    expect(dispatcher.backlogged('nowhere', 10)).toEqual([])
  })

  test('the listener hears of a first token once, with the cost that was queued and when the turn was granted', () => {
    const { dispatcher, offer, finish, leases, begun } = given({ slots: 1 })
    offer('a', makeEstimate(100, 100, { meanCost: 700 }))
    dispatcher.begin(5, leases[0]?.id as number)
    dispatcher.begin(6, leases[0]?.id as number)
    expect(begun).toEqual([{ cost: 700, grantedAt: 0, replicaCount: 1 }])
    offer('a')
    finish(0, 500)
    finish(0, 500)
    expect(begun).toHaveLength(1)
  })

  test('tenants that come once are forgotten', () => {
    const { dispatcher, offer, finish } = given({ slots: 4 })
    for (let i = 0; i < 20_000; i++) {
      offer(`visitor-${i}`)
      if (i >= 4) finish(0, 500)
    }
    expect(dispatcher.view().pools[0]?.tenants.length).toBeLessThan(2_100)
    dispatcher.assertInvariants()
  })
})

describe('room', () => {
  test('an answer that grows past its prediction takes KV room, and gives it back', () => {
    const { dispatcher, offer, finish, leases } = given({ slots: 8, kvTokensMax: 1_000 })
    offer('a', makeEstimate(200, 100))
    dispatcher.progress(0, leases[0]?.id as number, 350)
    expect(dispatcher.view().pools[0]?.replicas[0]?.kvTokens).toBe(300 + 256)
    offer('b', makeEstimate(300, 150))
    expect(leases).toHaveLength(1)
    finish(0, 1_600)
    expect(leases.map((lease) => lease.tenantId)).toEqual(['b'])
    expect(dispatcher.view().pools[0]?.replicas[0]?.kvTokens).toBe(450)
  })

  test('idle is idle only for what fits', () => {
    const { dispatcher, offer } = given({ slots: 2, kvTokensMax: 1_000 })
    expect(dispatcher.hasIdleReplica('pool', makeEstimate(900, 100))).toBe(true)
    expect(dispatcher.hasIdleReplica('pool', makeEstimate(901, 100))).toBe(false)
    offer('a')
    expect(dispatcher.hasIdleReplica('pool', makeEstimate(10, 10))).toBe(false)
    expect(dispatcher.poolFacts('pool')).toMatchObject({ heldCount: 1, openReplicaCount: 1, readyReplicaCount: 1 })
  })

  test('a limit from the step model: long prompts with short answers wait, others pass', () => {
    const dispatcher = new Dispatcher({ options: { queueRequestsMax: 1e6, lanes: LANES } })
    const model = { meanTokenUs: (d: number, c: number, p: number) => 5_000 + 100 * d + 0.02 * c + 10 * p }
    const limit = new ReportedLimit({
      model,
      promise: { ttftUs: 1_000_000, interTokenUs: 20_000 },
      options: { prefillTokensMax: 1e6 },
    })
    const replica = { id: 'r', poolId: 'pool', model: 'm', releaseId: 'm@1', region: 'here' }
    dispatcher.addReplica(0, { replica, limit, kvTokensMax: 1e6 })
    const granted: string[] = []
    const offer = (ticketId: string, estimate: Estimate): void => {
      const who = { tenant: makeTenant(ticketId), key: makeKey(ticketId, ticketId), band: 'standard', bid: 0 } as const
      const times = { arrivedAt: 0, expiresAt: 1e15, isReady: true }
      const offered = dispatcher.offer(0, { ticketId, poolId: 'pool', ...who, ...times, estimate })
      for (const effect of offered.effects) {
        granted.push(effect.ticketId)
        // Its prompt is read at once: what is bounded here is what comes after.
        if (effect.kind === 'granted') dispatcher.begin(0, effect.lease.id)
      }
    }
    offer('one', makeEstimate(4_000, 8))
    offer('two', makeEstimate(4_000, 8))
    offer('long', makeEstimate(4_000, 8))
    expect(granted).toEqual(['one', 'two'])
    offer('chat', makeEstimate(200, 200))
    expect(granted).toEqual(['one', 'two', 'chat'])
    dispatcher.assertInvariants()
  })
})
