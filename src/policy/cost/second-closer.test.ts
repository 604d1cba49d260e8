import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CostClosed, SecondClosed } from '../../domain/cost-entry.ts'
import { NO_ENGINE_TIME } from '../../domain/engine-time.ts'
import type { IdleSharer } from './idle-sharing.ts'
import { billUpTo, nanoPerHourOf } from './replica-bill.ts'
import { CLOSE_US_MAX, SecondCloser, type SecondCloserOptions, sumOfLines } from './second-closer.ts'
import type { AttemptSecond, ReplicaSecond, SecondReport } from './second-report.ts'
import { TicketAccounts } from './ticket-accounts.ts'

const S = 1_000_000
/** A million nano-dollars a second. */
const USD = 3.6

function begin(
  options: Partial<SecondCloserOptions> & { readonly accountsMax?: number } = {},
  reporters: readonly string[] = ['one'],
) {
  const seconds: SecondClosed[] = []
  const tickets: CostClosed[] = []
  const { accountsMax } = options
  const accounts = new TicketAccounts({
    onTicket: (closed) => tickets.push(closed),
    ...(accountsMax !== undefined && { accountsMax }),
  })
  const closer = new SecondCloser(0, {
    idleSharers: () => [],
    onSecond: (closed) => seconds.push(closed),
    onCharges: (now, told, charges) => accounts.charged(now, told, charges),
    ...options,
  })
  for (const id of reporters) closer.join(id)
  closer.watch(0, { id: 'r', poolId: 'p', usdPerHour: USD })
  return { closer, seconds, tickets, accounts }
}

const row = (ticketId: string, decodeUs: number, more: Partial<AttemptSecond> = {}): AttemptSecond => ({
  ticketId,
  attempt: 1,
  tenantId: ticketId.slice(0, 1),
  isErrand: false,
  time: { ...NO_ENGINE_TIME, decodeUs, aloneUs: 3 * decodeUs },
  ...more,
})

const measured = (rows: readonly AttemptSecond[]): ReplicaSecond => ({
  replicaId: 'r',
  isMeasured: true,
  busyUs: 0,
  rows,
})

const report = (second: number, rows: readonly AttemptSecond[], more: Partial<SecondReport> = {}): SecondReport => ({
  reporterId: 'one',
  second,
  replicas: rows.length === 0 ? [] : [measured(rows)],
  wasted: [],
  ended: [],
  ...more,
})

const ended = (...ids: readonly string[]) =>
  ids.map((ticketId) => ({ ticketId, tenantId: ticketId.slice(0, 1), isErrand: false }))

const usedBy = (closed: SecondClosed | undefined, tenantId: string): number | undefined =>
  closed?.tenants.find((tenant) => tenant.tenantId === tenantId)?.usedNano

