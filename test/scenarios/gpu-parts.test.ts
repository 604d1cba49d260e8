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
