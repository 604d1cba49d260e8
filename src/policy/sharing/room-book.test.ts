import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type LaneFigures, NOTHING_IN_FLIGHT, type PoolFigures, type PoolShare } from '../../domain/pool-share.ts'
import { RoomBook, type RoomCall, type RoomOptions } from './room-book.ts'
import { type RoomAnswer, RoomShard } from './room-grants.ts'
import { readRoomReport, writeRoomReport } from './room-report.ts'

const MS = 1_000
const OPTIONS: RoomOptions = {
  ttlMs: 1_000,
  forgetMs: 600_000,
  silentUs: 500 * MS,
  gatewaysMax: 4,
  callUs: 250 * MS,
  startUs: 1_000 * MS,
}

const laneOf = (tenantId: string, waitingCount: number, heldCount = 0): LaneFigures => ({
  orgId: tenantId,
  orgWeight: undefined,
  tenantId,
  tenantWeight: 1,
  keyId: tenantId,
  keyWeight: 1,
  heldCount,
  waitingCount,
  offlineCount: 0,
  waitingCost: 100 * waitingCount,
  waitingUs: 100 * waitingCount,
})

const figuresOf = (held: number, lanes: readonly LaneFigures[], limit = 64): PoolFigures => ({
  replicas: [
    {
      replicaId: 'a:1',
      inFlight: { ...NOTHING_IN_FLIGHT, sequences: held, kvTokens: 100 * held },
      sequencesMax: limit,
      kvTokensMax: 100 * limit,
    },
  ],
  lanes,
})

/** One gateway with everything that it holds, against the store. */
class Gateway {
  readonly id: string
  readonly book: RoomBook
  readonly #store: RoomShard
  held = 0
  waiting = 50
  share: PoolShare | undefined

  constructor(now: number, id: string, store: RoomShard, options: Partial<RoomOptions> = {}) {
    this.id = id
    this.#store = store
    this.book = new RoomBook(now, id, 'pool', { ...OPTIONS, ...options })
  }

  get figures(): PoolFigures {
    return figuresOf(this.held, [laneOf(`tenant of ${this.id}`, this.waiting, this.held)])
  }

  get sequences(): number {
    return this.share?.rooms.get('a:1')?.allowance.sequences ?? 0
  }

  renew(now: number): RoomCall | undefined {
    const { share, call } = this.book.renew(now, this.figures)
    this.share = share
    return call
  }

  carryOut(now: number, call: RoomCall): RoomAnswer {
    return this.#store.ask(now, call.member, call.told, call.asks)
  }

  hear(now: number, call: RoomCall, answer: RoomAnswer | undefined): void {
    this.share = this.book.answered(now, call, answer, this.figures) ?? this.share
  }

  exchange(now: number): void {
    const call = this.renew(now)
    if (call !== undefined) this.hear(now, call, this.carryOut(now, call))
  }

  fill(): void {
    this.held = Math.max(this.held, this.sequences)
  }
}

const gatewaysOf = (count: number, store = new RoomShard()) =>
  Array.from({ length: count }, (_, i) => new Gateway(0, `g${i + 1}`, store))

function settle(gateways: readonly Gateway[], fromMs: number, toMs: number): void {
  for (let ms = fromMs; ms < toMs; ms += 100) for (const gateway of gateways) gateway.exchange(ms * MS)
}

