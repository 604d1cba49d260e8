import { describe, expect, it } from 'vitest'
import { type Clock, US_PER_S } from '../../base/clock.ts'
import { VirtualClock } from '../../base/virtual-clock.ts'
import type { CostClosed, SecondClosed } from '../../domain/cost-entry.ts'
import { NO_ENGINE_TIME } from '../../domain/engine-time.ts'
import type { Fence } from '../../domain/leader.ts'
import type { SecondStore } from '../../domain/second-store.ts'
import { billUpTo } from '../../policy/cost/replica-bill.ts'
import { secondOf } from '../../policy/cost/second-closer.ts'
import type { AttemptSecond, SecondReport } from '../../policy/cost/second-report.ts'
import { TicketAccounts } from '../../policy/cost/ticket-accounts.ts'
import { MemorySecondStore } from '../../store/memory-second-store.ts'
import type { Policies } from '../policies.ts'
import type { LeaderRole } from '../ports.ts'
import { SharedSeconds } from './shared-seconds.ts'

const S = US_PER_S
const START = 1_000 * S
const REPLICAS = [
  { id: 'r1', poolId: 'p' },
  { id: 'r2', poolId: 'p' },
]

/** Two replicas at a million nano-dollars a second. */
const policies = {
  fleet: { replica: (id: string) => REPLICAS.find((replica) => replica.id === id) },
  poolsById: new Map([['p', { pool: { replicas: REPLICAS }, usdPerHourOf: () => 3.6 }]]),
} as unknown as Policies

class Cell {
  readonly clock = new VirtualClock(START)
  readonly seconds: SecondClosed[] = []
  readonly costs = new Map<string, CostClosed[]>()
  readonly store = new MemorySecondStore((fence) => this.isHeld(fence))
  leader = 'a'
  /** Gateways that believe that they lead, whoever does. */
  readonly deluded = new Set<string>()
  fence = 1
  isAway = false

  isHeld({ holder, number }: Fence): boolean {
    return holder === this.leader && number === this.fence
  }

  gateway(reporterId: string): Gateway {
    return new Gateway(this, reporterId)
  }

  role(id: string): LeaderRole {
    if (this.deluded.has(id)) return { kind: 'leads', fence: { name: 'duties', holder: id, number: 1 } }
    if (id !== this.leader) return { kind: 'follows', holder: this.leader }
    return { kind: 'leads', fence: { name: 'duties', holder: id, number: this.fence } }
  }

  async run(seconds: number): Promise<void> {
    await this.clock.run(this.clock.now() + seconds * S)
  }

  get billed(): number {
    return this.seconds.reduce((sum, { billNano }) => sum + billNano, 0)
  }

  usedBy(tenantId: string): number {
    const tenants = this.seconds.flatMap((closed) => closed.tenants.filter((tenant) => tenant.tenantId === tenantId))
    return tenants.reduce((sum, { usedNano }) => sum + usedNano, 0)
  }

  costOf(tenantId: string): number {
    const all = [...this.costs.values()].flat().filter((closed) => closed.tenantId === tenantId)
    return all.reduce((sum, { costNano }) => sum + costNano, 0)
  }

  /** Every replica is billed from the beginning, without a gap and without a second twice. */
  expectWhole(): void {
    for (const { id } of REPLICAS) {
      const own = this.seconds.filter(({ replicaId }) => replicaId === id)
      expect(own.every(({ fromAt }, i) => fromAt === (i === 0 ? own[0]!.billedSince : own[i - 1]!.toAt))).toBe(true)
      const { nanoPerHour, billedSince, toAt } = own.at(-1)!
      const sum = own.reduce((total, { billNano }) => total + billNano, 0)
      expect(sum).toBe(Number(billUpTo(nanoPerHour, toAt - billedSince)))
    }
  }
}

/** Reports every second what the test says. */
class Gateway {
  readonly desk: SharedSeconds
  readonly #cell: Cell
  readonly #id: string
  #next: Partial<SecondReport> = {}
  isSilent = false

