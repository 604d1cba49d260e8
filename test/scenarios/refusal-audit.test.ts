import { describe, expect, it } from 'vitest'
import { simulate } from '../../src/sim/simulate.ts'
import { lockUp } from '../support/lock-up.ts'
import { namedScenario } from '../support/simulated.ts'

/** The audit against whole runs; what replays of these runs say is in `bench/experiments/false-refusals.ts`. */
const OVERSHOOT = { durationS: 30, warmupS: 0, 'platform.slos.0.ttftMs': 500 }

describe('audit of refusals', () => {
  it('calls a lock-up what it is: refusals beside an idle engine are false', async () => {
    const { prediction, requests } = await simulate(namedScenario('overshoot', OVERSHOOT), {
      seed: 1,
      onAssembled: lockUp,
    })
    const { falseReject, rightReject } = prediction
    expect(requests.shed).toBeGreaterThan(500)
    expect(falseReject + rightReject).toBeGreaterThan(0.9 * requests.shed)
    expect(falseReject / (falseReject + rightReject)).toBeGreaterThanOrEqual(0.8)
  })

  it('calls refusals of an engine that is full right where one more would have made others late', async () => {
    // At three times the load nearly every first token is close to its promise.
    const { prediction } = await simulate(namedScenario('overshoot', { ...OVERSHOOT, durationS: 45, load: 3 }), {
      seed: 1,
    })
    const { falseReject, rightReject } = prediction
    expect(falseReject + rightReject).toBeGreaterThan(300)
    expect(rightReject / (falseReject + rightReject)).toBeGreaterThanOrEqual(0.5)
  })
})
