import { describe, expect, it } from 'vitest'
import { ACME } from '../../../test/support/requests.ts'
import { finished } from '../../../test/support/scripted-backend.ts'
import { VirtualWorld } from '../../../test/support/virtual-world.ts'
import type { Request } from '../../domain/request.ts'
import { CALIBRATION_DEFAULTS } from '../../policy/admission/calibration.ts'

const { samplesMin, marginFloor, biasMax } = CALIBRATION_DEFAULTS

/** One token, predicted after 7 ms: it comes after 14 ms, and the answer ends after 28. */
const SLOWER = { ...finished(1), everyUs: 14_000 }
/** A promise that the prediction uses a good part of: only such tickets form the calibrated terms. */
const TIGHT: Partial<Request> = {
  slo: { ...ACME.slo, ttftUs: 20_000 },
  outputTokensMax: 1,
  // A whole answer says nothing about the engine's speed, so the predictions stay as they are.
  isStreamed: false,
}

function calibrationOf(world: VirtualWorld) {
  const { calibration } = world.platform.policies
  const cell = { poolId: world.platform.pools[0]!.id, sloName: ACME.slo.name, promptTokens: 20 }
  return { seen: () => calibration.view(), terms: () => calibration.termsFor(cell) }
}

describe('calibration', () => {
  it('learns from first tokens and at each ticket’s end, and predicts less rosily from then on', async () => {
    const { world } = await VirtualWorld.scripted([SLOWER])
    const { seen, terms } = calibrationOf(world)
    const unknown = { biasRatio: 1, marginRatio: marginFloor }
    expect(terms()).toEqual({ ttft: unknown, finish: unknown })
    for (let i = 1; i <= samplesMin; i++) {
      const { done } = world.serve({ ...TIGHT, deadlineAt: world.virtual.now() + 40_000 })
      await world.run()
      expect(await done).toMatchObject({ outcome: 'completed' })
      expect(seen()).toMatchObject({ observed: i, falseAdmits: 0 })
    }
    expect(terms().ttft.biasRatio).toBeCloseTo(2, 1)
    expect(terms().finish.biasRatio).toBe(biasMax)
  })

  it('counts late, expired and evicted tickets as false admits, and learns nothing from cancelled ones', async () => {
    const { world } = await VirtualWorld.scripted([SLOWER], { waitMsMax: 10 })
    const { seen } = calibrationOf(world)
    const late = world.serve({ ...TIGHT, deadlineAt: world.virtual.now() + 20_000 })
    const expired = world.serve({ deadlineAt: world.virtual.now() + 60_000_000 })
    const cancelled = world.serve({ deadlineAt: world.virtual.now() + 60_000_000 })
    world.after(5_000, () => cancelled.cancellation.cancel('client-gone'))
    await world.run()
    expect([late, expired, cancelled].map(({ settled }) => settled?.outcome)).toEqual([
      'completed',
      'expired',
      'cancelled',
    ])
    expect(seen()).toEqual({ observed: 2, falseAdmits: 2, coverage: 0 })
  })
})