  constructor(cell: Cell, reporterId: string) {
    this.#cell = cell
    this.#id = reporterId
    const { clock } = cell
    const costs: CostClosed[] = []
    cell.costs.set(reporterId, costs)
    const accounts = new TicketAccounts({ onTicket: (closed) => costs.push(closed) })
    const store: SecondStore = {
      exchange: (ask) => this.#reach(() => cell.store.exchange(ask)),
      gather: () => this.#reach(() => cell.store.gather()),
      close: (closing) => this.#reach(() => cell.store.close(closing)),
      bills: (from, to) => cell.store.bills(from, to),
    }
    const journal = { record: (entry: unknown) => void cell.seconds.push(entry as SecondClosed) }
    const leadership = { role: () => cell.role(reporterId) }
    this.desk = new SharedSeconds({ clock: clock as Clock, journal, leadership, store, reporterId }, accounts, {
      policies,
      idle: 'platform',
      weights: [],
    })
    this.desk.start()
    this.#schedule()
  }

  /** What the next report has. */
  says(rows: readonly AttemptSecond[], more: Partial<SecondReport> = {}): void {
    this.#next = { replicas: [{ replicaId: 'r1', isMeasured: true, busyUs: 0, rows }], ...more }
  }

  async #reach<T>(call: () => Promise<T>): Promise<T> {
    if (this.#cell.isAway) throw new Error('the store is away')
    return call()
  }

  #schedule(): void {
    const { clock } = this.#cell
    clock.at((secondOf(clock.now()) + 1) * S, () => {
      if (this.desk.isDone) return
      this.#schedule()
      if (this.isSilent) return
      const second = secondOf(clock.now()) - 1
      const next = { reporterId: this.#id, second, replicas: [], wasted: [], ended: [], ...this.#next }
      this.#next = {}
      this.desk.report(clock.now(), next)
      this.desk.tick()
    })
  }
}

const row = (ticketId: string, decodeUs: number, attempt = 1): AttemptSecond => ({
  ticketId,
  attempt,
  tenantId: ticketId.slice(0, 1),
  isErrand: false,
  time: { ...NO_ENGINE_TIME, decodeUs },
})

const ended = (...ids: readonly string[]) =>
  ids.map((ticketId) => ({ ticketId, tenantId: ticketId.slice(0, 1), isErrand: false }))

