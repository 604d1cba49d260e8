import { describe, expect, it } from 'vitest'
import { ACME, makeRequest } from '../../test/support/requests.ts'
import { finished } from '../../test/support/scripted-backend.ts'
import { MODEL } from '../../test/support/start-platform.ts'
import { VirtualWorld } from '../../test/support/virtual-world.ts'
import { isSizeInDoubt } from './size-in-doubt.ts'

const GLOBEX = { ...ACME, id: 'globex' }
const estimated = (tokens: number, over = {}) =>
  makeRequest({ segments: [{ role: 'user', tokens }], isEstimated: true, ...over })

describe('the size of a prompt', () => {
  it('is in doubt when twice as much would not fit the window', async () => {
    const { world } = await VirtualWorld.scripted([finished(1)])
    const { contextTokensMax } = world.platform.policies.models.get(MODEL)!
    expect(isSizeInDoubt(world.platform, estimated(contextTokensMax / 2))).toBe(false)
    expect(isSizeInDoubt(world.platform, estimated(contextTokensMax / 2 + 1))).toBe(true)
  })

  it('is in doubt when twice as much would not fit the budget', async () => {
    const { world } = await VirtualWorld.scripted([finished(1)])
    const tenant = { ...ACME, allowance: { tokens: { perMinute: 1_000, burst: 1_000 } } }
    const key = { id: 'k', tenantId: 'acme', weight: 1, allowance: {} }
    expect(isSizeInDoubt(world.platform, estimated(500, { tenant, key }))).toBe(false)
    expect(isSizeInDoubt(world.platform, estimated(501, { tenant, key }))).toBe(true)
  })

  it('is learned from the tenant’s own prompts, and from those that were estimated alone', async () => {
    const reported = { promptTokens: 4_000, cachedTokens: 0, outputTokens: 1 }
    const { world } = await VirtualWorld.scripted([{ deltas: 1, ending: { kind: 'finished', usage: reported } }])
    const ratios = world.platform.policies.ratios.get(MODEL)!
    const serve = async (over: object): Promise<void> => {
      world.serve({ segments: [{ role: 'user', tokens: 1_000 }], ...over })
      await world.run()
    }
    for (let i = 0; i < 20; i++) await serve({})
    expect(ratios.tenantCount).toBe(0)
    for (let i = 0; i < 20; i++) await serve({ isEstimated: true })
    expect(ratios.ratioOf('acme')).toBeGreaterThan(3)
    expect(ratios.ratioOf('globex')).toBe(1)
    expect(isSizeInDoubt(world.platform, estimated(6_000))).toBe(true)
    expect(isSizeInDoubt(world.platform, estimated(6_000, { tenant: GLOBEX }))).toBe(false)
    expect(world.unrest()).toEqual([])
  })

  it('refuses nothing when it is an estimate, and is planned as corrected', async () => {
    const reported = { promptTokens: 8_000, cachedTokens: 0, outputTokens: 1 }
    const { world, backend } = await VirtualWorld.scripted([
      { deltas: 1, ending: { kind: 'finished', usage: reported } },
    ])
    for (let i = 0; i < 60; i++) {
      world.serve({ segments: [{ role: 'user', tokens: 1_000 }], isEstimated: true })
      await world.run()
    }
    // Seven times as long as it looks: beyond the window, and admitted all the same.
    const long = world.serve({ segments: [{ role: 'user', tokens: 20_000 }], isEstimated: true })
    await world.run()
    expect(await long.done).toMatchObject({ outcome: 'completed' })
    const counted = world.serve({ segments: [{ role: 'user', tokens: 200_000 }] })
    await world.run()
    expect(await counted.done).toMatchObject({ outcome: 'rejected', refusal: { code: 'context-length-exceeded' } })
    expect(backend.replicaIds).toHaveLength(61)
  })
})
