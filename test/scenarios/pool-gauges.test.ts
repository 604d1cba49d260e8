import { describe, expect, it } from 'vitest'
import { secondsToUs } from '../../src/base/clock.ts'
import { ControlLoop } from '../../src/lifecycle/control-loop.ts'
import { Metrics } from '../../src/telemetry/metrics.ts'
import { sampleValue } from '../support/parse-exposition.ts'
import { MODEL } from '../support/start-platform.ts'
import { VirtualWorld } from '../support/virtual-world.ts'

/** The gauges of a pool, told by the journal of a whole platform on real simulated engines in virtual time. */

const POOL = `${MODEL}-local`
const SCRIPT = { promptTokens: 400, outputTokens: 100, prefixHashes: [], finishReason: 'stop' } as const

const pool = (usdPerHour?: number) => ({
  model: MODEL,
  backend: { kind: 'simulated' },
  replicas: 1,
  limit: { kind: 'fixed', concurrencyMax: 200 },
  ...(usdPerHour !== undefined && { usdPerHour }),
})

async function startedWorld(usdPerHour?: number): Promise<VirtualWorld> {
  const tree = { pools: [pool(usdPerHour)], admission: { mode: 'observe' } }
  const { world } = await VirtualWorld.simulated(SCRIPT, { queueMax: 10_000, tree })
  const loop = new ControlLoop(world.platform, secondsToUs(1))
  void loop.start()
  return world
}

/** Sends `perSecond` requests a second for a minute, and reads the gauges at its end. */
async function afterMinuteOf(world: VirtualWorld, perSecond: number) {
  const from = world.clock.now()
  for (let i = 0; i < 60 * perSecond; i++) world.after(Math.round((i / perSecond) * 1e6), () => void world.serve())
  await world.run(from + secondsToUs(60))
  const metrics = new Metrics({ version: '0', nodeVersion: '0' })
  for (const entry of world.entries) metrics.take(entry)
  const text = metrics.text()
  const value = (name: string) => sampleValue(text, name, { pool: POOL }) ?? Number.NaN
  return {
    utilization: value('spillway_pool_utilization_ratio'),
    usdPerHour: value('spillway_pool_usd_per_hour'),
    usdPerMillion: value('spillway_pool_usd_per_million_tokens'),
  }
}

describe('the gauges of a pool', () => {
  it('follow the work that its engines do, not whether they are busy', async () => {
    const light = await afterMinuteOf(await startedWorld(), 2)
    const heavy = await afterMinuteOf(await startedWorld(), 40)
    // At two requests a second of 0.7 s each the engine is hardly ever idle, and yet does little of what it could.
    expect(light.utilization).toBeGreaterThan(0)
    expect(light.utilization).toBeLessThan(0.05)
    expect(heavy.utilization / light.utilization).toBeGreaterThan(15)
    expect(heavy.utilization / light.utilization).toBeLessThan(25)
    // The same GPU for twenty times the tokens: a twentieth of the price.
    expect(light.usdPerHour).toBe(4.25)
    expect(light.usdPerMillion / heavy.usdPerMillion).toBeCloseTo(20, 0)
    expect(heavy.usdPerMillion).toBeCloseTo(4.25 / 3_600 / (40 * 500 * 1e-6), 2)
  })
  it('have no work and no cost where nothing settles, and the price that the pool says', async () => {
    const idle = await afterMinuteOf(await startedWorld(9.5), 0)
    expect(idle).toEqual({ utilization: 0, usdPerHour: 9.5, usdPerMillion: Number.NaN })
  })
})
