import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { makeEstimate, makeKey, makeTenant } from '../../../test/support/demand.ts'
import { nthSeed } from '../../../test/support/nth-seed.ts'
import { Rng } from '../../base/rng.ts'
import { Dispatcher } from '../dispatch/dispatcher.ts'
import type { Placer } from '../dispatch/placer.ts'
import { FixedLimit } from '../limits/fixed.ts'
import { PLACER_DEFAULTS, type PlacerOptions, RoutingPlacer } from './placer.ts'
import { nextDepth } from './prefix-index.ts'
import { REPLICA_BOOK_DEFAULTS } from './replica-book.ts'
import type { PlacementAsk, RoomView } from './room-view.ts'
import { WEIGHT_DEFAULTS } from './scorers/scorers.ts'

interface TestRoom extends RoomView {
  readonly ledger: { engineUs: number; sequences: number; kvTokens: number }
}

const makeRoom = (ordinal: number, region = 'here', kvTokensMax = Number.POSITIVE_INFINITY): TestRoom => ({
  replica: { id: `r${ordinal}`, poolId: 'p', model: 'm', releaseId: 'm@1', region },
  ordinal,
  place: ordinal,
  kvTokensMax,
  ledger: { engineUs: 0, sequences: 0, kvTokens: 0 },
})

const makeAsk = (over: Partial<PlacementAsk> & { readonly prompt?: number } = {}): PlacementAsk => ({
  ticketId: 't',
  estimate: makeEstimate(over.prompt ?? 3_200, 100),
  prefixHashes: undefined,
  sessionHash: undefined,
  ...over,
})

const makePlacer = (options: Partial<PlacerOptions> = {}, distances: Record<string, number> = {}) =>
  new RoutingPlacer({ options, rng: Rng.stream(1, 'routing'), distanceUs: (region) => distances[region] ?? 0 })

const blocks = (family: number, count: number): number[] => Array.from({ length: count }, (_, i) => family * 10_000 + i)

/** The rule in its plainest form, over everything, with its own bookkeeping. */
class NaivePlacer {
  readonly #held = new Map<string, Set<number>>()
  readonly #doneAt = new Map<string, number>()

