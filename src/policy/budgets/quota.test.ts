import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { SpendLimit } from '../../domain/tenant.ts'
import { periodOf, US_PER_DAY } from './calendar.ts'
import { Quota, type QuotaHold, type Spend } from './quota.ts'

const at = (iso: string): number => Date.parse(iso) * 1_000

describe('calendar', () => {
  it('knows days and months as the calendar does', () => {
    fc.assert(
      fc.property(fc.integer({ min: -55_000_000_000, max: 250_000_000_000 }), (seconds) => {
        const now = seconds * 1_000_000
        const date = new Date(seconds * 1_000)
        const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
        expect(periodOf(now, 'month')).toEqual({
          startsAt: Date.UTC(year, month, 1) * 1_000,
          endsAt: Date.UTC(year, month + 1, 1) * 1_000,
        })
        const day = periodOf(now, 'day')
        expect(day.startsAt <= now && now < day.endsAt && day.endsAt - day.startsAt === US_PER_DAY).toBe(true)
      }),
    )
  })

  it.each([
    ['2024-02-29T23:59:59.999Z', '2024-02-01T00:00:00Z', '2024-03-01T00:00:00Z'],
    ['2023-12-31T12:00:00Z', '2023-12-01T00:00:00Z', '2024-01-01T00:00:00Z'],
    ['2100-02-28T12:00:00Z', '2100-02-01T00:00:00Z', '2100-03-01T00:00:00Z'],
    ['1970-01-01T00:00:00Z', '1970-01-01T00:00:00Z', '1970-02-01T00:00:00Z'],
  ])('puts %s into its month', (now, startsAt, endsAt) => {
    expect(periodOf(at(now), 'month')).toEqual({ startsAt: at(startsAt), endsAt: at(endsAt) })
  })
})

const SECOND = 1_000_000
const HOUR = 3_600 * SECOND
const tokens = (count: number): Spend => ({ tokens: count, nano: 0 })
const limitOf = (limit: Partial<SpendLimit>): SpendLimit => ({ period: 'month', isHard: true, marks: [], ...limit })

describe('a hold that an answer runs past', () => {
  it.each([
    ['tokens', { tokensMax: 100 }],
    ['nano', { nanoMax: 100 }],
  ] as const)('says when a hard budget of %s is empty by what is used and held', (unit, limit) => {
    const spend = (count: number): Spend => ({ tokens: 0, nano: 0, [unit]: count })
    const quota = new Quota(0, limitOf(limit))
    const used = quota.take(0, spend(30))
    quota.settle(0, used, spend(30))
    const hold = quota.take(0, spend(50))
    expect(quota.drawOn(0, hold, spend(20))).toBe(true)
    expect(quota.drawOn(0, hold, spend(1))).toBe(false)
    const soft = new Quota(0, limitOf({ ...limit, isHard: false }))
    expect(soft.drawOn(0, soft.take(0, spend(1)), spend(500))).toBe(true)
  })
})