describe('seconds of replicas that several gateways use', () => {
  it('are closed once, within three seconds, and each gateway hears what its own tickets cost', async () => {
    const cell = new Cell()
    const [a, b] = [cell.gateway('a'), cell.gateway('b')]
    await cell.run(2)
    a.says([row('x1', 300_000), row('y1', 100_000)], { ended: ended('x1', 'y1') })
    b.says([row('x2', 200_000)], { ended: ended('x2') })
    await cell.run(4)
    expect(cell.costs.get('a')).toMatchObject([
      { ticketId: 'x1', costNano: 300_000, isMeasured: true, isPriced: true },
      { ticketId: 'y1', costNano: 100_000 },
    ])
    expect(cell.costs.get('b')).toMatchObject([{ ticketId: 'x2', costNano: 200_000 }])
    expect(cell.usedBy('x')).toBe(500_000)
    const lag = cell.seconds.map(({ at, toAt }) => at - toAt)
    expect(Math.max(...lag)).toBeLessThanOrEqual(3 * S)
    cell.expectWhole()
    const bills = await cell.store.bills(0, 1_000_000)
    expect(bills.reduce((sum, { billNano }) => sum + billNano, 0)).toBe(cell.billed)
  })

  it('go on with the next leader where the last one ended, and what waited meanwhile is charged', async () => {
    const cell = new Cell()
    const [a, b] = [cell.gateway('a'), cell.gateway('b')]
    a.says([row('x1', 300_000)])
    b.says([row('y1', 100_000)])
    await cell.run(3)
    a.desk.abandon()
    b.says([row('y1', 200_000)], { ended: ended('y1') })
    await cell.run(6)
    cell.leader = 'b'
    cell.fence = 2
    await cell.run(8)
    expect(cell.costs.get('b')).toMatchObject([{ ticketId: 'y1', costNano: 300_000 }])
    expect(cell.seconds.at(-1)!.toAt).toBeGreaterThanOrEqual(cell.clock.now() - 2 * S)
    cell.expectWhole()
  })

  it('have a line for what a gateway took that is silent, and later for one that is gone', async () => {
    const cell = new Cell()
    const [, b] = [cell.gateway('a'), cell.gateway('b')]
    await cell.run(1)
    for (let i = 0; i < 3; i++) {
      b.says([row('y1', 400_000)])
      await cell.run(1)
    }
    b.desk.abandon()
    await cell.run(14)
    const lateNano = cell.seconds.map(({ lines }) => lines.lateNano)
    expect(lateNano.filter((nano) => nano === 400_000).length).toBeGreaterThan(0)
    expect(cell.seconds.filter(({ lines }) => lines.crashedNano === 400_000)).toHaveLength(1)
    expect(cell.seconds.at(-1)!.lines).toMatchObject({ idleNano: 1_000_000 })
    cell.expectWhole()
  })

  it('are not told by a gateway that only believes that it leads', async () => {
    const cell = new Cell()
    const [, b] = [cell.gateway('a'), cell.gateway('b')]
    cell.deluded.add('b')
    b.says([row('y1', 100_000)], { ended: ended('y1') })
    await cell.run(6)
    expect(cell.costs.get('b')).toMatchObject([{ ticketId: 'y1', costNano: 100_000 }])
    cell.expectWhole()
  })

  it('give back what an attempt for nothing was charged with, in a later second', async () => {
    const cell = new Cell()
    const [, b] = [cell.gateway('a'), cell.gateway('b')]
    b.says([row('y1', 300_000)])
    await cell.run(3)
    b.says([row('y1', 50_000, 2)], { wasted: [{ ticketId: 'y1', attempt: 1 }], ended: ended('y1') })
    await cell.run(6)
    expect(cell.costs.get('b')).toMatchObject([{ costNano: 50_000, wasteNano: 300_000 }])
    expect(cell.usedBy('y')).toBe(50_000)
    expect(cell.seconds.reduce((sum, { lines }) => sum + lines.wasteNano, 0)).toBe(300_000)
    cell.expectWhole()
  })

  it('cost tickets nothing for a report that comes too late, and they still end once', async () => {
    const cell = new Cell()
    const [, b] = [cell.gateway('a'), cell.gateway('b')]
    await cell.run(2)
    b.isSilent = true
    await cell.run(4)
    b.isSilent = false
    b.says([row('y1', 300_000)], { second: secondOf(cell.clock.now()) - 4, ended: ended('y1') })
    await cell.run(4)
    expect(cell.costs.get('b')).toMatchObject([{ ticketId: 'y1', costNano: 0 }])
    expect(cell.usedBy('y')).toBe(0)
    cell.expectWhole()
  })

  it('wait for a store that is away, as long as the bound allows, and every ticket ends once', async () => {
    const cell = new Cell()
    const [a, b] = [cell.gateway('a'), cell.gateway('b')]
    await cell.run(2)
    cell.isAway = true
    b.says([row('y1', 100_000)], { ended: ended('y1') })
    await cell.run(30)
    expect(cell.costs.get('b')).toEqual([])
    cell.isAway = false
    await cell.run(6)
    expect(cell.costs.get('b')).toMatchObject([{ ticketId: 'y1', costNano: 100_000 }])
    cell.expectWhole()
    cell.isAway = true
    b.says([row('y2', 100_000)], { ended: ended('y2') })
    await cell.run(120)
    expect(b.desk.view().pendingSeconds).toBe(64)
    expect(a.desk.view().pendingSeconds).toBe(64)
    expect(cell.costs.get('b')?.at(-1)).toMatchObject({ ticketId: 'y2', costNano: 0 })
  })

  it('are waited for at the end where a ticket’s cost is open, and not for ever', async () => {
    const cell = new Cell()
    const [a, b] = [cell.gateway('a'), cell.gateway('b')]
    await cell.run(2.2)
    const report = { reporterId: 'b', second: secondOf(cell.clock.now()), wasted: [], ended: ended('y1') }
    b.desk.report(cell.clock.now(), {
      ...report,
      replicas: [{ replicaId: 'r2', isMeasured: true, busyUs: 0, rows: [row('y1', 70_000)] }],
    })
    b.desk.finish(cell.clock.now())
    let isDone = false
    void b.desk.whenDone().then(() => {
      isDone = true
    })
    await cell.run(0.5)
    expect(isDone).toBe(false)
    await cell.run(2)
    expect(isDone).toBe(true)
    expect(cell.costs.get('b')).toMatchObject([{ ticketId: 'y1', costNano: 70_000 }])
    // Nothing is open: the end is there at once, also for the leader.
    a.desk.finish(cell.clock.now())
    await cell.run(1)
    expect(a.desk.isDone).toBe(true)
    const alone = cell.gateway('c')
    cell.isAway = true
    await cell.run(1)
    alone.desk.finish(cell.clock.now())
    await cell.run(4)
    expect(alone.desk.isDone).toBe(false)
    await cell.run(2)
    expect(alone.desk.isDone).toBe(true)
  })
})
