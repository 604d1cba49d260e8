import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Rng } from '../../base/rng.ts'
import { Drift } from './drift.ts'
import type { JudgeVerdict } from './judge.ts'
import { Pairing } from './pairing.ts'
import { ROLLOUT_DEFAULTS, Rollout, type RolloutPlan } from './rollout.ts'
import { compareAnswers, decideShadow, SHADOW_DEFAULTS } from './shadow.ts'
import { chooseRelease, type Pin, type Split, type SplitAsk } from './split.ts'

const plan: RolloutPlan = {
  name: 'r',
  model: 'm',
  stable: 'v1',
  canary: 'v2',
  stickyBy: 'session',
  steps: ROLLOUT_DEFAULTS.steps,
  dwellUs: 100,
  pins: [],
}
const ask = (over: Partial<SplitAsk> = {}): SplitAsk => ({
  tenantId: 'a',
  keyId: 'k',
  session: undefined,
  headers: {},
  ...over,
})
const says = (kind: JudgeVerdict['kind']): JudgeVerdict => ({ kind, because: kind, evidence: [] })
const splitAt = (ratio: number, pins: readonly Pin[] = []): Split => ({
  name: 'r',
  stickyBy: 'session',
  shares: [
    { release: 'v2', weight: ratio },
    { release: 'v1', weight: 1 - ratio },
  ],
  pins,
})

describe('the split', () => {
  it('gives each release its share, and keeps what the canary has while it grows', () => {
    const sessions = Array.from({ length: 20_000 }, (_, i) => ask({ session: `s${i}` }))
    const at = (ratio: number) => sessions.filter((one) => chooseRelease(splitAt(ratio), one).release === 'v2')
    const [few, many] = [at(0.05), at(0.25)]
    expect(few.length / sessions.length).toBeCloseTo(0.05, 2)
    expect(many.length / sessions.length).toBeCloseTo(0.25, 2)
    const kept = new Set(many)
    expect(few.every((one) => kept.has(one))).toBe(true)
  })

  it('keeps a tenant together when asked', () => {
    const split = { ...splitAt(0.5), stickyBy: 'tenant' } as const
    for (let t = 0; t < 50; t++) {
      const chosen = [1, 2, 3].map((s) => chooseRelease(split, ask({ tenantId: `t${t}`, session: `s${s}` })).release)
      expect(new Set(chosen).size).toBe(1)
    }
  })

  it.each([
    ['a tenant', { release: 'v2', tenantId: 'a' }, {}, 'v2'],
    ['a key', { release: 'v2', keyId: 'k' }, {}, 'v2'],
    ['a header', { release: 'v2', header: { name: 'x-beta', value: '1' } }, { headers: { 'x-beta': '1' } }, 'v2'],
    ['any value of a header', { release: 'v2', header: { name: 'x-beta' } }, { headers: { 'x-beta': '' } }, 'v2'],
    ['not another tenant', { release: 'v2', tenantId: 'b' }, {}, 'v1'],
    ['not half of a rule', { release: 'v2', tenantId: 'a', header: { name: 'x-beta' } }, {}, 'v1'],
    ['nobody when it names nothing', { release: 'v2' }, {}, 'v1'],
  ])('pins %s', (_, pin, over, release) => {
    expect(chooseRelease(splitAt(0, [pin]), ask(over)).release).toBe(release)
  })
})

describe('a rollout', () => {
  it('climbs its steps when the judge agrees and the dwell is over', () => {
    const rollout = new Rollout(plan)
    rollout.start(0, 'ann', 'new weights')
    expect(rollout.judge(50, says('promote'))).toBeUndefined()
    expect(rollout.judge(100, says('promote'))).toMatchObject({ kind: 'promoted-step', by: 'judge' })
    expect(rollout.judge(150, says('wait'))).toBeUndefined()
    rollout.judge(200, says('promote'))
    expect(rollout.canaryRatio).toBe(0.5)
    expect(rollout.judge(300, says('promote'))).toMatchObject({ kind: 'promoted' })
    expect(rollout.split().shares).toEqual([{ release: 'v2', weight: 1 }])
  })

  it('goes all the way back at once, pins included, and can be undone by hand', () => {
    const rollout = new Rollout({ ...plan, pins: [{ release: 'v2', tenantId: 'a' }] })
    rollout.start(0, 'ann', '')
    rollout.judge(100, says('promote'))
    const change = rollout.judge(110, says('roll-back'))
    expect(change).toMatchObject({ kind: 'rolled-back', by: 'judge', because: 'roll-back' })
    expect(chooseRelease(change?.split as Split, ask()).release).toBe('v1')
    expect(rollout.undo(120, 'ann', 'it was the database')).toMatchObject({ kind: 'undone', by: 'ann' })
    expect(rollout.canaryRatio).toBe(0.25)
    expect(rollout.judge(500, says('roll-back'))).toBeUndefined()
    rollout.resume(500, 'ann', 'go on')
    expect(rollout.judge(510, says('roll-back'))).toMatchObject({ kind: 'rolled-back' })
  })

  it('undoes a promotion too', () => {
    const rollout = new Rollout({ ...plan, steps: [0.1] })
    rollout.start(0, 'ann', '')
    rollout.promote(1, 'ann', 'I know it')
    expect(rollout.phase).toBe('promoted')
    rollout.undo(2, 'bob', 'I do not')
    expect(rollout.canaryRatio).toBe(0.1)
    expect(rollout.undo(3, 'bob', 'more')).toBeUndefined()
  })
})

