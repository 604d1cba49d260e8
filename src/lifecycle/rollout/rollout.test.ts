import { describe, expect, it } from 'vitest'
import { journalOf } from '../../../test/support/simulated.ts'
import type { Entry, Settled } from '../../domain/entry.ts'
import type { Fault, Scenario } from '../../sim/scenario/scenario.ts'
import type { Platform } from '../platform.ts'
import { changeRollout } from './change-rollout.ts'

/** The whole platform in virtual time, with two releases of one model and a smaller model behind them. */
const backend = { kind: 'simulated', profile: 'h100-llama-8b' }

interface World {
  readonly rollout?: Record<string, unknown>
  readonly faults?: Fault[]
  readonly tenant?: Record<string, unknown>
  readonly durationS?: number
}

const scenarioOf = ({ rollout, faults = [], tenant = {}, durationS = 20 }: World): Scenario => ({
  name: 'releases',
  about: 'made up',
  durationS,
  platform: {
    models: [
      {
        name: 'm',
        fallback: 'small',
        releases: [{ version: '1' }, { version: '2' }],
        ...(rollout !== undefined && { rollout: { stable: '1', ...rollout } }),
      },
      { name: 'small' },
    ],
    pools: [
      { model: 'm', release: '1', backend },
      { model: 'm', release: '2', backend },
      { model: 'small', backend },
    ],
    tenants: [{ id: 'a', ...tenant }],
  },
  workload: [
    {
      tenant: 'a',
      model: 'm',
      conversations: 500,
      arrivals: { kind: 'poisson', ratePerS: 10 },
      prompt: { kind: 'fixed', tokens: 200 },
      output: { kind: 'fixed', tokens: 20 },
    },
  ],
  faults,
})

const settledOf = (entries: readonly Entry[]) => entries.filter((entry): entry is Settled => entry.kind === 'settled')