describe('a room book', () => {
  it('gives each gateway its part of the slots, and a tenant its part of the weight', () => {
    const gateways = gatewaysOf(4)
    settle(gateways, 0, 500)
    expect(gateways.map(({ sequences }) => sequences)).toEqual([16, 16, 16, 16])
    expect(gateways[0]?.share?.rooms.get('a:1')?.allowance.kvTokens).toBe(1_600)
    expect(gateways[0]?.share?.factors.tenants.get('tenant of g1')).toBe(1)
    expect(gateways[0]?.share?.factors.tenants.get('tenant of g2')).toBe(1 / 8)
  })

  it('tells the dispatcher what the others have in flight', () => {
    const gateways = gatewaysOf(3)
    for (const [i, gateway] of gateways.entries()) gateway.held = 10 * i
    settle(gateways, 0, 300)
    expect(gateways[0]?.share?.rooms.get('a:1')?.others).toMatchObject({ sequences: 30, kvTokens: 3_000 })
  })

  it('keeps all together within the limit, whatever is lost, late or done by halves', () => {
    const step = fc.record({
      who: fc.nat(3),
      ms: fc.integer({ min: 20, max: 400 }),
      ends: fc.nat(30),
      waiting: fc.nat(80),
      fate: fc.constantFrom('answered', 'call lost', 'answer lost', 'late'),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
        const gateways = gatewaysOf(4)
        const late: Array<() => void> = []
        let now = 0
        for (const { who, ms, ends, waiting, fate } of steps) {
          now += ms * MS
          const gateway = gateways[who] as Gateway
          gateway.held = Math.max(0, gateway.held - ends)
          gateway.waiting = waiting
          const call = gateway.renew(now)
          if (call !== undefined && fate !== 'call lost') {
            if (fate === 'late') {
              const at = now
              late.push(() => gateway.hear(now, call, gateway.carryOut(Math.max(at, now), call)))
            } else {
              const answer = gateway.carryOut(now, call)
              if (fate === 'answered') gateway.hear(now, call, answer)
            }
          }
          if (late.length > 2) late.shift()?.()
          for (const one of gateways) if (one.book.gatewayCount > 0) one.fill()
          // A gateway that has never been answered begins alone after a second; here all are answered in time.
          const sum = gateways.reduce((total, { held }) => total + held, 0)
          const neverHeard = gateways.filter(({ book }) => book.isSilent(now)).length
          expect(sum).toBeLessThanOrEqual(64 + 16 * neverHeard)
        }
      }),
      { numRuns: 60 },
    )
  })

  it('keeps to the lesser of its grant and its safe share while the store is silent', () => {
    const gateways = gatewaysOf(2)
    const [first, second] = gateways as [Gateway, Gateway]
    second.waiting = 0
    settle(gateways, 0, 500)
    expect(first.sequences).toBeGreaterThan(32)
    first.renew(400 * MS + 600 * MS)
    expect(first.sequences).toBe(32)
    const before = second.sequences
    second.renew(1_000 * MS)
    expect(second.sequences).toBe(before)
  })

  it('begins alone with a small share when the store has never answered', () => {
    const alone = new Gateway(0, 'g', new RoomShard())
    alone.renew(0)
    expect(alone.sequences).toBe(0)
    alone.renew(1_000 * MS)
    expect(alone.sequences).toBe(16)
  })

  it('leaves the slots of a gateway that has gone silent, until the store has forgotten it', () => {
    const store = new RoomShard()
    const gateways = gatewaysOf(2, store)
    const [first, second] = gateways as [Gateway, Gateway]
    settle(gateways, 0, 500)
    second.fill()
    settle([first], 500, 3_000)
    expect(first.sequences + second.held).toBe(64)
    store.leave('g2')
    settle([first], 3_000, 3_500)
    expect(first.sequences).toBe(64)
  })

  it.each([
    ['that it was granted, though none is in use', 0, 21],
    ['that are in use, though fewer are granted', 40, 40],
  ])('holds back the slots of a silent gateway %s, and divides the rest evenly', (_, held, heldBack) => {
    const gateways = gatewaysOf(3)
    const [first, second, third] = gateways as [Gateway, Gateway, Gateway]
    third.held = held
    settle(gateways, 0, 500)
    settle([first, second], 500, 3_000)
    expect(first.sequences + second.sequences).toBe(64 - heldBack)
    expect(Math.abs(first.sequences - second.sequences)).toBeLessThanOrEqual(1)
  })

  it('gives room to offline work where nothing else waits at any gateway', () => {
    const shares = (waiting: number): number[] => {
      const books = [0, 1].map((i) => new RoomBook(0, `g${i}`, 'pool', OPTIONS))
      const store = new RoomShard()
      const lanes = [
        { ...laneOf('offline', 0), offlineCount: 50, waitingCost: 10, waitingUs: 10 },
        laneOf('t', waiting),
      ]
      const figures = [figuresOf(0, [lanes[0]!]), figuresOf(0, [lanes[1]!])]
      const got = [0, 0]
      for (let ms = 0; ms < 2_000; ms += 100)
        for (const [i, book] of books.entries()) {
          const { call } = book.renew(ms * MS, figures[i]!)
          const answer = call && store.ask(ms * MS, call.member, call.told, call.asks)
          const share = call && book.answered(ms * MS, call, answer, figures[i]!)
          got[i] = share?.rooms.get('a:1')?.allowance.sequences ?? 0
        }
      return got
    }
    const [free, other] = shares(0) as [number, number]
    expect(free).toBeGreaterThan(other)
    const [crowded, busy] = shares(50) as [number, number]
    expect(busy).toBeGreaterThan(crowded)
  })

  it('makes no second call while one is on its way, and gives it up after a while', () => {
    const gateway = new Gateway(0, 'g', new RoomShard())
    expect(gateway.renew(0)).toBeDefined()
    expect(gateway.renew(249 * MS)).toBeUndefined()
    expect(gateway.renew(250 * MS)).toBeDefined()
    expect(gateway.renew(300 * MS)).toBeUndefined()
  })

  it('lets a single slot go round between gateways that all wait', () => {
    const store = new RoomShard()
    const gateways = Array.from({ length: 3 }, (_, i) => new Gateway(0, `g${i + 1}`, store))
    const turns = new Map<string, number>()
    for (let ms = 0; ms < 20_000; ms += 100) {
      for (const gateway of gateways) {
        const one = figuresOf(gateway.held, [laneOf(gateway.id, 5, gateway.held)], 1)
        const { share, call } = gateway.book.renew(ms * MS, one)
        gateway.share = share
        if (call !== undefined)
          gateway.share = gateway.book.answered(ms * MS, call, gateway.carryOut(ms * MS, call), one) ?? share
        if (gateway.held === 0 && gateway.sequences > 0) {
          gateway.held = 1
          turns.set(gateway.id, (turns.get(gateway.id) ?? 0) + 1)
        } else if (ms % 300 === 0) gateway.held = 0
      }
      expect(gateways.reduce((sum, { held }) => sum + held, 0)).toBeLessThanOrEqual(1)
    }
    for (const { id } of gateways) expect(turns.get(id) ?? 0).toBeGreaterThan(5)
  })
})

describe('a report', () => {
  it('says the same when it is read, and nothing when it cannot be', () => {
    const figures = figuresOf(3, [laneOf('t', 4, 3)])
    const prefixes = { given: [['a:1', 40]], batches: [[3, [['a:1', [5, 6]]]]] } as const
    const read = readRoomReport(writeRoomReport(figures, () => 7, 120, prefixes))
    expect(read?.prefixes).toEqual(prefixes)
    // As a gateway of an earlier version writes it.
    expect(readRoomReport('[1,0,[],[]]')).toMatchObject({ prefixes: undefined, lanes: [] })
    expect(read?.starvedMs).toBe(120)
    expect(read?.replicas.get('a:1')).toEqual({ granted: 7, inFlight: figures.replicas[0]?.inFlight })
    expect(read?.lanes).toEqual(figures.lanes)
    for (const text of [
      '',
      '[]',
      '[2,0,[],[]]',
      '[1,-1,[],[]]',
      '[1,0,[["a",null]],[]]',
      '[1,0,[],[],7]',
      ' '.repeat(300_000),
    ])
      expect(readRoomReport(text)).toBeUndefined()
  })
})
