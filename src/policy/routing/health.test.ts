import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HEALTH_DEFAULTS, Health, type HealthChange } from './health.ts'

const S = 1_000_000

function makePool(count: number): Health {
  const health = new Health()
  for (let i = 0; i < count; i++) {
    health.add(0, `r${i}`, 'p')
    health.report(0, `r${i}`, true)
  }
  // Past the slow start.
  for (let at = health.nextWakeupAt(); at !== undefined; at = health.nextWakeupAt()) health.onWakeup(at)
  return health
}

const AFTER = HEALTH_DEFAULTS.warmStepUs * HEALTH_DEFAULTS.warmDoublings

const fail = (health: Health, now: number, times: number, id = 'r0'): HealthChange[] =>
  Array.from({ length: times }, () => health.observe(now, id, { grantedAt: now, isFailed: true })).flat()

describe('health', () => {
  it('takes nothing before the first probe, then twice as much step by step', () => {
    const health = new Health({ warmFrom: 4, warmDoublings: 3 })
    expect(health.add(0, 'r0', 'p')[0]).toMatchObject({ isReady: false, allowance: 0 })
    const allowances = [health.report(0, 'r0', true)[0]?.allowance]
    for (let at = health.nextWakeupAt(); at !== undefined; at = health.nextWakeupAt())
      allowances.push(health.onWakeup(at)[0]?.allowance)
    expect(allowances).toEqual([4, 8, 16, Number.POSITIVE_INFINITY])
  })

  it('ejects after five failures in a row, tries one, and ejects twice as long if that fails', () => {
    const health = makePool(4)
    expect(fail(health, AFTER, 4)).toEqual([])
    expect(fail(health, AFTER, 1)).toMatchObject([{ kind: 'ejected', isReady: false }])
    expect(health.nextWakeupAt()).toBe(AFTER + 10 * S)
    expect(health.onWakeup(AFTER + 10 * S)).toMatchObject([{ kind: 'trial', isReady: true, allowance: 1 }])
    expect(fail(health, AFTER + 11 * S, 1)).toMatchObject([{ kind: 'ejected' }])
    expect(health.nextWakeupAt()).toBe(AFTER + 31 * S)
    health.onWakeup(AFTER + 31 * S)
    const healed = health.observe(AFTER + 32 * S, 'r0', { grantedAt: AFTER + 31 * S, isFailed: false })
    expect(healed).toMatchObject([{ kind: 'warming', isReady: true, allowance: HEALTH_DEFAULTS.warmFrom }])
  })

  it('ejects one that fails every other time', () => {
    const health = makePool(4)
    const changes: HealthChange[] = []
    for (let i = 0; i < 40 && changes.length === 0; i++)
      changes.push(...health.observe(AFTER + i, 'r0', { grantedAt: AFTER + i, isFailed: i % 2 === 0 }))
    expect(changes).toMatchObject([{ kind: 'ejected', because: 'it fails too large a share of its attempts' }])
  })

  it('hears nothing about a trial from attempts that began before it', () => {
    const health = makePool(4)
    fail(health, AFTER, 5)
    health.onWakeup(AFTER + 10 * S)
    expect(health.observe(AFTER + 11 * S, 'r0', { grantedAt: AFTER, isFailed: true })).toEqual([])
    expect(health.kindOf('r0')).toBe('trial')
  })

  const lose = (health: Health, now: number, orgs: readonly string[]): HealthChange[] =>
    orgs.flatMap((orgId) => [...health.observe(now, 'r0', { grantedAt: now, isFailed: true, isLost: true, orgId })])

  it('takes the only one after five losses in a row of two orgs, and tries it again every ten seconds', () => {
    const health = makePool(1)
    expect(lose(health, AFTER, ['a', 'a', 'b', 'a'])).toEqual([])
    expect(lose(health, AFTER, ['a'])).toMatchObject([{ kind: 'ejected' }])
    for (let i = 1; i <= 3; i++) {
      expect(health.nextWakeupAt()).toBe(AFTER + i * 10 * S)
      expect(health.onWakeup(AFTER + i * 10 * S)).toMatchObject([{ kind: 'trial', allowance: 1 }])
      expect(lose(health, AFTER + i * 10 * S, ['a'])).toMatchObject([{ kind: 'ejected' }])
    }
  })

  it('takes the only one after five losses of one org where it does not answer us either', () => {
    const health = makePool(1)
    expect(lose(health, AFTER, ['a', 'a', 'a', 'a'])).toEqual([])
    expect(health.isInDoubt('r0')).toBe(false)
    expect(health.confirm(AFTER, 'r0')).toEqual([])
    expect(lose(health, AFTER, ['a'])).toEqual([])
    expect(health.isInDoubt('r0')).toBe(true)
    expect(health.confirm(AFTER, 'r0')).toMatchObject([{ kind: 'ejected' }])
  })

  it('does not take the only one for refusals, nor for losses with an answer among them', () => {
    const health = makePool(1)
    fail(health, AFTER, 50)
    lose(health, AFTER, ['a', 'b', 'a', 'b'])
    health.observe(AFTER, 'r0', { grantedAt: AFTER, isFailed: false })
    expect(lose(health, AFTER, ['a', 'b', 'a', 'b'])).toEqual([])
    expect([health.kindOf('r0'), health.isInDoubt('r0')]).toEqual(['steady', false])
  })

  it('keeps a stalled one away, the only one too, until it makes progress, whatever its probe says', () => {
    const health = makePool(1)
    expect(health.stall(AFTER, 'r0', 'no progress')).toMatchObject([{ kind: 'away', isReady: false, allowance: 0 }])
    expect(health.stall(AFTER, 'r0', 'no progress')).toEqual([])
    expect(health.report(AFTER + S, 'r0', true)).toEqual([])
    expect(health.resume(AFTER + 2 * S, 'r0')).toMatchObject([{ kind: 'warming', isReady: true }])
    expect(health.resume(AFTER + 2 * S, 'r0')).toEqual([])
    // A stalled one that is restarted meanwhile is ready when its probe says so.
    health.stall(AFTER, 'r0', 'no progress')
    expect(health.report(AFTER + 3 * S, 'r0', false)).toMatchObject([{ kind: 'away' }])
    expect(health.report(AFTER + 4 * S, 'r0', true)).toMatchObject([{ kind: 'warming' }])
    // A drained one is away when it is taken back.
    health.drain(AFTER, 'r0')
    expect(health.stall(AFTER, 'r0', 'no progress')).toEqual([])
    expect(health.undrain(AFTER, 'r0')).toMatchObject([{ kind: 'away', because: 'no progress' }])
  })

  it('never takes the only one for failures that are not proven, nor more than half', () => {
    expect(fail(makePool(1), AFTER, 50)).toEqual([])
    const health = makePool(4)
    for (let i = 0; i < 4; i++) fail(health, AFTER, 10, `r${i}`)
    expect([0, 1, 2, 3].filter((i) => health.kindOf(`r${i}`) === 'ejected')).toHaveLength(2)
  })

  it('drains, whatever probes say', () => {
    const health = makePool(2)
    expect(health.drain(AFTER, 'r0')).toMatchObject([{ kind: 'draining', isReady: false }])
    expect(health.report(AFTER, 'r0', false)).toEqual([])
    expect(health.undrain(AFTER, 'r0')).toMatchObject([{ kind: 'away' }])
    health.drain(AFTER, 'r0')
    health.report(AFTER, 'r0', true)
    expect(health.undrain(AFTER, 'r0')).toMatchObject([{ kind: 'warming' }])
  })

  it('keeps its promises whatever happens', () => {
    const event = fc.record({
      what: fc.constantFrom(
        ...([
          'fail',
          'fail',
          'fail',
          'succeed',
          'ready',
          'away',
          'drain',
          'undrain',
          'wake',
          'stall',
          'resume',
        ] as const),
      ),
      replica: fc.nat({ max: 4 }),
      pauseUs: fc.nat({ max: 20 * S }),
    })
    fc.assert(
      fc.property(fc.array(event, { maxLength: 200 }), (events) => {
        const health = makePool(5)
        const last = new Map<string, HealthChange>()
        let now = AFTER
        const take = (changes: readonly HealthChange[]): void => {
          for (const change of changes) last.set(change.replicaId, change)
        }
        for (const { what, replica, pauseUs } of events) {
          now += pauseUs
          const id = `r${replica}`
          const wakeupAt = health.nextWakeupAt()
          if (wakeupAt !== undefined && wakeupAt <= now) take(health.onWakeup(now))
          if (what === 'fail' || what === 'succeed')
            take(health.observe(now, id, { grantedAt: now, isFailed: what === 'fail' }))
          if (what === 'ready' || what === 'away') take(health.report(now, id, what === 'ready'))
          if (what === 'stall') take(health.stall(now, id, 'no progress'))
          if (what === 'resume') take(health.resume(now, id))
          if (what === 'drain') take(health.drain(now, id))
          if (what === 'undrain') take(health.undrain(now, id))
          health.assertInvariants()
          for (const [known, change] of last) expect(change.kind).toBe(health.kindOf(known))
          const ejected = [0, 1, 2, 3, 4].filter((i) => health.kindOf(`r${i}`) === 'ejected').length
          expect(ejected).toBeLessThanOrEqual(2)
        }
        // Left alone, nobody stays ejected.
        for (let i = 0; i < 100; i++) health.onWakeup(health.nextWakeupAt() ?? now)
        for (let i = 0; i < 5; i++) expect(health.kindOf(`r${i}`)).not.toBe('ejected')
      }),
      { numRuns: 300 },
    )
  })
})