describe('pairing', () => {
  it('uses each attempt once, within its stratum, and forgets what is too much', () => {
    const event = fc.record({ isCanary: fc.boolean(), stratum: fc.nat({ max: 6 }), loadClass: fc.nat({ max: 2 }) })
    fc.assert(
      fc.property(fc.array(event, { maxLength: 300 }), (events) => {
        const used = new Set<number>()
        const pairing = new Pairing<{ id: number; stratum: number; isCanary: boolean }>(
          (canary, stable) => {
            expect([canary.isCanary, stable.isCanary]).toEqual([true, false])
            expect(canary.stratum).toBe(stable.stratum)
            for (const { id } of [canary, stable]) {
              expect(used.has(id)).toBe(false)
              used.add(id)
            }
          },
          { strataMax: 4, waitingMax: 3 },
        )
        events.forEach(({ isCanary, stratum, loadClass }, id) => {
          if (isCanary) pairing.addCanary(`${stratum}`, { id, stratum, isCanary }, loadClass)
          else pairing.addStable(`${stratum}`, { id, stratum, isCanary }, loadClass)
          expect(pairing.strataCount).toBeLessThanOrEqual(4)
        })
      }),
    )
  })

  /** S5 is a stable attempt of load class 5, c1 a canary's of class 1. */
  const pairsOf = (...events: readonly string[]): string[] => {
    const pairs: string[] = []
    const pairing = new Pairing<string>((canary, stable) => pairs.push(`${canary} ${stable}`), {
      strataMax: 4,
      waitingMax: 3,
    })
    events.forEach((event, i) => {
      const loadClass = Number(event.slice(1))
      if (event.startsWith('c')) pairing.addCanary('one', `${event}/${i}`, loadClass)
      else pairing.addStable('one', `${event}/${i}`, loadClass)
    })
    return pairs
  }

  it.each([
    ['the last of its class when it looks back', ['S5', 'S5', 'S3', 'c5'], ['c5/3 S5/1']],
    ['the last of all when there is none of its class', ['S5', 'S5', 'S3', 'c1'], ['c1/3 S3/2']],
    ['the first of its class to come when it looks on', ['S5', 'c5', 'c5', 'S3', 'S5'], ['c5/1 S5/0', 'c5/2 S5/4']],
    ['the third to come when none is of its class', ['S5', 'c5', 'c1', 'S3', 'S4', 'S6'], ['c5/1 S5/0', 'c1/2 S6/5']],
  ])('takes %s', (_, events, pairs) => expect(pairsOf(...events)).toEqual(pairs))
})

describe('shadow', () => {
  const rule = { ...SHADOW_DEFAULTS, release: 'v2', ratio: 0.1, excludedTenantIds: ['secret'] }
  const facts = { ticketId: 't', tenantId: 'a', hasTools: false, inFlight: 0, hasLeftoverRoom: true }
  const all = { ...rule, ratio: 1 }

  it('takes its sample', () => {
    const kinds = Array.from({ length: 10_000 }, (_, i) => decideShadow(rule, { ...facts, ticketId: `req-${i}` }).kind)
    expect(kinds.filter((kind) => kind === 'mirror').length / 10_000).toBeCloseTo(0.1, 1)
  })

  it.each([
    ['without room', { hasLeftoverRoom: false }],
    ['with tools', { hasTools: true }],
    ['of an excluded tenant', { tenantId: 'secret' }],
    ['beyond its bound', { inFlight: 8 }],
  ])('mirrors nothing %s', (_, over) => expect(decideShadow(all, { ...facts, ...over }).kind).toBe('skip'))

  it('says how answers differ', () => {
    expect(compareAnswers('the cat', 'the cat')).toMatchObject({ isEqual: true, samePrefixRatio: 1, sameWordsRatio: 1 })
    const { sameWordsRatio, samePrefixRatio } = compareAnswers('the cat sat', 'the dog sat')
    expect([sameWordsRatio, samePrefixRatio]).toEqual([0.5, 4 / 11])
  })
})

describe('drift', () => {
  function run(seed: number, passRatio: (i: number) => number, evaluations: number): number | undefined {
    const rng = Rng.stream(seed, 'drift')
    const items = Array.from({ length: 50 }, () => (rng.next() < 0.5 ? 0.95 : 0.7))
    const drift = new Drift()
    for (let i = 0; i < evaluations; i++) {
      const item = i % items.length
      drift.observe(`${item}`, rng.next() < (items[item] as number) * passRatio(i) ? 1 : 0)
      if (drift.verdict().hasDrifted) return i
    }
    return undefined
  }

  it('notices a regression soon, and is quiet without one', () => {
    let alarms = 0
    for (let seed = 1; seed <= 20; seed++) {
      if (run(seed, () => 1, 3_000) !== undefined) alarms++
      const noticedAt = run(seed, (i) => (i < 1_000 ? 1 : 0.6), 2_000)
      expect(noticedAt ?? 2_000).toBeLessThan(1_300)
    }
    expect(alarms).toBeLessThanOrEqual(2)
  })
})
