import { describe, expect, it } from 'vitest'
import { Rng } from '../../base/rng.ts'
import { LeaseTerm, TERM_DEFAULTS } from './lease-term.ts'

const S = 1_000_000

describe('a term', () => {
  it('is counted from the question, and ends before the database gives the row away', () => {
    const term = new LeaseTerm()
    expect(term.viewAt(10 * S)).toEqual({ kind: 'unknown' })
    expect(term.ask(10 * S)).toEqual({ kind: 'acquire' })
    expect(term.nextAt()).toBeUndefined()
    term.answered(10.8 * S, { kind: 'held', fence: 7 })
    expect(term.viewAt(14.999 * S)).toEqual({ kind: 'leads', fence: 7 })
    expect(term.viewAt(15 * S)).toEqual({ kind: 'unknown' })
    expect(term.nextAt()).toBe(12 * S)
  })

  it('is prolonged while it runs, and begun anew when it is over', () => {
    const term = new LeaseTerm()
    term.ask(0)
    term.answered(0, { kind: 'held', fence: 1 })
    expect(term.ask(2 * S)).toEqual({ kind: 'renew', fence: 1 })
    term.answered(2 * S, { kind: 'held', fence: 1 })
    expect(term.viewAt(6 * S)).toEqual({ kind: 'leads', fence: 1 })
    expect(term.ask(8 * S)).toEqual({ kind: 'acquire' })
  })

  it('that was granted during a pause is over when the answer is read', () => {
    const term = new LeaseTerm()
    term.ask(0)
    term.answered(60 * S, { kind: 'held', fence: 1 })
    expect(term.viewAt(60 * S)).toEqual({ kind: 'unknown' })
    expect(term.nextAt()).toBe(60 * S)
    expect(term.ask(60 * S)).toEqual({ kind: 'acquire' })
  })

  it('ends at once when an effect is refused', () => {
    const term = new LeaseTerm()
    term.ask(0)
    term.answered(0, { kind: 'held', fence: 1 })
    term.depose(1 * S)
    expect(term.viewAt(1 * S)).toEqual({ kind: 'unknown' })
    expect(term.nextAt()).toBe(1 * S)
  })

  it('of another is waited for, and asked about again at its end', () => {
    const term = new LeaseTerm()
    term.ask(0)
    term.answered(0, { kind: 'other', holder: 'b', leftUs: 5 * S })
    expect(term.viewAt(1 * S)).toEqual({ kind: 'follows', holder: 'b' })
    expect(term.nextAt()).toBe(2 * S)
    term.ask(2 * S)
    term.answered(2 * S, { kind: 'other', holder: 'b', leftUs: 0.3 * S })
    expect(term.nextAt()).toBe(2.3 * S)
    term.hurry(2.1 * S)
    expect(term.nextAt()).toBe(2.1 * S)
  })

  it('of another is not believed in for ever when the store is away', () => {
    const term = new LeaseTerm()
    term.ask(0)
    term.answered(0, { kind: 'other', holder: 'b', leftUs: 6 * S })
    for (let now = 2 * S; now < 20 * S; now += 2 * S) {
      term.ask(now)
      term.answered(now + S, undefined)
    }
    expect(term.viewAt(7 * S)).toEqual({ kind: 'follows', holder: 'b' })
    expect(term.viewAt(8 * S)).toEqual({ kind: 'unknown' })
  })
})

/**
 * Four gateways and one row in virtual time, with answers that are late or lost and gateways that are paused. The
 * database decides by its own clock, which is another one than each gateway's.
 */
function run(seed: number): { readonly ledUs: number; readonly longestGapUs: number; readonly terms: number } {
  const rng = Rng.stream(seed, 'leader')
  const { termUs } = TERM_DEFAULTS
  const row = { holder: -1, fence: 0, expiresAt: 0 }
  const gateways = Array.from({ length: 4 }, () => ({
    term: new LeaseTerm(),
    pausedUntil: 0,
    skew: Math.floor(rng.next() * 1e9),
    pending: undefined as undefined | { readonly at: number; readonly answer: Parameters<LeaseTerm['answered']>[1] },
  }))
  let [ledUs, lastLedAt, longestGapUs] = [0, 0, 0]
  const [stepUs, endUs] = [50_000, 300 * S]
  for (let now = 0; now < endUs; now += stepUs) {
    gateways.forEach((gateway, i) => {
      if (now < gateway.pausedUntil) return
      const own = now + gateway.skew
      if (gateway.pending !== undefined && now >= gateway.pending.at) {
        gateway.term.answered(own, gateway.pending.answer)
        gateway.pending = undefined
      }
      const nextAt = gateway.term.nextAt()
      if (nextAt !== undefined && own >= nextAt) {
        const question = gateway.term.ask(own)
        const arrivesAt = now + Math.floor(rng.next() * 0.5 * S)
        const isLost = rng.next() < 0.1
        const isFree = row.expiresAt <= arrivesAt || row.holder === i
        const isOwn = question.kind === 'renew' && row.holder === i && row.fence === question.fence
        const isGranted = question.kind === 'renew' ? isOwn && row.expiresAt > arrivesAt : isFree
        if (isGranted) {
          if (question.kind === 'acquire') row.fence++
          row.holder = i
          row.expiresAt = arrivesAt + termUs
        }
        const answer = isGranted
          ? ({ kind: 'held', fence: row.fence } as const)
          : ({ kind: 'other', holder: String(row.holder), leftUs: row.expiresAt - arrivesAt } as const)
        gateway.pending = { at: isLost ? now + 2 * S : arrivesAt, answer: isLost ? undefined : answer }
      }
      if (rng.next() < 0.0005) gateway.pausedUntil = now + Math.floor(rng.next() * 15 * S)
    })
    const leading = gateways.flatMap(({ term, skew, pausedUntil }, i) => {
      const view = term.viewAt(now + skew)
      return view.kind === 'leads' && now >= pausedUntil ? [{ i, fence: view.fence }] : []
    })
    // Whoever believes to lead is the one that the database has, with this very fence.
    for (const { i, fence } of leading) expect([row.holder, row.fence, row.expiresAt > now]).toEqual([i, fence, true])
    expect(leading.length).toBeLessThanOrEqual(1)
    if (leading.length === 1) {
      ledUs += stepUs
      longestGapUs = Math.max(longestGapUs, now - lastLedAt)
      lastLedAt = now
    }
  }
  return { ledUs: ledUs / endUs, longestGapUs, terms: row.fence }
}

describe('four gateways with pauses, lost answers and clocks of their own', () => {
  it.each(Array.from({ length: 20 }, (_, seed) => seed))(
    'never have two leaders, and soon have one again (seed %i)',
    (seed) => {
      const { ledUs, longestGapUs, terms } = run(seed)
      expect(ledUs).toBeGreaterThan(0.7)
      expect(terms).toBeGreaterThan(1)
      // A paused leader's term, and a few questions that were lost.
      expect(longestGapUs).toBeLessThan(30 * S)
    },
  )
})