  choose(now: number, ask: PlacementAsk, rooms: readonly TestRoom[]): TestRoom {
    const lightest = Math.min(...rooms.map((room) => room.ledger.engineUs))
    const costs = rooms.map((room) => {
      const uncached = this.#uncached(ask, room, lightest)
      const queue = Math.max(0, (this.#doneAt.get(room.replica.id) ?? 0) - now)
      return queue + uncached * PLACER_DEFAULTS.prefillUsPerToken + room.ledger.engineUs * WEIGHT_DEFAULTS.load
    })
    const best = rooms[costs.indexOf(Math.min(...costs))] as TestRoom
    const { id } = best.replica
    const readUs = this.#uncached(ask, best, lightest) * PLACER_DEFAULTS.prefillUsPerToken
    this.#doneAt.set(id, Math.max(now, this.#doneAt.get(id) ?? 0) + readUs)
    const held = this.#held.get(id) ?? new Set<number>()
    for (const hash of ask.prefixHashes ?? []) held.add(hash)
    this.#held.set(id, held)
    return best
  }

  #uncached(ask: PlacementAsk, room: TestRoom, lightest: number): number {
    const { promptTokens, engineUs } = ask.estimate
    if (room.ledger.engineUs > 1.75 * lightest + 4 * engineUs) return promptTokens
    const held = this.#held.get(room.replica.id)
    const hashes = ask.prefixHashes ?? []
    let count = 0
    for (let depth = 1; depth <= hashes.length && held?.has(hashes[depth - 1] as number); depth = nextDepth(depth))
      count = depth
    return promptTokens - Math.max(0, Math.min(promptTokens - 1, count * 16))
  }
}

describe('placing', () => {
  // Twice half of the runs, so that none is long.
  it.each([1, 2])('chooses as the plain rule does (%i)', (nth) => {
    const step = fc.record({
      family: fc.integer({ min: 1, max: 4 }),
      blockCount: fc.nat({ max: 40 }),
      prompt: fc.integer({ min: 1, max: 4_000 }),
      pauseUs: fc.nat({ max: 300_000 }),
      loads: fc.array(fc.nat({ max: 20_000_000 }), { minLength: 5, maxLength: 5 }),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const placer = makePlacer()
        const naive = new NaivePlacer()
        const rooms = Array.from({ length: 5 }, (_, i) => makeRoom(i))
        let now = 0
        steps.forEach(({ family, blockCount, prompt, pauseUs, loads }, i) => {
          now += pauseUs
          loads.forEach((load, at) => {
            ;(rooms[at] as TestRoom).ledger.engineUs = load
          })
          const ask = makeAsk({ ticketId: `t${i}`, prompt, prefixHashes: blocks(family, blockCount) })
          expect(placer.choose(now, ask, rooms).replica.id).toBe(naive.choose(now, ask, rooms).replica.id)
        })
      }),
      { numRuns: 100, seed: nthSeed(nth) },
    )
  })

  it('goes to the owner of the prefix, until the owner is crowded', () => {
    const placer = makePlacer()
    const rooms = [makeRoom(0), makeRoom(1)]
    const ask = makeAsk({ prefixHashes: blocks(1, 150) })
    const first = placer.choose(0, ask, rooms)
    const second = placer.choose(1_000_000, ask, rooms)
    expect(second).toBe(first)
    expect(placer.because).toBe('soonest first token: it holds the beginning of the prompt')
    first.ledger.engineUs = 8 * ask.estimate.engineUs
    const other = rooms.find((room) => room !== first) as TestRoom
    other.ledger.engineUs = 2 * ask.estimate.engineUs
    expect(placer.choose(2_000_000, ask, rooms)).toBe(other)
  })

  it('spreads prompts that come at once, because the first one has to be read first', () => {
    const placer = makePlacer()
    const rooms = [makeRoom(0), makeRoom(1), makeRoom(2)]
    const chosen = [1, 2, 3].map((i) => placer.choose(0, makeAsk({ ticketId: `t${i}` }), rooms).ordinal)
    expect(new Set(chosen).size).toBe(3)
  })

  it('keeps a session where it was, unless that costs more than it is worth', () => {
    const placer = makePlacer()
    const rooms = [makeRoom(0), makeRoom(1)]
    const ask = makeAsk({ sessionHash: 42, prompt: 10 })
    const home = placer.choose(0, ask, [rooms[1] as TestRoom])
    expect(placer.choose(1_000_000, ask, rooms)).toBe(home)
    expect(placer.because).toBe('soonest first token: the session was here before')
    home.ledger.engineUs = 60_000_000
    expect(placer.choose(2_000_000, ask, rooms)).toBe(rooms[0])
  })

  it('goes far away only when that is sooner', () => {
    const placer = makePlacer({}, { there: 80_000 })
    const rooms = [makeRoom(0), makeRoom(1, 'there')]
    expect(placer.choose(0, makeAsk({ prompt: 1_000 }), rooms).ordinal).toBe(0)
    expect(placer.choose(0, makeAsk({ prompt: 1_000 }), rooms).ordinal).toBe(0)
    expect(placer.choose(0, makeAsk({ prompt: 1_000 }), rooms).ordinal).toBe(1)
  })

  it('learns who is slow, and sends it less', () => {
    const placer = makePlacer()
    const rooms = [makeRoom(0), makeRoom(1)]
    const counts = [0, 0]
    for (let i = 0; i < 300; i++) {
      const now = i * 100_000
      const ask = makeAsk({ ticketId: `t${i}` })
      const { ordinal, replica } = placer.choose(now, ask, rooms)
      counts[ordinal] = (counts[ordinal] as number) + 1
      const firstTokenUs = (ordinal === 0 ? 3 : 1) * (REPLICA_BOOK_DEFAULTS.overheadUs + 160_000)
      placer.observe(now, { ticketId: ask.ticketId, replicaId: replica.id, firstTokenUs, isFailed: false })
    }
    expect(counts[1] as number).toBeGreaterThan(1.8 * (counts[0] as number))
  })

  it('passes over one that has just failed, unless it is the only one', () => {
    const placer = makePlacer()
    const rooms = [makeRoom(0), makeRoom(1)]
    placer.choose(0, makeAsk({ ticketId: 'a' }), rooms)
    placer.observe(0, { ticketId: 'a', replicaId: 'r0', firstTokenUs: undefined, isFailed: true })
    expect(placer.choose(500_000, makeAsk(), rooms).ordinal).toBe(1)
    expect(placer.choose(500_000, makeAsk(), rooms).ordinal).toBe(1)
    expect(placer.choose(500_000, makeAsk(), [rooms[0] as TestRoom]).ordinal).toBe(0)
    expect(placer.because).toBe('the only replica with room')
  })

  it('prefers memory with air in it', () => {
    const placer = makePlacer()
    const rooms = [makeRoom(0, 'here', 4_000), makeRoom(1, 'here', 4_000)]
    ;(rooms[0] as TestRoom).ledger.kvTokens = 1_500
    ;(rooms[1] as TestRoom).ledger.engineUs = 90_000_000
    expect(placer.choose(0, makeAsk({ prompt: 2_300 }), rooms).ordinal).toBe(1)
  })

  it('explains itself in microseconds, without placing anything', () => {
    const placer = makePlacer()
    const rooms = [makeRoom(0), makeRoom(1)]
    placer.choose(0, makeAsk({ prefixHashes: blocks(1, 100) }), rooms)
    const ask = makeAsk({ prefixHashes: blocks(1, 150) })
    const cards = placer.explain(50_000, ask, rooms)
    expect(placer.explain(50_000, ask, rooms)).toEqual(cards)
    const owner = cards.find((card) => card.replicaId === 'r0')
    // Of 100 blocks the index knows 96.
    expect(owner?.parts.prefill).toBe((3_200 - 96 * 16) * 50)
    expect(owner?.parts.queue).toBe(160_000 - 50_000)
    expect(cards[0]?.totalUs).toBe(Math.min(...cards.map((card) => card.totalUs)))
  })

  it('samples a large pool, but always looks at the owner', () => {
    const placer = makePlacer()
    const rooms = Array.from({ length: 500 }, (_, i) => makeRoom(i))
    const ask = makeAsk({ prefixHashes: blocks(3, 150) })
    const owner = placer.choose(0, ask, rooms)
    expect(placer.because).toBe('soonest first token of a sample')
    for (let i = 1; i < 50; i++) expect(placer.choose(i * 1_000_000, ask, rooms)).toBe(owner)
  })

  it('agrees with other gateways on the home of a beginning that is new, and only if there are others', () => {
    const rooms = Array.from({ length: 8 }, (_, i) => makeRoom(i))
    const choices = (isShared: boolean): number[] =>
      Array.from({ length: 40 }, (_, family) => {
        // Each has placed other prompts before.
        const placer = makePlacer()
        if (isShared) placer.tellPlaced(() => {})
        for (let i = 0; i < family % 5; i++) placer.choose(0, makeAsk({ ticketId: `o${i}`, prompt: 300 }), rooms)
        return placer.choose(0, makeAsk({ prefixHashes: blocks(7, 100) }), rooms).ordinal
      })
    expect(new Set(choices(true)).size).toBe(1)
    expect(new Set(choices(false)).size).toBeGreaterThan(1)
  })

  it('goes home for as long as reading the prompt anew would take, and says so', () => {
    const placer = makePlacer()
    placer.tellPlaced(() => {})
    const rooms = [makeRoom(0), makeRoom(1)]
    const home = placer.choose(0, makeAsk({ prefixHashes: blocks(7, 100) }), rooms)
    expect(placer.because).toBe('where all gateways send prompts with this beginning')
    expect(placer.placement?.partsUs['home']).toBe(-100 * 16 * 50)
    const crowded = makePlacer()
    crowded.tellPlaced(() => {})
    for (let i = 0; i < 4; i++) crowded.choose(0, makeAsk({ ticketId: `o${i}`, prompt: 3_200 }), [home])
    expect(crowded.choose(0, makeAsk({ prefixHashes: blocks(7, 100) }), rooms)).not.toBe(home)
  })

  it('knows what other gateways have placed', () => {
    const [here, there] = [makePlacer(), makePlacer()]
    const rooms = Array.from({ length: 4 }, (_, i) => makeRoom(i))
    const ask = makeAsk({ prefixHashes: blocks(7, 150) })
    here.tellPlaced(({ id: replicaId }, count, hashes) => there.hearPlaced(0, { replicaId, blocks: count, hashes }))
    there.choose(0, makeAsk(), rooms)
    const owner = here.choose(0, ask, [rooms[2] as TestRoom])
    expect(there.cachedTokens(1_000_000, ask)).toBe(here.cachedTokens(1_000_000, ask))
    expect(there.choose(1_000_000, ask, rooms)).toBe(owner)
    // Of a replica that was never met nothing is known.
    there.hearPlaced(0, { replicaId: 'stranger', blocks: 10, hashes: [1] })
  })

  it('is what the dispatcher asks for, and leaves no room idle', () => {
    const placer: Placer = makePlacer()
    const dispatcher = new Dispatcher({ placer })
    dispatcher.addPool('p')
    for (let i = 0; i < 4; i++) {
      const replica = { id: `r${i}`, poolId: 'p', model: 'm', releaseId: 'm@1', region: 'here' }
      dispatcher.addReplica(0, { replica, limit: new FixedLimit({ sequencesMax: 8 }) })
    }
    const [tenant, key] = [makeTenant('a'), makeKey('k', 'a')]
    const granted = new Map<string, number>()
    for (let i = 0; i < 40; i++) {
      const offered = dispatcher.offer(i, {
        ticketId: `t${i}`,
        poolId: 'p',
        tenant,
        key,
        band: 'standard',
        bid: 0,
        estimate: makeEstimate(500, 50),
        arrivedAt: i,
        expiresAt: 60_000_000,
        isReady: true,
        prefixHashes: blocks(i % 3, 20),
        sessionHash: i % 5,
      })
      for (const effect of offered.effects)
        if (effect.kind === 'granted')
          granted.set(effect.lease.replica.id, (granted.get(effect.lease.replica.id) ?? 0) + 1)
      dispatcher.assertInvariants()
    }
    expect([...granted.values()]).toEqual([8, 8, 8, 8])
  })
})