describe('quota', () => {
  const monthly = limitOf({ tokensMax: 1_000 })
  const on30th = at('2026-06-30T12:00:00Z')
  const on1st = at('2026-07-01T00:00:00Z')
  const left = (quota: Quota, now: number): number => {
    const { limit, used, held } = quota.view(now)
    return (limit.tokensMax ?? 0) - used.tokens - held.tokens
  }

  it('refuses until the first of the month what does not fit, and for ever what never will', () => {
    const quota = new Quota(on30th, monthly)
    quota.settle(on30th, quota.take(on30th, tokens(900)), tokens(900))
    expect(quota.fitsAt(on30th, tokens(100), SECOND)).toBe(on30th)
    expect(quota.fitsAt(on30th, tokens(101), SECOND)).toBe(on1st)
    expect(quota.fitsAt(on30th, tokens(1_001), SECOND)).toBeUndefined()
    expect(left(quota, on1st)).toBe(1_000)
  })

  it('bounds money as well as tokens, and says when a hold may come back', () => {
    const quota = new Quota(on30th, limitOf({ tokensMax: 1_000, nanoMax: 50 }))
    quota.take(on30th, { tokens: 10, nano: 45 })
    expect(quota.fitsAt(on30th, { tokens: 10, nano: 5 }, SECOND)).toBe(on30th)
    expect(quota.fitsAt(on30th, { tokens: 10, nano: 6 }, SECOND)).toBe(on30th + SECOND)
    expect(quota.fitsAt(on30th, { tokens: 10, nano: 51 }, SECOND)).toBeUndefined()
  })

  it('counts what was used in the period in which it ended, as the ledger does, and holds over the turn', () => {
    const quota = new Quota(on30th, monthly)
    quota.settle(on30th, quota.take(on30th, tokens(500)), tokens(300))
    expect(left(quota, on30th)).toBe(700)
    const late = quota.take(on30th, tokens(500))
    expect(left(quota, on1st)).toBe(500)
    quota.settle(on1st, late, tokens(400))
    expect(left(quota, on1st)).toBe(600)
  })

  it('keeps what was used when the amount changes, and is restored from the ledger', () => {
    const quota = new Quota(on30th, monthly, false)
    expect(quota.isKnown).toBe(false)
    const hour = quota.startHour(on30th)
    expect(quota.restore(on30th, hour - 1, [])).toBe(false)
    expect(quota.restore(on30th, hour, [{ hour, tokens: 800, nano: 0 }])).toBe(true)
    quota.retune(on30th, limitOf({ tokensMax: 2_000 }))
    expect(left(quota, on30th)).toBe(1_200)
    expect(quota.view(on30th)).toMatchObject({ isKnown: true, resetUs: on1st - on30th, leftRatio: 0.6 })
  })

  it('adds to the ledger what the ledger does not have yet, and counts nothing twice', () => {
    const quota = new Quota(on30th, monthly)
    const hour = Math.floor(on30th / HOUR)
    quota.settle(on30th, quota.take(on30th, tokens(100)), tokens(100))
    const others = [{ hour, tokens: 300, nano: 0 }]
    quota.restore(on30th, quota.startHour(on30th), others)
    expect(left(quota, on30th)).toBe(600)
    quota.written(hour, tokens(100))
    quota.restore(on30th, quota.startHour(on30th), [{ hour, tokens: 400, nano: 0 }])
    expect(left(quota, on30th)).toBe(600)
    // A line of the month before says nothing about this one.
    quota.settle(on1st, quota.take(on1st, tokens(7)), tokens(7))
    quota.written(hour, tokens(7))
    quota.restore(on1st, quota.startHour(on1st), [])
    expect(left(quota, on1st)).toBe(993)
  })

  it('rolls by hours: what was used leaves when its hour does', () => {
    const quota = new Quota(on30th, limitOf({ period: { hours: 2 }, tokensMax: 100 }))
    for (const [after, count] of [
      [0, 60],
      [HOUR, 30],
    ] as const)
      quota.settle(on30th + after, quota.take(on30th + after, tokens(count)), tokens(count))
    expect(quota.fitsAt(on30th + HOUR, tokens(11), SECOND)).toBe(on30th + 3 * HOUR)
    expect(quota.fitsAt(on30th + HOUR, tokens(80), SECOND)).toBe(on30th + 4 * HOUR)
    expect(left(quota, on30th + 3 * HOUR - 1)).toBe(10)
    expect(left(quota, on30th + 3 * HOUR)).toBe(70)
    expect(left(quota, on30th + 4 * HOUR)).toBe(100)
  })

  it('tells each mark once a period, and not those that lay behind at the first sight', () => {
    const told: number[] = []
    const marked = limitOf({ tokensMax: 100, marks: [0.5, 0.8, 1], isHard: false })
    const quota = new Quota(on30th, marked, true, (mark) => told.push(mark))
    const use = (now: number, count: number): void => quota.settle(now, quota.take(now, tokens(count)), tokens(count))
    use(on30th, 49)
    expect(told).toEqual([])
    use(on30th, 40)
    use(on30th, 1)
    expect(told).toEqual([0.5, 0.8])
    use(on30th, 30)
    expect(told).toEqual([0.5, 0.8, 1])
    use(on1st, 50)
    expect(told).toEqual([0.5, 0.8, 1, 0.5])
    const second = new Quota(on1st, marked, false, (mark) => told.push(mark))
    second.restore(on1st, second.startHour(on1st), [{ hour: second.startHour(on1st), tokens: 85, nano: 0 }])
    expect(told).toHaveLength(4)
    second.settle(on1st, second.take(on1st, tokens(15)), tokens(15))
    expect(told.slice(4)).toEqual([1])
  })

  it('is never below zero, holds what is open, and forgets every period', () => {
    const step = fc.record({
      afterUs: fc.nat(9 * 86_400).map((seconds) => seconds * SECOND),
      kind: fc.constantFrom('take', 'draw', 'settle', 'restore'),
      amount: fc.nat(400),
    })
    const period = fc.constantFrom<SpendLimit['period']>('day', 'month', { hours: 5 })
    fc.assert(
      fc.property(period, fc.array(step, { maxLength: 60 }), (span, steps) => {
        let now = on30th
        const quota = new Quota(now, limitOf({ period: span, tokensMax: 1_000, nanoMax: 5_000 }))
        const open: QuotaHold[] = []
        for (const { afterUs, kind, amount } of steps) {
          now += afterUs
          const spend = { tokens: amount, nano: amount * 3 }
          if (kind === 'take' && quota.fitsAt(now, spend, SECOND) === now) {
            open.push(quota.take(now, spend))
            const { used, held } = quota.view(now)
            expect(used.tokens + held.tokens).toBeLessThanOrEqual(Math.max(1_000, used.tokens + held.tokens - amount))
          } else if (kind === 'draw' && open[0] !== undefined) quota.drawOn(now, open[0], spend)
          else if (kind === 'settle' && open.length > 0) quota.settle(now, open.shift() as QuotaHold, spend)
          else if (kind === 'restore') quota.restore(now, quota.startHour(now), [])
          const { used, held } = quota.view(now)
          expect(Math.min(used.tokens, used.nano)).toBeGreaterThanOrEqual(0)
          expect(held).toEqual({
            tokens: open.reduce((sum, hold) => sum + hold.tokens, 0),
            nano: open.reduce((sum, hold) => sum + hold.nano, 0),
          })
        }
        for (const hold of open) quota.settle(now, hold, tokens(1))
        expect(quota.isUnused(now + 40 * 86_400 * SECOND)).toBe(true)
        expect(left(quota, now + 40 * 86_400 * SECOND)).toBe(1_000)
      }),
    )
  })
})
