import { describe, expect, it } from 'vitest'
import type { Entry, Settled } from '../domain/entry.ts'
import type { Fault, Scenario } from './scenario/scenario.ts'
import { simulate } from './simulate.ts'

/** Replicas that freeze for 20 s: up, healthy to look at, and no token comes. */

const S = 1_000_000
const FROM_S = 10
const FOR_S = 20
const MODEL = 'chat'

const scenarioOf = (replicas: number, fault: Pick<Fault, 'target'>, prompt = 1_000): Scenario => ({
  name: 'freeze',
  about: '',
  durationS: 50,
  platform: {
    models: [{ name: MODEL }],
    pools: [{ model: MODEL, backend: { kind: 'simulated', profile: 'h100-llama-8b' }, replicas }],
    slos: [{ name: 'chat', ttftMs: 5_000, interTokenMs: 50, totalMs: 60_000 }],
    tenants: [{ id: 'people', slo: 'chat' }],
  },
  workload: [
    {
      tenant: 'people',
      model: MODEL,
      arrivals: { kind: 'poisson', ratePerS: 8 },
      prompt: { kind: 'fixed', tokens: prompt },
      output: { kind: 'uniform', min: 50, max: 400 },
    },
  ],
  faults: [{ kind: 'replica-freeze', ...fault, atS: FROM_S, forS: FOR_S }],
})

async function play(scenario: Scenario) {
  const entries: Entry[] = []
  const report = await simulate(scenario, { seed: 1, onEntry: (entry) => void entries.push(entry) })
  const settled = entries.filter((entry): entry is Settled => entry.kind === 'settled')
  const startAt = entries[0]!.at
  const health = entries.flatMap((entry) =>
    entry.kind === 'replica-health' ? [{ ...entry, at: (entry.at - startAt) / S }] : [],
  )
  const grants = entries.flatMap((entry) => (entry.kind === 'granted' ? [(entry.at - startAt) / S] : []))
  return { report, settled, health, grants, startAt }
}

describe('a frozen replica', () => {
  it('alone in its pool gets no work after 3 s; its clients end with the truth, and it is back 2 s after it thaws', async () => {
    const { report, settled, health, grants, startAt } = await play(scenarioOf(1, { target: `${MODEL}-local-0` }))
    expect(report.laws).toEqual([])
    const stalled = health.find(({ because }) => because === 'the engine makes no progress')!
    expect(stalled.health).toBe('away')
    expect(stalled.at).toBeGreaterThan(FROM_S)
    expect(stalled.at).toBeLessThanOrEqual(FROM_S + 3)
    expect(grants.filter((at) => at > stalled.at && at < FROM_S + FOR_S)).toEqual([])
    const back = health.find(({ at, health: kind }) => at > stalled.at && kind === 'warming')!
    expect(back.at).toBeGreaterThanOrEqual(FROM_S + FOR_S)
    expect(back.at).toBeLessThanOrEqual(FROM_S + FOR_S + 2)
    const failed = settled.filter(({ outcome }) => outcome === 'failed')
    expect(failed.length).toBeGreaterThan(0)
    for (const { refusal, at } of failed) {
      expect(refusal).toMatchObject({ code: 'engine-stalled', because: expect.stringContaining('makes no progress') })
      expect((at - startAt) / S).toBeLessThanOrEqual(FROM_S + 3)
    }
    const codes = new Set(settled.filter(({ outcome }) => outcome === 'rejected').map(({ refusal }) => refusal?.code))
    expect([...codes]).toEqual(['no-replica'])
    const after = settled.filter(({ arrivedAt }) => (arrivedAt - startAt) / S > FROM_S + FOR_S + 2)
    expect(after.every(({ outcome }) => outcome === 'completed')).toBe(true)
  })

  it('of two loses its requests to the other, but for those whose clients had seen a token', async () => {
    const { report, settled, health } = await play(scenarioOf(2, { target: `${MODEL}-local-0` }))
    expect(report.laws).toEqual([])
    const stalled = health.filter(({ because }) => because === 'the engine makes no progress')
    expect(stalled).toHaveLength(1)
    expect(stalled[0]!.at).toBeLessThanOrEqual(FROM_S + 3)
    const moved = settled.filter(({ attempts, outcome }) => attempts > 1 && outcome === 'completed')
    expect(moved.length).toBeGreaterThan(0)
    for (const { outcome, firstTokenAt } of settled)
      if (outcome !== 'completed') expect([outcome, firstTokenAt !== undefined]).toEqual(['failed', true])
  })

  it('is told from one that reads prompts of 30,000 tokens, and from one that is four times as slow', async () => {
    const long = scenarioOf(1, { target: `${MODEL}-local-0` }, 30_000)
    const { faults: _none, ...calm } = long
    const slow: Scenario = {
      ...scenarioOf(1, { target: '' }),
      faults: [{ kind: 'replica-slow', target: `${MODEL}-local-0`, factor: 4, atS: FROM_S, forS: FOR_S }],
    }
    for (const scenario of [{ ...calm, durationS: 30 }, slow]) {
      const { health, settled } = await play(scenario)
      expect(health.filter(({ health: kind }) => kind === 'away')).toEqual([])
      expect(settled.filter(({ outcome }) => outcome === 'failed')).toEqual([])
    }
  })
})
