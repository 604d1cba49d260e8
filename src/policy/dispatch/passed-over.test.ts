import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { makeEstimate, makeKey, makeTenant } from '../../../test/support/demand.ts'
import { IndexedHeap } from '../../base/indexed-heap.ts'
import { FixedLimit } from '../limits/fixed.ts'
import { Dispatcher } from './dispatcher.ts'
import type { Effect } from './offer.ts'

/** Replicas whose memory is what everybody waits for, and tenants that always have more to send, each of one size. */
interface Given {
  readonly replicaCount: number
  readonly tenants: ReadonlyArray<{ readonly weight: number; readonly tokens: number }>
  readonly turns: number
}

const KV_TOKENS = 2_000
const LANES = { depthMax: 1e6, engineUsMax: 1e15, agingUsPerBid: 1e6 }
/** Prompt and answer are equally long; an output token counts four times. */
const costOf = (tokens: number): number => 5 * tokens

interface Running {
  heapIndex: number
  readonly sequence: number
  readonly leaseId: number
  readonly who: number
}

/** Largest gap of work charged per weight, and the part of the memory that was in use. */
function run({ replicaCount, tenants, turns }: Given): { gap: number; use: number; counts: number[] } {
  const dispatcher = new Dispatcher({ options: { queueRequestsMax: 1e6, lanes: LANES } })
  for (let i = 0; i < replicaCount; i++) {
    const replica = { id: `r${i}`, poolId: 'pool', model: 'm', releaseId: 'm@1', region: 'here' }
    const limit = new FixedLimit({ sequencesMax: 256 })
    dispatcher.addReplica(0, { replica, limit, kvTokensMax: KV_TOKENS })
  }
  const people = tenants.map(({ weight }, i) => ({
    tenant: makeTenant(`t${i}`, { weight }),
    key: makeKey(`k${i}`, `t${i}`),
  }))
  const running = new IndexedHeap<Running>()
  const served = tenants.map(() => 0)
  const counts = tenants.map(() => 0)
  let now = 0
  let heldTokens = 0
  let useSum = 0
  let ticketCount = 0
  let gap = 0
  const note = (effects: readonly Effect[]): void => {
    for (const effect of effects) {
      if (effect.kind !== 'granted') throw new Error(`a turn was expected, not ${effect.kind}`)
      const who = Number(effect.ticketId.split('/')[0])
      const { tokens, weight } = tenants[who] as Given['tenants'][number]
      heldTokens += 2 * tokens
      served[who] = (served[who] as number) + costOf(tokens) / weight
      counts[who] = (counts[who] as number) + 1
      const sequence = effect.lease.id
      // An answer takes as long as it is, give or take a tenth.
      const takes = tokens * (0.9 + ((sequence * 7_919) % 97) / 485)
      running.push({ heapIndex: -1, sequence, leaseId: sequence, who }, now + Math.round(takes * 1_000))
    }
  }
  const topUp = (): void => {
    tenants.forEach(({ tokens }, who) => {
      const { tenant, key } = people[who] as (typeof people)[number]
      while ((dispatcher.backlogOf('pool', tenant.id)?.queuedCount ?? 0) < 80) {
        const facts = {
          ticketId: `${who}/${ticketCount++}`,
          poolId: 'pool',
          tenant,
          key,
          band: 'standard',
          bid: 0,
        } as const
        const times = { arrivedAt: now, expiresAt: Number.POSITIVE_INFINITY, isReady: true }
        const estimate = makeEstimate(tokens, tokens, { outputTokensHigh: tokens })
        note(dispatcher.offer(now, { ...facts, ...times, estimate }).effects)
      }
    })
  }
  topUp()
  const base = [...served]
  for (let turn = 0; turn < turns; turn++) {
    const endsAt = running.peekKey() as number
    useSum += heldTokens * (endsAt - now)
    now = endsAt
    const { leaseId, who } = running.pop() as Running
    const { tokens } = tenants[who] as Given['tenants'][number]
    heldTokens -= 2 * tokens
    note(dispatcher.release(now, leaseId, { cost: costOf(tokens), ending: 'finished', firstTokenUs: 1 }))
    topUp()
    dispatcher.assertInvariants()
    const ahead = served.map((one, i) => one - (base[i] as number))
    gap = Math.max(gap, Math.max(...ahead) - Math.min(...ahead))
  }
  return { gap, use: useSum / now / replicaCount / KV_TOKENS, counts }
}

/** The dearest turn, and what it weighs for whoever has least: what fits into its room counts that much for them. */
function dearest(tenants: Given['tenants']): { cost: number; perWeight: number } {
  const cost = Math.max(...tenants.map(({ tokens }) => costOf(tokens)))
  return { cost, perWeight: cost / Math.min(...tenants.map(({ weight }) => weight)) }
}

describe('when memory is what everybody waits for', () => {
  // Three times five runs, so that none is long.
  test.each([1, 2, 3])(
    'L7: work per weight differs by a few turns a replica, whatever sizes and weights, however long it goes on (%i)',
    () => {
      const tenant = fc.record({ weight: fc.constantFrom(0.5, 1, 3), tokens: fc.constantFrom(20, 50, 100, 200, 400) })
      const given = fc.record({
        replicaCount: fc.integer({ min: 1, max: 4 }),
        tenants: fc.array(tenant, { minLength: 2, maxLength: 4 }),
        turns: fc.constantFrom(300, 1_000),
      })
      fc.assert(
        fc.property(given, (one) => {
          const { cost, perWeight } = dearest(one.tenants)
          // Without memory 2·Q + 2·C; and at every replica the room that one turn leaves, filled by others, twice over:
          // before it is kept, and while it empties.
          const bound = 2 * cost + (2 + 2 * one.replicaCount) * perWeight
          expect(run(one).gap).toBeLessThanOrEqual(bound)
        }),
        { numRuns: 5 },
      )
    },
  )

  test('who is owed most has the only replica kept for it first, whoever was passed over earlier', () => {
    const tenants = [
      { weight: 1, tokens: 400 },
      { weight: 3, tokens: 400 },
      { weight: 0.5, tokens: 100 },
      { weight: 3, tokens: 200 },
    ]
    const { gap, use } = run({ replicaCount: 1, tenants, turns: 300 })
    expect(gap).toBeLessThanOrEqual(2 * dearest(tenants).perWeight)
    expect(use).toBeGreaterThan(0.9)
  })

  test('weights count: of four that send the same, each gets turns by its weight', () => {
    const tenants = [1, 2, 3, 4].map((weight) => ({ weight, tokens: 100 }))
    const { gap, counts } = run({ replicaCount: 1, tenants, turns: 1_000 })
    expect(gap).toBeLessThanOrEqual(2 * dearest(tenants).perWeight)
    expect(counts.map((count) => Math.round(count / 100))).toEqual([1, 2, 3, 4])
  })

  test('sizes do not: who sends eight times as long gets an eighth of the turns, on four replicas too', () => {
    const tenants = [50, 400].map((tokens) => ({ weight: 1, tokens }))
    const { counts, use } = run({ replicaCount: 4, tenants, turns: 2_000 })
    const [short = 0, long = 0] = counts
    expect(short / long).toBeGreaterThan(6)
    expect(short / long).toBeLessThan(9)
    // What is kept free for the long ones is given up soon: four fifths and more of the memory is in use.
    expect(use).toBeGreaterThan(0.8)
  })
})