const servedBy = (entries: readonly Entry[]) => {
  const counts: Record<string, number> = {}
  for (const { outcome, releaseId, rung } of settledOf(entries)) {
    const name = `${outcome} ${releaseId} ${rung}`
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

const FOREVER = { atS: 0, forS: 1_000 }

describe('which release a request gets', () => {
  it('is the first one where nothing is said', async () => {
    const { entries } = await journalOf(scenarioOf({}), { seed: 1 })
    expect(Object.keys(servedBy(entries))).toEqual(['completed m@1 full'])
  })

  it('is split by session', async () => {
    const { entries } = await journalOf(scenarioOf({ rollout: { canary: '2', steps: [30] } }), { seed: 1 })
    const { 'completed m@1 full': stable = 0, 'completed m@2 full': canary = 0 } = servedBy(entries)
    expect(canary / (stable + canary)).toBeGreaterThan(0.2)
    expect(canary / (stable + canary)).toBeLessThan(0.4)
  })

  it('is a rule’s where one fits, and said in the reason', async () => {
    const { entries } = await journalOf(scenarioOf({ rollout: { rules: [{ tenant: 'a', release: '2' }] } }), {
      seed: 1,
    })
    expect(Object.keys(servedBy(entries))).toEqual(['completed m@2 full'])
    const admitted = entries.find((entry) => entry.kind === 'admitted')
    expect(admitted).toMatchObject({ releaseId: 'm@2', because: expect.stringMatching(/; release: pinned$/) })
  })
})

describe('a release that fails', () => {
  it('is rolled back, and its users see none of it', async () => {
    const fault: Fault = { kind: 'replica-errors', target: 'm@2', ...FOREVER }
    const { entries, report } = await journalOf(
      scenarioOf({ rollout: { canary: '2', steps: [20] }, faults: [fault], durationS: 30 }),
      { seed: 1 },
    )
    expect(Object.keys(servedBy(entries))).toEqual(['completed m@1 full'])
    expect(report.rollouts['m']).toMatchObject({ rolledBack: 1, percent: 0 })
    expect(report.rollouts['m']?.canaryFailedAttempts).toBeLessThanOrEqual(50)
    const twice = settledOf(entries).filter(({ attempts }) => attempts === 2)
    expect(twice.length).toBeGreaterThan(10)
  })

  it('costs its users none of the tries that the stable release is allowed', async () => {
    // Stable fails half of its attempts too: canary, stable, stable.
    const faults: Fault[] = [
      { kind: 'replica-errors', target: 'm@2', ...FOREVER },
      { kind: 'replica-errors', target: 'm@1', ratio: 0.4, ...FOREVER },
    ]
    const { entries } = await journalOf(scenarioOf({ rollout: { canary: '2', steps: [50] }, faults }), { seed: 1 })
    expect(Math.max(...settledOf(entries).map(({ attempts }) => attempts))).toBe(3)
  })
})

describe('a release without a healthy replica', () => {
  it.each([
    ['the stable one', 'm@1', { canary: '2', steps: [20] }, 'completed m@2 full'],
    ['the canary', 'm@2', { canary: '2', steps: [20] }, 'completed m@1 full'],
    ['the only one in use', 'm@1', undefined, 'completed m@2 full'],
  ] as const)('is stood in for: %s', async (_, target, rollout, served) => {
    const { entries } = await journalOf(
      scenarioOf({ ...(rollout && { rollout }), faults: [{ kind: 'replica-crash', target, ...FOREVER }] }),
      { seed: 1 },
    )
    const late = settledOf(entries).filter(({ arrivedAt }) => arrivedAt > 3_000_000)
    expect(Object.keys(servedBy(late))).toEqual([served])
  })

  it('is stood in for by the smaller model when no other is left, with nothing else given up', async () => {
    const faults: Fault[] = ['m@1', 'm@2'].map((target) => ({ kind: 'replica-crash', target, ...FOREVER }))
    const { entries } = await journalOf(scenarioOf({ faults }), { seed: 1 })
    const late = settledOf(entries).filter(({ arrivedAt }) => arrivedAt > 3_000_000)
    expect(Object.keys(servedBy(late))).toEqual(['completed small@1 smaller-model'])
    expect(new Set(late.map(({ usage }) => usage.promptTokens))).toEqual(new Set([200]))
  })

  it('is not stood in for by a smaller model where the tenant would rather be refused', async () => {
    const faults: Fault[] = ['m@1', 'm@2'].map((target) => ({ kind: 'replica-crash', target, ...FOREVER }))
    const { entries } = await journalOf(scenarioOf({ faults, tenant: { contract: 'reject' } }), { seed: 1 })
    const late = settledOf(entries).filter(({ arrivedAt }) => arrivedAt > 3_000_000)
    expect(new Set(late.map(({ outcome }) => outcome))).toEqual(new Set(['rejected']))
  })
})

describe('a rollout by hand', () => {
  it('starts, is promoted, rolled back and undone, with who and why in the journal', async () => {
    let platform: Platform | undefined
    const said: unknown[] = []
    const by = (atS: number, command: Parameters<typeof changeRollout>[1]['command'], model = 'm') => ({
      atS,
      command,
      model,
    })
    const steps = [
      by(1, { kind: 'promote' }),
      by(2, { kind: 'start', canary: 'm@9' }),
      by(3, { kind: 'start', canary: 'm@2' }, 'nobody'),
      by(4, { kind: 'start', canary: 'm@2' }),
      by(5, { kind: 'promote' }),
      by(6, { kind: 'roll-back' }),
      by(7, { kind: 'undo' }),
    ]
    const { entries } = await journalOf(scenarioOf({}), {
      seed: 1,
      onAssembled: (assembled, _, clock) => {
        platform = assembled
        for (const { atS, command, model } of steps)
          clock.at(atS * 1_000_000, () => {
            const done = changeRollout(assembled, { model, command, by: 'ops', because: 'a test' })
            said.push(done.kind === 'changed' ? `${done.view.phase} ${done.view.canaryRatio}` : done.code)
          })
      },
    })
    expect(said).toEqual([
      'nothing-to-change',
      'no-such-release',
      'no-such-model',
      'canary 0.05',
      'canary 0.25',
      'rolled-back 0',
      'canary 0.25',
    ])
    expect(platform?.policies.rollouts.get('m')?.view()).toMatchObject({ isHeld: true, canary: 'm@2' })
    const changes = entries.filter((entry) => entry.kind === 'rollout-changed')
    expect(changes.map(({ change }) => change)).toEqual(['started', 'promoted-step', 'rolled-back', 'undone'])
    expect(changes.every((entry) => entry.by === 'ops' && entry.because === 'a test')).toBe(true)
  })
})

describe('copies of requests', () => {
  const shadowed = (over: Partial<World> = {}, shadow: Record<string, unknown> = {}) =>
    scenarioOf({ rollout: { shadow: { release: '2', percent: 50, inFlightMax: 3, ...shadow } }, ...over })
  const copiesIn = (entries: readonly Entry[]) => entries.filter((entry) => entry.kind === 'shadow-ended')
  /** When and how each request of the workload ended. */
  const endsOf = (entries: readonly Entry[]) =>
    settledOf(entries).flatMap(({ tenantId, ticketId, outcome, at }) =>
      tenantId === 'a' ? [`${ticketId} ${outcome} ${at}`] : [],
    )

  it('change nothing for those who are copied, and are charged to the platform', async () => {
    const plain = await journalOf(scenarioOf({ rollout: {} }), { seed: 1 })
    const { entries, report } = await journalOf(shadowed(), { seed: 1 })
    const copies = copiesIn(entries)
    expect(copies.length).toBeGreaterThan(50)
    expect(copies[0]).toMatchObject({
      releaseId: 'm@2',
      outcome: 'completed',
      outputTokens: 20,
      primaryOutputTokens: 20,
    })
    expect(endsOf(entries)).toEqual(endsOf(plain.entries))
    const own = settledOf(entries).filter(({ tenantId }) => tenantId === 'spillway')
    expect(own.length).toBe(copies.length)
    expect(own.every(({ band, releaseId }) => band === 'offline' && releaseId === 'm@2')).toBe(true)
    expect(report.laws).toEqual([])
  })

  it('change nothing either when the release that sees them only fails', async () => {
    const plain = await journalOf(scenarioOf({ rollout: {} }), { seed: 1 })
    const fault: Fault = { kind: 'replica-errors', target: 'm@2', ...FOREVER }
    const { entries, report } = await journalOf(shadowed({ faults: [fault] }), { seed: 1 })
    expect(new Set(copiesIn(entries).map(({ outcome }) => outcome))).toEqual(new Set(['failed']))
    expect(endsOf(entries)).toEqual(endsOf(plain.entries))
    expect(report.faults).toBe(0)
  })

  it('are never more at once than allowed, and none of an excluded tenant', async () => {
    const hang: Fault = { kind: 'replica-hang', target: 'm@2', ...FOREVER }
    const { entries } = await journalOf(shadowed({ faults: [hang] }), { seed: 1 })
    const started = entries.filter((entry) => entry.kind === 'granted' && entry.ticketId.endsWith('~shadow'))
    expect(started.length).toBeLessThanOrEqual(3)
    const none = await journalOf(shadowed({}, { excludedTenants: ['a'] }), { seed: 1 })
    expect(copiesIn(none.entries)).toEqual([])
  })

  it('make room at once for whoever would have to wait', async () => {
    // Half of the users are on the release that sees the copies, one at a time: they queue there.
    const scenario = shadowed({ rollout: { canary: '2', steps: [50], shadow: { percent: 100, inFlightMax: 8 } } }, {})
    const platform = scenario.platform as { pools: Array<Record<string, unknown>> }
    platform.pools[1] = { ...platform.pools[1], limit: { kind: 'fixed', concurrencyMax: 1 } }
    const { entries } = await journalOf(scenario, { seed: 1 })
    const calledOff = copiesIn(entries).filter(({ because }) => because === 'room-wanted')
    expect(calledOff.length).toBeGreaterThan(3)
    expect(new Set(settledOf(entries).flatMap((entry) => (entry.tenantId === 'a' ? [entry.outcome] : [])))).toEqual(
      new Set(['completed']),
    )
  })
})

describe('a holdout set', () => {
  const items = [1, 2, 3].map((n) => ({ id: `i${n}`, prompt: `What is ${n}?`, expected: `answer ${n}` }))
  const holdout = { perMinute: 600, items }

  it('rolls a canary back that is wrong more often, with its users untouched', async () => {
    const faults: Fault[] = [{ kind: 'replica-wrong', target: 'm@2', ratio: 0.5, ...FOREVER }]
    const { entries, report } = await journalOf(
      scenarioOf({ rollout: { canary: '2', steps: [5], holdout }, faults, durationS: 60 }),
      {
        seed: 1,
      },
    )
    expect(report.rollouts['m']).toMatchObject({ rolledBack: 1, because: 'worse: it scores less on the holdout set' })
    const scores = entries.filter((entry) => entry.kind === 'holdout-evaluated')
    expect(scores.filter(({ releaseId }) => releaseId === 'm@1').every(({ score }) => score === 1)).toBe(true)
    expect(report.requests.failed).toBe(0)
  })

  it('rolls a promoted release back that drifts', async () => {
    const faults: Fault[] = [{ kind: 'replica-wrong', target: 'm@2', ratio: 0.5, atS: 15, forS: 100 }]
    const scenario = scenarioOf({ rollout: { canary: '2', steps: [50], holdout }, faults, durationS: 60 })
    const promote = { kind: 'promote' } as const
    const { entries } = await journalOf(scenario, {
      seed: 1,
      onAssembled: (platform, _, clock) => {
        clock.at(1_000_000, () => changeRollout(platform, { model: 'm', command: promote, by: 'ops', because: 'sure' }))
      },
    })
    const changes = entries.filter((entry) => entry.kind === 'rollout-changed')
    expect(changes.map(({ change, by }) => `${change} ${by}`)).toEqual([
      'started config',
      'promoted ops',
      'rolled-back drift',
    ])
    expect(changes[2]?.at).toBeGreaterThan(15_000_000)
  })

  it('asks nothing where no room is left over', async () => {
    const scenario = scenarioOf({ rollout: { holdout } })
    const platform = scenario.platform as { pools: Array<Record<string, unknown>> }
    platform.pools[0] = { ...platform.pools[0], limit: { kind: 'fixed', concurrencyMax: 1 } }
    scenario.workload[0]!.arrivals = { kind: 'closed', sessions: 10, thinkS: 0 }
    const { entries } = await journalOf(scenario, { seed: 1 })
    const late = entries.filter((entry) => entry.kind === 'holdout-evaluated' && entry.at > 1_000_000)
    expect(late).toEqual([])
  })
})
