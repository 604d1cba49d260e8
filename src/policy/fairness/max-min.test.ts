import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ClosedLoop, fairShares, type UniformClient } from '../../../test/support/closed-loop.ts'
import type { FairnessName } from './fairness.ts'

/** Slots that a client would hold if it never waited. */
const demandOf = (client: UniformClient): number =>
  (client.threads * client.serviceUs) / (client.serviceUs + client.thinkUs)

function sharesOf(clients: readonly UniformClient[], slots: number): number[] {
  return fairShares(
    clients.map(demandOf),
    clients.map((client) => client.weight ?? 1),
    slots,
  )
}

const S = 1_000_000

/** Runs two minutes and compares each client's average slots with its max-min fair share. */
function expectFair(fairness: FairnessName, clients: readonly UniformClient[], slots: number, margin: number): void {
  const got = new ClosedLoop({ clients, slots, fairness }).run(120 * S)
  sharesOf(clients, slots).forEach((fair, index) => {
    expect(got[index], `client ${index} of ${got.map((one) => one.toFixed(2))}`).toBeGreaterThan(fair * (1 - margin))
    expect(got[index], `client ${index} of ${got.map((one) => one.toFixed(2))}`).toBeLessThan(fair * (1 + margin))
  })
}

test('the oracle itself', () => {
  expect(fairShares([1, 9, 7, 3], [1, 1, 1, 1], 21)).toEqual([1, 9, 7, 3])
  expect(fairShares([1, 9, 7, 3], [1, 1, 1, 1], 18)).toEqual([1, 7, 7, 3])
  expect(fairShares([8, 8], [1, 3], 8)).toEqual([2, 6])
  expect(fairShares([8, 1], [1, 1], 4)).toEqual([3, 1])
})

const SHARING = ['deficit-round-robin', 'weighted-fair-queueing', 'virtual-token-counter'] as const

describe.each(SHARING)('%s gives max-min fair shares', (fairness) => {
  test.each<[string, number, UniformClient[]]>([
    [
      'two that want more than half, with different lengths',
      4,
      [
        { tenant: 'a', threads: 8, serviceUs: 1 * S, thinkUs: 0 },
        { tenant: 'b', threads: 8, serviceUs: 0.2 * S, thinkUs: 0.2 * S },
      ],
    ],
    [
      'a light one gets all it asks, whatever the heavy one sends',
      4,
      [
        { tenant: 'heavy', threads: 80, serviceUs: 0.5 * S, thinkUs: 0 },
        { tenant: 'light', threads: 1, serviceUs: 0.3 * S, thinkUs: 3 * S },
      ],
    ],
    [
      'weights 1 to 3',
      8,
      [
        { tenant: 'a', weight: 1, threads: 20, serviceUs: 0.3 * S, thinkUs: 0 },
        { tenant: 'b', weight: 3, threads: 20, serviceUs: 0.7 * S, thinkUs: 0.1 * S },
      ],
    ],
    [
      'three, one of which does not need its share',
      6,
      [
        { tenant: 'a', threads: 10, serviceUs: 0.25 * S, thinkUs: 0.1 * S },
        { tenant: 'b', threads: 10, serviceUs: 0.5 * S, thinkUs: 0.1 * S },
        { tenant: 'c', threads: 2, serviceUs: 0.2 * S, thinkUs: 1.8 * S },
      ],
    ],
    [
      'predictions wrong by a factor of four both ways',
      4,
      [
        { tenant: 'a', threads: 10, serviceUs: 0.5 * S, thinkUs: 0, predictedRatio: 4 },
        { tenant: 'b', threads: 10, serviceUs: 0.5 * S, thinkUs: 0, predictedRatio: 0.25 },
      ],
    ],
  ])('%s', (_name, slots, clients) => {
    // A light client that must wait for a slot asks a little less often than the oracle thinks.
    expectFair(fairness, clients, slots, 0.12)
  })
})

test('drawn at random: any overloading clients get their share by weight', () => {
  const client = fc.record({
    weight: fc.constantFrom(0.5, 1, 2, 4),
    serviceUs: fc.integer({ min: 50_000, max: 1 * S }),
    predictedRatio: fc.constantFrom(0.3, 1, 3),
  })
  fc.assert(
    fc.property(fc.array(client, { minLength: 2, maxLength: 5 }), fc.integer({ min: 1, max: 12 }), (drawn, slots) => {
      const clients = drawn.map((one, index) => ({ ...one, tenant: `t${index}`, threads: 2 * slots + 4, thinkUs: 0 }))
      const got = new ClosedLoop({ clients, slots, fairness: 'deficit-round-robin' }).run(300 * S)
      sharesOf(clients, slots).forEach((fair, index) => {
        expect(Math.abs((got[index] as number) - fair)).toBeLessThan(0.05 * slots)
      })
    }),
    { numRuns: 25 },
  )
})

test('orgs first: many tenants of one org do not crowd out the other org', () => {
  const many = Array.from({ length: 9 }, (_, i) => ({
    tenant: `a${i}`,
    org: 'A',
    threads: 5,
    serviceUs: 0.4 * S,
    thinkUs: 0,
  }))
  const clients = [...many, { tenant: 'b', org: 'B', threads: 10, serviceUs: 0.4 * S, thinkUs: 0 }]
  const loop = new ClosedLoop({ clients, slots: 6, fairness: 'deficit-round-robin', orgWeights: { A: 1, B: 1 } })
  const got = loop.run(120 * S)
  expect(got[9]).toBeGreaterThan(2.8)
  for (const each of got.slice(0, 9)) expect(each).toBeGreaterThan(0.28)
})

test('a split scenario: who joins late gets his share at once, and no more for having been away', () => {
  const clients: UniformClient[] = [
    { tenant: 'a', threads: 12, serviceUs: 0.3 * S, thinkUs: 0 },
    { tenant: 'b', threads: 12, serviceUs: 0.3 * S, thinkUs: 0, startAt: 60 * S },
  ]
  const loop = new ClosedLoop({ clients, slots: 4, fairness: 'deficit-round-robin' })
  expect(loop.run(60 * S)[0]).toBeGreaterThan(3.9)
  const settled = loop.run(70 * S)
  expect(settled[1]).toBeGreaterThan(1.8)
  expect(settled[1]).toBeLessThan(2.2)
})

test('offline work takes only what is left over', () => {
  const clients: UniformClient[] = [
    { tenant: 'a', threads: 3, serviceUs: 0.2 * S, thinkUs: 0.2 * S },
    { tenant: 'b', threads: 50, serviceUs: 0.1 * S, thinkUs: 0, band: 'offline' },
  ]
  const got = new ClosedLoop({ clients, slots: 4, fairness: 'deficit-round-robin' }).run(60 * S)
  expect(got[0]).toBeGreaterThan(1.2)
  expect((got[0] as number) + (got[1] as number)).toBeGreaterThan(3.95)
})

test('first come, first served is not fair, which is why it is only a yardstick', () => {
  const clients: UniformClient[] = [
    { tenant: 'heavy', threads: 60, serviceUs: 0.5 * S, thinkUs: 0 },
    { tenant: 'light', threads: 5, serviceUs: 0.5 * S, thinkUs: 0 },
  ]
  const got = new ClosedLoop({ clients, slots: 4, fairness: 'fifo' }).run(120 * S)
  expect(got[1]).toBeLessThan(0.4)
  expect(new ClosedLoop({ clients, slots: 4, fairness: 'deficit-round-robin' }).run(120 * S)[1]).toBeGreaterThan(1.9)
})
