import { describe, expect, it } from 'vitest'
import { Rng } from '../../base/rng.ts'
import { type LeasedPermits, PermitBook } from './leased-permits.ts'
import { RoomShard } from './room-grants.ts'
import { SHARING_DEFAULTS } from './slice-book.ts'

/** Gateways over one store, renewed every 50 ms of a made-up time. A call may be lost, or its answer. */
const RENEW_US = SHARING_DEFAULTS.renewUs

class Fleet {
  now = 1_000_000
  store = new RoomShard()
  readonly gateways: { book: PermitBook; permits: LeasedPermits; held: number; isCut: boolean }[]
  readonly limit: number

  constructor(count: number, limit: number) {
    this.limit = limit
    this.gateways = Array.from({ length: count }, (_, i) => {
      const book = new PermitBook(this.now, `g${i}`, SHARING_DEFAULTS)
      return { book, permits: book.permits(this.now, 'tenant:t:concurrency', limit), held: 0, isCut: false }
    })
  }

  get held(): number {
    return this.gateways.reduce((sum, { held }) => sum + held, 0)
  }

  start(i: number): boolean {
    const gateway = this.gateways[i]!
    if (gateway.held >= gateway.permits.allowed(this.now)) {
      gateway.permits.askFor(this.now)
      return false
    }
    gateway.permits.hold(this.now, ++gateway.held)
    return true
  }

  end(i: number): void {
    const gateway = this.gateways[i]!
    if (gateway.held > 0) gateway.permits.hold(this.now, --gateway.held)
  }

  renew(isLost: () => boolean = () => false): void {
    this.now += RENEW_US
    for (const { book, isCut } of this.gateways) {
      const call = book.due(this.now)
      if (call === undefined) continue
      const answer = isCut || isLost() ? undefined : this.store.ask(this.now, call.member, call.told, call.asks)
      book.answered(this.now, call, isLost() ? undefined : answer)
    }
  }

  /** Offers as much as fits at these gateways for a while; nothing ends. */
  fill(gateways: readonly number[], renewals = 40): void {
    for (let k = 0; k < renewals; k++) {
      for (const i of gateways) while (this.start(i));
      this.renew()
    }
  }
}

describe('permits that gateways share', () => {
  it('all go where the requests are', () => {
    const fleet = new Fleet(4, 40)
    fleet.fill([0])
    expect(fleet.held).toBe(40)
    for (let i = 0; i < 40; i++) fleet.end(0)
    for (let k = 0; k < 100; k++) fleet.renew()
    fleet.fill([3])
    expect(fleet.gateways[3]!.held).toBe(40)
  })

  it('move to a gateway that is short as running requests end', () => {
    const fleet = new Fleet(2, 20)
    fleet.fill([0])
    for (let round = 0; round < 60; round++) {
      fleet.end(0)
      fleet.start(0)
      fleet.fill([0, 1], 2)
    }
    expect(fleet.gateways[1]!.held).toBeGreaterThanOrEqual(8)
    expect(fleet.held).toBeLessThanOrEqual(21)
  })

  it('are kept by a gateway that is cut off, and not given to others', () => {
    const fleet = new Fleet(2, 20)
    fleet.fill([0, 1])
    const before = fleet.gateways[0]!.held
    fleet.gateways[0]!.isCut = true
    fleet.fill([0, 1], 60)
    expect(fleet.gateways[0]!.held).toBeLessThanOrEqual(Math.max(before, 10))
    expect(fleet.held).toBeLessThanOrEqual(20 + 2 * 5)
  })

  it('are never over the limit but for credit, whatever is lost (100 drawn runs)', () => {
    for (let seed = 1; seed <= 100; seed++) {
      const rng = Rng.stream(seed, 'permits')
      const count = 2 + rng.below(3)
      const limit = 1 + rng.below(30)
      const fleet = new Fleet(count, limit)
      const credit = Math.max(1, Math.floor(limit / (2 * count)))
      for (let step = 0; step < 300; step++) {
        const i = rng.below(count)
        if (rng.below(3) > 0) fleet.start(i)
        else fleet.end(i)
        if (rng.below(4) === 0) fleet.renew(() => rng.below(8) === 0)
        if (rng.below(60) === 0) fleet.gateways[i]!.isCut = !fleet.gateways[i]!.isCut
        expect(fleet.held, `seed ${seed}, step ${step}`).toBeLessThanOrEqual(limit + count * credit)
      }
    }
  })

  it('send nothing while nobody uses them', () => {
    const fleet = new Fleet(2, 8)
    fleet.start(0)
    fleet.renew()
    fleet.end(0)
    for (let k = 0; k < 200; k++) fleet.renew()
    expect(fleet.gateways[0]!.book.due(fleet.now + 10_000_000)).toBeUndefined()
  })

  it('follow a limit that is lowered', () => {
    const fleet = new Fleet(1, 10)
    fleet.fill([0])
    fleet.gateways[0]!.permits.retune(fleet.now, 4)
    for (let i = 0; i < 10; i++) fleet.end(0)
    fleet.fill([0])
    expect(fleet.held).toBe(4)
  })
})

describe('a book of permits', () => {
  it('makes no second call while one is on its way, and gives it up after a while', () => {
    const { callUs } = SHARING_DEFAULTS
    const book = new PermitBook(0, 'g', SHARING_DEFAULTS)
    const permits = book.permits(0, 't', 8)
    permits.askFor(0)
    const call = book.due(RENEW_US)!
    expect(call).toBeDefined()
    permits.askFor(2 * RENEW_US)
    expect(book.due(RENEW_US + callUs - 1)).toBeUndefined()
    const next = book.due(RENEW_US + callUs)
    expect(next).toBeDefined()
    const answer = new RoomShard().ask(RENEW_US + callUs, next!.member, next!.told, next!.asks)
    book.answered(RENEW_US + callUs, next!, answer)
    permits.askFor(10 * callUs)
    expect(book.due(10 * callUs)).toBeDefined()
  })
})
