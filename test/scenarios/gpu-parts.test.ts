import { expect, it } from 'vitest'
import type { Scenario } from '../../src/sim/scenario/scenario.ts'
import { journalOf } from '../support/simulated.ts'

/** Engines on a part of a GPU: slower, cheaper, and known to the configuration's check, to the engines and the report. */
function scenarioOn(profile: string): Scenario {
  return {
    name: 'gpu-parts',
    about: '',
    durationS: 20,
    platform: {
      models: [{ name: 'm' }],
      pools: [{ model: 'm', backend: { kind: 'simulated', profile } }],
      tenants: [{ id: 'a', slo: 'patient' }],
    },
    workload: [
      {
        tenant: 'a',
        model: 'm',
        arrivals: { kind: 'poisson', ratePerS: 1 },
        prompt: { kind: 'fixed', tokens: 200 },
        output: { kind: 'fixed', tokens: 50 },
      },
    ],
  }
}

it.each(['h100-llama-8b+mig-2g', 'h100-llama-8b+shared-2'])('simulates %s', async (profile) => {
  const whole = (await journalOf(scenarioOn('h100-llama-8b'), { seed: 1 })).report
  const part = (await journalOf(scenarioOn(profile), { seed: 1 })).report
  expect(part.laws).toEqual([])
  expect(part.requests.completed).toBe(whole.requests.completed)
  expect(part.requests.completed).toBeGreaterThan(5)
  expect(part.engine.utilisation).toBeGreaterThan(1.5 * whole.engine.utilisation)
})

it('tells the GPU memory of every answer: its tokens, times what the model needs for one', async () => {
  const { entries } = await journalOf(scenarioOn('h200-llama-1b'), { seed: 1 })
  const ends = entries.filter((entry) => entry.kind === 'settled')
  expect(ends.length).toBeGreaterThan(5)
  for (const { kvBytes, usage } of ends) {
    expect(kvBytes).toBe((usage.promptTokens + usage.outputTokens) * 32_768)
  }
})

it('loses a server with two models in both pools at once, and has it back in both', async () => {
  const scenario = scenarioOn('h100-llama-8b')
  const [stream] = scenario.workload
  const backend = { kind: 'simulated', profile: 'h100-llama-8b' }
  const { entries, report } = await journalOf(
    {
      ...scenario,
      platform: {
        ...scenario.platform,
        models: [{ name: 'm' }, { name: 'n' }],
        pools: ['m', 'n'].map((model) => ({ model, engineName: 'gpu', backend })),
      },
      workload: [stream!, { ...stream!, model: 'n' }],
      faults: [{ kind: 'replica-crash', target: 'm-local-0', atS: 8, forS: 4 }],
    },
    { seed: 1 },
  )
  const said = entries.flatMap((entry) =>
    entry.kind === 'replica-reported' && entry.at > 0 ? [`${entry.replicaId} ${entry.isReady}`] : [],
  )
  expect(said).toEqual(['m-local-0 false', 'n-local-0 false', 'm-local-0 true', 'n-local-0 true'])
  expect(report.laws).toEqual([])
})