describe('a second of a replica', () => {
  it('is split by engine time, and the rest is idle', () => {
    const { closer, seconds } = begin()
    closer.report(0, report(0, [row('a1', 400_000), row('b1', 200_000)]))
    closer.closeDue(S)
    const [closed] = seconds
    expect(closed?.billNano).toBe(1_000_000)
    expect(usedBy(closed, 'a')).toBe(400_000)
    expect(usedBy(closed, 'b')).toBe(200_000)
    expect(closed?.lines.idleNano).toBe(400_000)
    expect(closed?.busyUs).toBe(600_000)
  })

  it('is closed once all have reported it, and not before', () => {
    const { closer, seconds } = begin({}, ['one', 'two'])
    closer.report(0, report(0, [row('a1', 1)]))
    closer.closeDue(S)
    expect(seconds).toHaveLength(0)
    closer.report(0, report(0, [], { reporterId: 'two' }))
    closer.closeDue(S)
    expect(seconds).toHaveLength(1)
  })

  it('adds up what several gateways report', () => {
    const { closer, seconds } = begin({}, ['one', 'two'])
    closer.report(0, report(0, [row('a1', 300_000)]))
    closer.report(0, report(0, [row('a2', 100_000), row('b1', 400_000)], { reporterId: 'two' }))
    closer.closeDue(S)
    expect(usedBy(seconds[0], 'a')).toBe(usedBy(seconds[0], 'b'))
    expect(seconds[0]?.busyUs).toBe(800_000)
  })

  it('waits three seconds for a silent gateway, and keeps a line for what that gateway had taken before', () => {
    const { closer, seconds, tickets } = begin({}, ['one', 'two'])
    for (const reporterId of ['one', 'two'])
      closer.report(0, report(0, [row(`a${reporterId}`, 400_000)], { reporterId }))
    closer.closeDue(S)
    closer.report(0, report(1, [row('aone', 400_000)]))
    closer.closeDue(2 * S + CLOSE_US_MAX - 1)
    expect(seconds).toHaveLength(1)
    closer.closeDue(2 * S + CLOSE_US_MAX)
    expect(seconds[1]?.lines.lateNano).toBe(usedBy(seconds[1], 'a'))
    // The late report changes nothing; its ticket still gets its final cost, of the seconds that were closed with it.
    closer.report(0, report(1, [row('atwo', 400_000)], { reporterId: 'two', ended: ended('atwo') }))
    closer.report(0, report(2, []))
    closer.report(0, report(2, [], { reporterId: 'two' }))
    closer.closeDue(3 * S + CLOSE_US_MAX)
    expect(closer.view().lateReports).toBe(1)
    expect(tickets.map(({ ticketId, costNano }) => [ticketId, costNano])).toEqual([
      ['atwo', usedBy(seconds[0], 'a')! / 2],
    ])
  })

  it('has a line for the last second of a gateway that died', () => {
    const { closer, seconds } = begin({}, ['one', 'two'])
    closer.report(0, report(0, []))
    closer.report(0, report(0, [row('a1', 500_000)], { reporterId: 'two' }))
    closer.closeDue(S)
    closer.leave('two', 'crashed')
    closer.report(0, report(1, []))
    closer.report(0, report(2, []))
    closer.closeDue(3 * S)
    expect(seconds[1]?.lines.crashedNano).toBe(Math.floor((seconds[1]?.billNano ?? 0) / 2))
    expect(seconds[2]?.lines.crashedNano).toBe(0)
  })

  it('is estimated from weights, scaled to the time in which something was in flight', () => {
    const { closer, seconds } = begin({}, ['one', 'two'])
    const estimated = (rows: readonly AttemptSecond[], busyUs: number) => [
      { replicaId: 'r', isMeasured: false, busyUs, rows },
    ]
    closer.report(0, report(0, [], { replicas: estimated([row('a1', 3_000)], 500_000) }))
    closer.report(0, report(0, [], { reporterId: 'two', replicas: estimated([row('b1', 1_000)], 500_000) }))
    closer.closeDue(S)
    expect(seconds[0]?.busyUs).toBe(750_000)
    expect(usedBy(seconds[0], 'a')).toBeCloseTo((1_000_000 * 0.75 * 3) / 4, -1)
    expect(usedBy(seconds[0], 'b')).toBeCloseTo((1_000_000 * 0.75) / 4, -1)
  })

  it('has lines for the platform’s own requests and for prompts that were read again', () => {
    const { closer, seconds, tickets } = begin()
    const again = { time: { ...NO_ENGINE_TIME, prefillUs: 100_000, againUs: 100_000 } }
    closer.report(
      0,
      report(0, [row('a1', 0, again), row('s1', 100_000, { isErrand: true })], {
        ended: [...ended('a1'), ...ended('s1')],
      }),
    )
    closer.closeDue(S)
    const { lines } = seconds[0] as SecondClosed
    expect(lines.platformNano).toBe(lines.wasteNano)
    expect(usedBy(seconds[0], 's')).toBeUndefined()
    expect(tickets[0]).toMatchObject({ costNano: 100_000, wasteNano: 100_000 })
  })
})

describe('an attempt that was for nothing', () => {
  it('is the platform’s: what its tenant was charged with in closed seconds comes back as a credit', () => {
    const { closer, seconds, tickets } = begin()
    closer.report(0, report(0, [row('a1', 500_000)]))
    closer.closeDue(S)
    const second = [row('a1', 100_000), row('a1', 50_000, { attempt: 2 })]
    closer.report(0, report(1, second, { wasted: [{ ticketId: 'a1', attempt: 1 }], ended: ended('a1') }))
    closer.closeDue(2 * S)
    expect(usedBy(seconds[1], 'a')).toBe(50_000 - 500_000)
    expect(seconds[1]?.lines.wasteNano).toBe(500_000 + 100_000)
    expect(tickets[0]).toMatchObject({ costNano: 50_000, wasteNano: 500_000 + 100_000 })
  })
})

describe('a replica’s bill', () => {
  it('runs from the instant at which it is there to the one at which it is released', () => {
    const { closer, seconds } = begin()
    closer.closeDue(0)
    closer.watch(300_000, { id: 'late', poolId: 'p', usdPerHour: 3 })
    closer.release(1_700_000, 'late')
    for (const second of [0, 1, 2]) closer.report(0, report(second, []))
    closer.closeDue(3 * S)
    const bills = seconds.filter(({ replicaId }) => replicaId === 'late')
    expect(bills.map(({ fromAt, toAt }) => [fromAt, toAt])).toEqual([
      [300_000, S],
      [S, 1_700_000],
    ])
    expect(bills.reduce((sum, { billNano }) => sum + billNano, 0)).toBe(Number(billUpTo(nanoPerHourOf(3), 1_400_000)))
    expect(closer.isWatched('late')).toBe(false)
  })

  it('is nothing where no price is known, and its tickets say so', () => {
    const { closer, seconds, tickets } = begin()
    closer.watch(0, { id: 'r', poolId: 'p', usdPerHour: undefined })
    closer.report(0, report(0, [row('a1', 10)], { ended: ended('a1') }))
    closer.closeDue(S)
    expect(seconds.at(-1)?.billNano).toBe(0)
    expect(tickets[0]).toMatchObject({ costNano: 0, isPriced: false })
  })
})

