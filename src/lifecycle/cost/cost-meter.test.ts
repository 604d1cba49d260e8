import { describe, expect, it } from 'vitest'
import { finished, lost } from '../../../test/support/scripted-backend.ts'
import { VirtualWorld } from '../../../test/support/virtual-world.ts'
import type { CostClosed, SecondClosed } from '../../domain/cost-entry.ts'
import type { Entry } from '../../domain/entry.ts'
import { billUpTo } from '../../policy/cost/replica-bill.ts'
import { LawChecker } from '../../sim/laws.ts'
import { ControlLoop } from '../control-loop.ts'

const S = 1_000_000

const secondsOf = (world: VirtualWorld): SecondClosed[] =>
  world.entries.filter((entry): entry is SecondClosed => entry.kind === 'second-closed')

const costsOf = (world: VirtualWorld): CostClosed[] =>
  world.entries.filter((entry): entry is CostClosed => entry.kind === 'cost-closed')

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

function brokenLaws(entries: readonly Entry[]): unknown[] {
  const laws = new LawChecker()
  for (const entry of entries) laws.take(entry)
  laws.finish()
  laws.finishCosts()
  return laws.violations
}

/** Runs what the test sends, with the control loop, and closes the books. */
async function play(world: VirtualWorld, send: () => void, forS = 8): Promise<void> {
  const loop = new ControlLoop(world.platform, S)
  await loop.start()
  send()
  await world.run(world.virtual.now() + forS * S)
  loop.stop()
  await world.run()
}

const SCRIPT = { promptTokens: 500, outputTokens: 300, prefixHashes: [], finishReason: 'stop' } as const

describe('the books of a gateway', () => {
  it('charge simulated engines’ own time: all that a ticket took, and no more', async () => {
    const { world, drivers } = await VirtualWorld.simulated(SCRIPT, { replicas: 2, concurrencyMax: 8 })
    await play(world, () => {
      for (let i = 0; i < 6; i++) world.serve()
    })
    const costs = costsOf(world)
    expect(costs).toHaveLength(6)
    const busyUs = sum(drivers.map((driver) => driver.view().busyUs))
    const spent = sum(costs.map(({ time }) => time.prefillUs + time.decodeUs))
    expect(Math.abs(spent - busyUs)).toBeLessThan(1e-4 * busyUs)
    expect(costs.every(({ isMeasured, isPriced, costNano }) => isMeasured && isPriced && costNano > 0)).toBe(true)
    expect(sum(secondsOf(world).map((closed) => closed.busyUs))).toBeCloseTo(spent, 0)
    expect(brokenLaws(world.entries)).toEqual([])
  })

  it('bill every replica from the start to the end, whatever it does', async () => {
    const { world } = await VirtualWorld.simulated(SCRIPT, { replicas: 3 })
    const startedAt = world.virtual.now()
    await play(world, () => world.serve(), 5)
    const byReplica = Map.groupBy(secondsOf(world), ({ replicaId }) => replicaId)
    expect(byReplica.size).toBe(3)
    for (const seconds of byReplica.values()) {
      const { nanoPerHour, toAt } = seconds.at(-1) as SecondClosed
      expect(sum(seconds.map(({ billNano }) => billNano))).toBe(Number(billUpTo(nanoPerHour, toAt - startedAt)))
    }
  })

  it('tell a ticket’s cost within a second of its end', async () => {
    const { world } = await VirtualWorld.simulated(SCRIPT)
    await play(world, () => world.serve())
    const [settled] = world.entries.filter((entry) => entry.kind === 'settled')
    const [closed] = costsOf(world)
    expect(closed!.at - settled!.at).toBeGreaterThanOrEqual(0)
    expect(closed!.at - settled!.at).toBeLessThanOrEqual(S)
  })

  it('give the platform what a failed attempt took, and the tenant what the second attempt took', async () => {
    const slowly = { everyUs: 400_000 }
    const { world } = await VirtualWorld.scripted([
      { ...lost(0), deltas: 0 },
      { ...finished(8), ...slowly },
    ])
    await play(world, () => world.serve())
    const [closed] = costsOf(world)
    expect(costsOf(world)).toHaveLength(1)
    expect(closed).toMatchObject({ isMeasured: false })
    expect(closed!.costNano).toBeGreaterThan(0)
    expect(brokenLaws(world.entries)).toEqual([])
  })

  it('move to the platform what a tenant was charged with before its only attempt broke off', async () => {
    const { world } = await VirtualWorld.scripted([{ ...lost(6), everyUs: 500_000 }])
    await play(world, () => world.serve())
    const [closed] = costsOf(world)
    expect(closed!.costNano).toBe(0)
    expect(closed!.wasteNano).toBeGreaterThan(0)
    expect(secondsOf(world).some(({ tenants }) => tenants.some(({ usedNano }) => usedNano < 0))).toBe(true)
    expect(sum(secondsOf(world).map(({ lines }) => lines.wasteNano))).toBe(closed!.wasteNano)
    expect(brokenLaws(world.entries)).toEqual([])
  })

  it('charge the tenant for an answer that its client called off', async () => {
    const { world } = await VirtualWorld.scripted([{ ...finished(40), everyUs: 200_000 }])
    await play(world, () => {
      const served = world.serve()
      world.after(1_500_000, () => served.cancellation.cancel('client-gone'))
    })
    expect(costsOf(world)[0]!.costNano).toBeGreaterThan(0)
    expect(costsOf(world)[0]!.wasteNano).toBe(0)
  })

  it('share idle time as the configuration says', async () => {
    const { world } = await VirtualWorld.simulated(SCRIPT, { tree: { cost: { idle: 'weights' } } })
    await play(world, () => world.serve())
    const idle = secondsOf(world).flatMap(({ tenants }) => tenants.filter(({ idleNano }) => idleNano > 0))
    expect(new Set(idle.map(({ tenantId }) => tenantId))).toEqual(new Set(['acme', 'globex']))
    expect(secondsOf(world).every(({ lines }) => lines.idleNano === 0)).toBe(true)
  })

  it('are empty again when all is over', async () => {
    const { world } = await VirtualWorld.simulated(SCRIPT, { concurrencyMax: 8 })
    await play(world, () => {
      for (let i = 0; i < 20; i++) world.serve()
    })
    expect(world.platform.costs.view()).toEqual({ openTickets: 0, pendingSeconds: 0, lateReports: 0 })
    expect(world.unrest()).toEqual([])
  })
})
