import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cpuMsOf } from '../../../test/support/cpu-time.ts'
import { assert } from '../../base/assert.ts'
import { DeficitRoundRobin } from './deficit-round-robin.ts'
import { MedianCost } from './median-cost.ts'
import { Share } from './share.ts'

const QUANTUM = 100

function given(weights: readonly number[]) {
  const typical = new MedianCost()
  typical.observe(QUANTUM)
  const order = new DeficitRoundRobin<Share>(typical)
  const shares = weights.map((weight, index) => new Share(String(index), weight))
  return { order, shares, share: (index: number) => shares[index] as Share }
}

/** Rounds as the textbook has them: each gives every share its quantum, one after the other. */
class TextbookRounds {
  readonly #weights: number[]
  readonly #deficits: number[]
  readonly #active = new Set<number>()
  readonly #aside = new Set<number>()
  readonly #turnCosts = new Map<number, number>()
  readonly #seen = new Set<number>()

  constructor(weights: readonly number[]) {
    this.#weights = [...weights]
    this.#deficits = weights.map(() => 0)
  }

  /** While somebody stands aside, looking ahead is not yet a round: only a turn makes it one. */
  get eligible(): number[] {
    if (this.#aside.size === 0) this.#toTurn()
    let ahead = 0
    while (this.#asked().length > 0 && this.#mayGo(ahead).length === 0) ahead++
    return this.#mayGo(ahead)
  }

  turn(index: number, cost: number): void {
    this.#toTurn()
    this.charge(index, cost)
    this.#turnCosts.set(index, cost)
  }

  pass(index: number): void {
    this.#aside.add(index)
  }

  recall(index: number): void {
    this.#aside.delete(index)
    this.#deficits[index] = Math.min(
      this.deficitOf(index),
      32 * Math.max(this.#quantum(index), this.#turnCosts.get(index) ?? 0),
    )
  }

  isAside(index: number): boolean {
    return this.#aside.has(index)
  }

  enter(index: number): void {
    void this.eligible
    if (!this.#seen.has(index)) this.#deficits[index] = this.#quantum(index)
    this.#seen.add(index)
    this.#deficits[index] = Math.min(this.#quantum(index), this.deficitOf(index))
    this.#active.add(index)
  }

  leave(index: number): void {
    this.#aside.delete(index)
    this.#active.delete(index)
    this.#deficits[index] = this.deficitOf(index)
    if (this.#active.size > 0) return
    while (this.deficitOf(index) <= 0) this.#round()
  }

  charge(index: number, cost: number): void {
    this.#deficits[index] = this.deficitOf(index) - cost
  }

  reweigh(index: number, weight: number): void {
    // Credit that was lost by being away does not come back with a larger weight.
    this.#deficits[index] = this.deficitOf(index)
    this.#weights[index] = weight
  }

  isActive(index: number): boolean {
    return this.#active.has(index)
  }

  deficitOf(index: number): number {
    const deficit = this.#deficits[index] as number
    return this.#active.has(index) || !this.#seen.has(index) ? deficit : Math.min(this.#quantum(index), deficit)
  }

  hasSeen(index: number): boolean {
    return this.#seen.has(index)
  }

  #quantum(index: number): number {
    return (this.#weights[index] as number) * QUANTUM
  }

  #asked(): number[] {
    return [...this.#active].filter((index) => !this.#aside.has(index))
  }

  #mayGo(ahead = 0): number[] {
    return this.#asked().filter((index) => (this.#deficits[index] as number) + ahead * this.#quantum(index) > 0)
  }

  #toTurn(): void {
    if (this.#asked().length > 0) while (this.#mayGo().length === 0) this.#round()
  }

  #round(): void {
    for (const index of this.#seen) {
      const next = this.deficitOf(index) + this.#quantum(index)
      this.#deficits[index] = this.#active.has(index) ? next : Math.min(this.#quantum(index), next)
    }
  }
}

const weight = fc.constantFrom(0.5, 1, 2, 5)

describe('deficit round robin', () => {
  test('bulk rounds do what textbook rounds do', () => {
    const step = fc.record({
      kind: fc.constantFrom('enter', 'leave', 'turn', 'turn', 'turn', 'charge', 'reweigh', 'pass', 'recall'),
      index: fc.nat(5),
      cost: fc.constantFrom(0, 1, 30, 100, 250, 4_000, 30_000),
      refund: fc.boolean(),
      weight,
    })
    fc.assert(
      fc.property(
        fc.array(weight, { minLength: 6, maxLength: 6 }),
        fc.array(step, { maxLength: 100 }),
        (weights, steps) => {
          const { order, share, shares } = given(weights)
          const twin = new TextbookRounds(weights)
          for (const one of steps) {
            const isActive = twin.isActive(one.index)
            if (one.kind === 'enter' && !isActive) {
              order.enter(share(one.index))
              twin.enter(one.index)
            } else if (one.kind === 'leave' && isActive) {
              order.leave(share(one.index))
              twin.leave(one.index)
            } else if (one.kind === 'charge' && twin.hasSeen(one.index)) {
              order.charge(share(one.index), one.refund ? -one.cost : one.cost)
              twin.charge(one.index, one.refund ? -one.cost : one.cost)
            } else if (one.kind === 'reweigh') {
              order.reweigh(share(one.index), one.weight)
              twin.reweigh(one.index, one.weight)
            } else if (one.kind === 'pass' && isActive && !twin.isAside(one.index)) {
              order.pass(share(one.index))
              twin.pass(one.index)
            } else if (one.kind === 'recall' && twin.isAside(one.index)) {
              order.recall(share(one.index))
              twin.recall(one.index)
            } else if (one.kind === 'turn' && order.askedCount > 0) {
              const first = Number(order.first()?.id)
              assert(twin.eligible.includes(first), 'the textbook allows the pick')
              order.takeTurn(share(first), one.cost)
              twin.turn(first, one.cost)
            }
            order.assertInvariants()
            // The textbook knows nothing of lists: both are asked in the same round.
            if (order.size > 0) order.first()
            void twin.eligible
            shares.forEach((each, index) => {
              expect(twin.hasSeen(index) ? order.standingOf(each) : 0).toBeCloseTo(twin.deficitOf(index), 5)
            })
          }
        },
      ),
      { numRuns: 300 },
    )
  })

  test('credit that was lost by being away does not come back with a larger weight', () => {
    const { order, share } = given([1])
    order.enter(share(0))
    order.reweigh(share(0), 0.5)
    order.leave(share(0))
    order.reweigh(share(0), 5)
    expect(order.standingOf(share(0))).toBe(0.5 * QUANTUM)
  })

  test('one that is passed over is owed what others take meanwhile, and no more than it may save', () => {
    const { order, share } = given([1, 1, 1])
    for (const index of [0, 1, 2]) order.enter(share(index))
    order.pass(share(0))
    // Asking the others is no round.
    for (let asked = 0; asked < 10; asked++) order.first()
    expect(order.standingOf(share(0))).toBe(QUANTUM)
    for (let turns = 0; turns < 20; turns++) order.takeTurn(order.first() as Share, 100)
    expect(order.standingOf(share(0))).toBe(10 * QUANTUM)
    expect(order.roundsOwedTo(share(0))).toBe(10)
    order.recall(share(0))
    for (let turns = 0; turns < 10; turns++) {
      expect(order.first()).toBe(share(0))
      order.takeTurn(share(0), 100)
    }
    expect(order.first()).not.toBe(share(0))
    order.pass(share(0))
    for (let turns = 0; turns < 200; turns++) order.takeTurn(order.first() as Share, 100)
    order.recall(share(0))
    expect(order.standingOf(share(0))).toBe(32 * QUANTUM)
    order.assertInvariants()
  })

  test('L7: over any interval, work per weight of two active shares differs by at most 2·Q + C/w + C/w', () => {
    const scenario = fc.record({
      weights: fc.array(weight, { minLength: 2, maxLength: 8 }),
      costs: fc.array(fc.integer({ min: 1, max: 2_000 }), { minLength: 200, maxLength: 400 }),
    })
    fc.assert(
      fc.property(scenario, ({ weights, costs }) => {
        const { order, shares } = given(weights)
        for (const each of shares) order.enter(each)
        const served = shares.map(() => 0)
        const apart = pairs(weights.length).map(() => ({ least: 0, most: 0 }))
        for (const cost of costs) {
          const first = order.first() as Share
          order.takeTurn(first, cost)
          served[Number(first.id)] = (served[Number(first.id)] as number) + cost / first.weight
          pairs(weights.length).forEach(([i, j], index) => {
            const gap = (served[i] as number) - (served[j] as number)
            const seen = apart[index] as { least: number; most: number }
            seen.least = Math.min(seen.least, gap)
            seen.most = Math.max(seen.most, gap)
          })
        }
        const largest = Math.max(...costs)
        pairs(weights.length).forEach(([i, j], index) => {
          const { least, most } = apart[index] as { least: number; most: number }
          const bound = 2 * QUANTUM + largest / (weights[i] as number) + largest / (weights[j] as number)
          expect(most - least).toBeLessThanOrEqual(bound + 1e-6)
        })
      }),
      { numRuns: 150 },
    )
  })

  test('errors of prediction are made good: with every cost trued up later, the same bound and the error in flight', () => {
    const turn = fc.record({
      predicted: fc.integer({ min: 1, max: 500 }),
      measured: fc.integer({ min: 1, max: 2_000 }),
    })
    fc.assert(
      fc.property(fc.array(turn, { minLength: 300, maxLength: 500 }), fc.integer({ min: 0, max: 8 }), (turns, late) => {
        const { order, shares } = given([1, 1, 1])
        for (const each of shares) order.enter(each)
        const served = [0, 0, 0]
        const flying: Array<{ share: Share; predicted: number; measured: number }> = []
        for (const { predicted, measured } of turns) {
          const first = order.first() as Share
          order.takeTurn(first, predicted)
          flying.push({ share: first, predicted, measured })
          const done = flying.length > late ? flying.shift() : undefined
          if (done === undefined) continue
          order.charge(done.share, done.measured - done.predicted)
          served[Number(done.share.id)] = (served[Number(done.share.id)] as number) + done.measured
        }
        const bound = 2 * QUANTUM + (late + 2) * 2_000
        expect(Math.max(...served) - Math.min(...served)).toBeLessThanOrEqual(bound)
      }),
      { numRuns: 100 },
    )
  })

  test('a share that was away comes back level: debt decays, credit is not hoarded', () => {
    const { order, share } = given([1, 1])
    order.enter(share(0))
    order.enter(share(1))
    order.takeTurn(share(0), 350)
    order.leave(share(0))
    expect(order.standingOf(share(0))).toBe(-250)
    for (let turns = 0; turns < 2; turns++) order.takeTurn(order.first() as Share, 100)
    order.first()
    expect(order.standingOf(share(0))).toBe(-50)
    for (let turns = 0; turns < 50; turns++) order.takeTurn(order.first() as Share, 100)
    order.enter(share(0))
    expect(order.standingOf(share(0))).toBe(QUANTUM)
  })

  test('a turn that still ran when nobody waited gives back what it cost less, as one run of turns and no more', () => {
    const { order, share } = given([1, 1])
    order.enter(share(0))
    order.takeTurn(share(0), 420)
    order.leave(share(0))
    order.enter(share(1))
    order.enter(share(0))
    // It is level with the other: what it was charged is forgiven. Then its turn ends, and cost 60.
    expect(order.standingOf(share(0))).toBeLessThanOrEqual(QUANTUM)
    order.charge(share(0), 60 - 420)
    const turns = Array.from({ length: 40 }, () => {
      const first = order.first() as Share
      order.takeTurn(first, 420)
      order.charge(first, 60 - 420)
      return first.id
    }).join('')
    // The difference is 360: six turns of 60, beside the quantum of each.
    const most = 360 + 2 * QUANTUM + 60
    for (let from = 0; from < turns.length; from++) {
      const rest = turns.slice(from)
      const apart = 60 * (2 * rest.replaceAll('1', '').length - rest.length)
      expect(Math.abs(apart), turns).toBeLessThanOrEqual(most)
    }
    expect(turns).toMatch(/00000/)
    expect(turns.slice(20)).not.toMatch(/000|111/)
  })

  test('who asks for little goes first in the round, and gets one quantum of it, however often it comes and goes', () => {
    const { order, share, shares } = given([1, 1, 1])
    order.enter(share(0))
    order.enter(share(1))
    for (let turns = 0; turns < 11; turns++) order.takeTurn(order.first() as Share, 5_000)
    const served = [0, 0, 0]
    for (let turns = 0; turns < 3_000; turns++) {
      if (!share(2).isActive) {
        order.enter(share(2))
        expect(order.standingOf(share(2))).toBeLessThanOrEqual(QUANTUM)
      }
      const first = order.first() as Share
      served[Number(first.id)] = (served[Number(first.id)] as number) + 100
      order.takeTurn(first, 100)
      // The newcomer never has more than one waiting.
      if (first === share(2)) order.leave(first)
    }
    expect(Math.max(...served) - Math.min(...served)).toBeLessThanOrEqual(5_000 + 2 * QUANTUM)
    expect(shares).toHaveLength(3)
  })

  test('one that comes back to a busy round is next', () => {
    const { order, share, shares } = given([1, 1, 1, 1, 1])
    for (const each of shares.slice(1)) order.enter(each)
    for (let turns = 0; turns < 10; turns++) order.takeTurn(order.first() as Share, 100)
    order.enter(share(0))
    expect(order.first()).toBe(share(0))
    order.takeTurn(share(0), 100)
    expect(order.first()).not.toBe(share(0))
  })

  test('a turn of a million quanta costs no million rounds', async () => {
    const { order, shares } = given([1, 1, 1])
    for (const each of shares) order.enter(each)
    const cpuMs = await cpuMsOf(() => {
      for (let turns = 0; turns < 1_000; turns++) order.takeTurn(order.first() as Share, QUANTUM * 1e6)
    })
    expect(cpuMs).toBeLessThan(500)
    order.assertInvariants()
  })
})

function pairs(count: number): Array<[number, number]> {
  const all: Array<[number, number]> = []
  for (let i = 0; i < count; i++) for (let j = i + 1; j < count; j++) all.push([i, j])
  return all
}