describe('idle time', () => {
  it('goes to those that the policy names, to the last nano-dollar', () => {
    const sharers: IdleSharer[] = [
      { tenantId: 'a', weight: 2 },
      { tenantId: 'b', weight: 1 },
    ]
    const { closer, seconds } = begin({ idleSharers: () => sharers })
    closer.report(0, report(0, [row('a1', 400_000)]))
    closer.closeDue(S)
    const [a, b] = seconds[0]?.tenants ?? []
    expect(seconds[0]?.lines.idleNano).toBe(0)
    expect(a?.idleNano).toBe(Math.ceil((2 * (b?.idleNano ?? 0) + 2 * (a?.idleNano ?? 0)) / 3))
  })
})

describe('a ticket’s cost', () => {
  it('is told once, when its last second is closed, with what batching saved', () => {
    const { closer, tickets, accounts } = begin()
    closer.report(0, report(0, [row('a1', 400_000)]))
    closer.closeDue(S)
    expect(tickets).toHaveLength(0)
    closer.report(0, report(1, [row('a1', 200_000)], { ended: ended('a1') }))
    closer.closeDue(2 * S)
    expect(tickets).toHaveLength(1)
    expect(tickets[0]).toMatchObject({ ticketId: 'a1', costNano: 600_000, isMeasured: true, isPriced: true })
    expect(tickets[0]?.batchSavedNano).toBeCloseTo(2 * 600_000, -1)
    expect(tickets[0]?.time.decodeUs).toBe(600_000)
    expect(accounts.size).toBe(0)
    expect(closer.view()).toEqual({ pendingSeconds: 0, lateReports: 0 })
  })

  it('is bounded: what finds no account is late, and the ticket still ends once', () => {
    const { closer, seconds, tickets } = begin({ accountsMax: 1 })
    closer.report(0, report(0, [row('a1', 400_000), row('b1', 400_000)], { ended: ended('a1', 'b1') }))
    closer.closeDue(S)
    expect(seconds[0]?.lines.lateNano).toBe(400_000)
    expect(tickets.map(({ ticketId, costNano }) => [ticketId, costNano])).toEqual([
      ['a1', 400_000],
      ['b1', 0],
    ])
  })
})

describe('law L15', () => {
  const second = fc.record({
    rows: fc.array(
      fc.record({
        ticket: fc.nat(5),
        reporter: fc.nat(1),
        us: fc.double({ min: 0, max: 700_000, noNaN: true }),
        againUs: fc.double({ min: 0, max: 1_000, noNaN: true }),
        isErrand: fc.boolean(),
      }),
      { maxLength: 8 },
    ),
    wasted: fc.array(fc.nat(5), { maxLength: 2 }),
    ended: fc.array(fc.nat(5), { maxLength: 2 }),
    isSilent: fc.boolean(),
  })

  it('holds for every second, whatever gateways report, late or not; bills and costs add up', () => {
    const drawn = fc.record({
      seconds: fc.array(second, { minLength: 1, maxLength: 12 }),
      usd: fc.double({ min: 0.01, max: 90, noNaN: true }),
    })
    fc.assert(
      fc.property(drawn, ({ seconds: plan, usd }) => {
        const { closer, seconds, tickets } = begin(
          {
            idleSharers: (_, used) =>
              [...used].map(([tenantId, weight]) => ({ tenantId, weight: Math.max(0, weight) })),
          },
          ['0', '1'],
        )
        closer.watch(0, { id: 'r', poolId: 'p', usdPerHour: usd })
        const over = new Set<number>()
        for (const [at, { rows, wasted, ended: ending, isSilent }] of plan.entries()) {
          for (const reporter of [0, 1]) {
            if (isSilent && reporter === 1) continue
            const own = rows.filter((one) => one.reporter === reporter && !over.has(one.ticket))
            closer.report(0, {
              reporterId: String(reporter),
              second: at,
              replicas: [
                measured(
                  own.map(({ ticket, us, againUs, isErrand }) =>
                    row(`${ticket}`, us, { isErrand, time: { ...NO_ENGINE_TIME, decodeUs: us, againUs } }),
                  ),
                ),
              ],
              wasted: reporter === 0 ? wasted.map((ticket) => ({ ticketId: String(ticket), attempt: 1 })) : [],
              ended: reporter === 0 ? ended(...new Set(ending.filter((one) => !over.has(one)).map(String))) : [],
            })
          }
          for (const one of ending) over.add(one)
          closer.closeDue((at + 1) * S)
        }
        const endAt = plan.length * S + 123_456
        closer.finish(endAt)
        for (const closed of seconds) expect(sumOfLines(closed)).toBe(closed.billNano)
        expect(seconds.reduce((sum, { billNano }) => sum + billNano, 0)).toBe(
          Number(billUpTo(nanoPerHourOf(usd), endAt)),
        )
        expect(new Set(tickets.map(({ ticketId }) => ticketId)).size).toBe(tickets.length)
      }),
      { numRuns: 60 },
    )
  })
})
