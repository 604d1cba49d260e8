import { describe, expect, it } from 'vitest'
import type { AttemptFact } from './judge.ts'
import { ModelRollout, type RolloutSettings } from './model-rollout.ts'

const FINE: AttemptFact = {
  tenantId: 'a',
  promptTokens: 100,
  isFailed: false,
  isRefused: false,
  ttftRatio: 1,
  interTokenRatio: 1,
  costRatio: 1,
}
const FAILED: AttemptFact = { ...FINE, isFailed: true, ttftRatio: undefined, interTokenRatio: undefined }

const settings: RolloutSettings = {
  model: 'm',
  stable: 'm@1',
  canary: 'm@2',
  stickyBy: 'session',
  steps: [0.05, 0.5],
  dwellUs: 100,
  pins: [{ release: 'm@2', tenantId: 'friend' }],
  judge: { pairsMin: 10 },
}

const started = (over: Partial<RolloutSettings> = {}): ModelRollout => {
  const rollout = new ModelRollout({ ...settings, ...over })
  rollout.begin(0)
  return rollout
}

const choose = (rollout: ModelRollout, session: string, tenantId = 'a') =>
  rollout.choose({ tenantId, keyId: 'k', session, headers: {} }).release

const shareOfCanary = (rollout: ModelRollout): number => {
  let count = 0
  for (let i = 0; i < 2_000; i++) if (choose(rollout, `s${i}`) === 'm@2') count++
  return count / 2_000
}

function fail(rollout: ModelRollout, times: number) {
  let change: ReturnType<ModelRollout['observe']>
  for (let i = 0; i < times && change === undefined; i++) {
    rollout.observe(1, 'm@1', FINE)
    change = rollout.observe(1, 'm@2', FAILED)
  }
  return change
}

/** Pairs until the judge is content at its step; times alternate, so that neither is slower. */
function agree(rollout: ModelRollout, now: number): void {
  for (let i = 0; i < 120; i++) {
    const slow = { ...FINE, ttftRatio: 1 + (i % 2), interTokenRatio: 1 + (i % 2) }
    rollout.observe(now, 'm@1', { ...FINE, ttftRatio: 2 - (i % 2), interTokenRatio: 2 - (i % 2) })
    rollout.observe(now, 'm@2', slow)
  }
}

describe('a model’s rollout', () => {
  it('gives everybody the stable release until a canary is named, except who is pinned', () => {
    const rollout = new ModelRollout({ ...settings, canary: undefined })
    expect(rollout.begin(0)).toBeUndefined()
    expect(shareOfCanary(rollout)).toBe(0)
    expect(choose(rollout, 's', 'friend')).toBe('m@2')
    expect(rollout.view()).toMatchObject({ phase: 'none', canary: undefined, canaryRatio: 0 })
  })

  it('rolls back at once when the canary only fails, and says the numbers', () => {
    const rollout = started()
    expect(shareOfCanary(rollout)).toBeGreaterThan(0.03)
    const change = fail(rollout, 50)
    expect(change).toMatchObject({ kind: 'rolled-back', by: 'judge', stable: 'm@1', canary: 'm@2', canaryRatio: 0 })
    expect(change?.verdict?.evidence.find(({ metric }) => metric === 'errors')?.pairs).toBeLessThan(50)
    expect(shareOfCanary(rollout)).toBe(0)
    expect(rollout.isRolledBack('m@2')).toBe(true)
    // A release that was rolled back is out of the reach of pins.
    expect(choose(rollout, 's', 'friend')).toBe('m@1')
  })

  it('forgets what it had counted when a person undoes its rollback, and waits to be resumed', () => {
    const rollout = started()
    fail(rollout, 50)
    expect(rollout.command(2, { kind: 'undo' }, 'key-1', 'it was the database')).toMatchObject({ kind: 'undone' })
    expect(rollout.view()).toMatchObject({ phase: 'canary', isHeld: true, canaryRatio: 0.05 })
    expect(fail(rollout, 50)).toBeUndefined()
    expect(rollout.command(3, { kind: 'undo' }, 'key-1', 'again')).toBeUndefined()
    rollout.command(3, { kind: 'resume' }, 'key-1', 'go on')
    expect(rollout.tick(4)).toMatchObject({ kind: 'rolled-back' })
  })

  it('goes up when the judge agrees and the dwell is over, and the promoted one is the next stable', () => {
    const rollout = started()
    agree(rollout, 50)
    expect(rollout.tick(99)).toBeUndefined()
    expect(rollout.tick(100)).toMatchObject({ kind: 'promoted-step', canaryRatio: 0.5, step: 1 })
    agree(rollout, 150)
    expect(rollout.tick(201)).toMatchObject({ kind: 'promoted', canaryRatio: 1 })
    expect(rollout.serving).toBe('m@2')
    expect(shareOfCanary(rollout)).toBe(1)
    expect(rollout.command(300, { kind: 'start', canary: 'm@2' }, 'k', 'again')).toBeUndefined()
    expect(rollout.command(300, { kind: 'start', canary: 'm@3' }, 'k', 'next')).toMatchObject({
      kind: 'started',
      stable: 'm@2',
      canary: 'm@3',
    })
  })

  it('is moved by hand, each change with who and why', () => {
    const rollout = started()
    const by = (kind: 'pause' | 'resume' | 'promote' | 'roll-back' | 'undo') =>
      rollout.command(5, { kind }, 'ops', 'because I say so')?.kind
    expect(rollout.command(5, { kind: 'promote' }, 'ops', 'sure')).toMatchObject({ by: 'ops', because: 'sure' })
    expect([by('pause'), by('pause'), by('resume'), by('resume')]).toEqual(['held', undefined, 'resumed', undefined])
    expect([by('promote'), by('promote'), by('undo')]).toEqual(['promoted', undefined, 'undone'])
    expect([by('roll-back'), by('roll-back'), by('undo')]).toEqual(['rolled-back', undefined, 'undone'])
    expect(rollout.command(6, { kind: 'start', canary: 'm@3' }, 'ops', 'too early')).toBeUndefined()
  })

  it('rolls a promoted release back when it drifts on the holdout set', () => {
    const rollout = started()
    rollout.command(1, { kind: 'promote' }, 'k', 'x')
    rollout.command(1, { kind: 'promote' }, 'k', 'x')
    for (let i = 0; i < 30; i++) expect(rollout.observeHoldout(2, `item-${i % 3}`, { score: 1 })).toBeUndefined()
    let change: ReturnType<ModelRollout['observeHoldout']>
    for (let i = 0; i < 60 && change === undefined; i++)
      change = rollout.observeHoldout(3, `item-${i % 3}`, { score: 0 })
    expect(change).toMatchObject({ kind: 'rolled-back', by: 'drift' })
    expect(rollout.serving).toBe('m@1')
  })

  it('rolls a canary back that scores less on the holdout set', () => {
    const rollout = started()
    let change: ReturnType<ModelRollout['observeHoldout']>
    const scores = { score: 1, canaryScore: 0 }
    for (let i = 0; i < 60 && change === undefined; i++) change = rollout.observeHoldout(3, `item-${i % 3}`, scores)
    expect(change).toMatchObject({
      kind: 'rolled-back',
      by: 'judge',
      because: 'worse: it scores less on the holdout set',
    })
  })
})
