import { describe, expect, it } from 'vitest'
import { ControlledWorld } from '../../test/support/controlled-world.ts'
import { ACME } from '../../test/support/requests.ts'
import { buildConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { DatabaseUnavailable } from '../store/database.ts'
import { MemoryRegistryStore } from '../store/memory-registry-store.ts'

/** Orders of an administrator: in force at once, after a restart, and at the gateways that read the same store. */
const reason = { by: 'ada', because: 'a loop in its client' }
const SECOND_US = 1_000_000

function configOf(mode: 'enforce' | 'observe' = 'enforce'): Config {
  const tree = {
    models: [{ name: 'llama-8b' }],
    pools: [{ model: 'llama-8b', backend: { kind: 'simulated' } }],
    tenants: [{ id: ACME.id }, { id: 'globex' }],
    admission: { mode },
  }
  return buildConfig({ path: 'x.yaml', tree, lineOf: () => undefined }, {})
}

/** Nothing can be written, as while a database is away. */
class AwayStore extends MemoryRegistryStore {
  override write(): never {
    throw new DatabaseUnavailable('it is away')
  }
}

async function outcomeOf(world: ControlledWorld, tenant = ACME): Promise<string> {
  const served = world.serve({ tenant, deadlineAt: 1e15, model: 'llama-8b' })
  await world.run(world.clock.now() + 10 * SECOND_US)
  const { outcome, refusal } = await served
  return refusal?.code ?? outcome
}

describe('a pause', () => {
  it('refuses the tenant alone, with the reason, and is journalled once each way', async () => {
    const world = await ControlledWorld.start(configOf())
    expect(await outcomeOf(world)).toBe('completed')
    expect(await world.control.admin.pause(ACME.id, true, reason)).toMatchObject({ kind: 'changed' })
    expect(world.control.admin.admission().paused).toEqual([{ tenant: ACME.id, because: reason.because }])
    expect(await outcomeOf(world)).toBe('tenant-paused')
    expect(await outcomeOf(world, { ...ACME, id: 'globex' })).toBe('completed')
    const refused = world.entries.find((entry) => entry.kind === 'settled' && entry.outcome === 'rejected')
    expect(refused).toMatchObject({ refusal: { because: expect.stringContaining(reason.because), blame: 'tenant' } })
    expect(await world.control.admin.pause(ACME.id, false, reason)).toMatchObject({ kind: 'changed' })
    expect(await outcomeOf(world)).toBe('completed')
    const told = world.entries.filter(({ kind }) => kind === 'tenant-paused')
    expect(told).toMatchObject([
      { isPaused: true, tenantId: ACME.id, ...reason },
      { isPaused: false, tenantId: ACME.id, ...reason },
    ])
    await world.close()
  })

  it('lets finish what was admitted, and holds while admission observes only', async () => {
    const world = await ControlledWorld.start(configOf('observe'))
    const running = world.serve({ tenant: ACME, deadlineAt: 1e15, model: 'llama-8b' })
    await world.control.admin.pause(ACME.id, true, reason)
    await world.run(world.clock.now() + 10 * SECOND_US)
    expect(await running).toMatchObject({ outcome: 'completed' })
    expect(await outcomeOf(world)).toBe('tenant-paused')
    await world.close()
  })

  it('of a tenant that nobody has is refused', async () => {
    const world = await ControlledWorld.start(configOf())
    expect(await world.control.admin.pause('nobody', true, reason)).toMatchObject({
      kind: 'refused',
      refusal: { code: 'no-such-record' },
    })
    await world.close()
  })

  it('is there after a restart and a reload, and reaches a gateway beside', async () => {
    const store = new MemoryRegistryStore()
    const world = await ControlledWorld.start(configOf(), { store, isShared: true })
    const beside = await ControlledWorld.start(configOf(), { store, isInUse: true, isShared: true })
    await world.control.admin.pause(ACME.id, true, reason)
    await beside.run(beside.clock.now() + 3 * SECOND_US)
    expect(await outcomeOf(beside)).toBe('tenant-paused')
    await world.reload(configOf())
    expect(await outcomeOf(world)).toBe('tenant-paused')
    const next = await ControlledWorld.start(configOf(), { store, isInUse: true })
    expect(await outcomeOf(next)).toBe('tenant-paused')
    await next.control.admin.pause(ACME.id, false, reason)
    expect(await outcomeOf(next)).toBe('completed')
    await beside.run(beside.clock.now() + 3 * SECOND_US)
    expect(await outcomeOf(beside)).toBe('completed')
    for (const each of [world, beside, next]) await each.close()
  })

  it('holds here while the store is away, and says that it was not written', async () => {
    const world = await ControlledWorld.start(configOf(), { store: new AwayStore() })
    const answer = await world.control.admin.pause(ACME.id, true, reason)
    expect(answer).toMatchObject({ kind: 'refused', refusal: { code: 'registry-unavailable' } })
    expect(answer).toMatchObject({ refusal: { because: expect.stringContaining('in force at this gateway') } })
    expect(await outcomeOf(world)).toBe('tenant-paused')
    await world.close()
  })
})

describe('the mode', () => {
  it('is ordered, journalled once, outlives a reload and a restart, and is the file’s again', async () => {
    const store = new MemoryRegistryStore()
    const world = await ControlledWorld.start(configOf(), { store })
    expect(await world.control.admin.changeMode('observe', reason)).toMatchObject({ kind: 'changed' })
    expect(world.control.admin.admission()).toMatchObject({ mode: 'observe', modeInFile: 'enforce' })
    await world.reload(configOf())
    expect(world.platform.policies.mode).toBe('observe')
    const next = await ControlledWorld.start(configOf(), { store, isInUse: true })
    expect(next.platform.policies.mode).toBe('observe')
    expect(await next.control.admin.changeMode('enforce', reason)).toMatchObject({ kind: 'changed' })
    expect((await store.load()).entries).toEqual([])
    expect(world.entries.filter(({ kind }) => kind === 'mode-changed')).toMatchObject([{ mode: 'observe', ...reason }])
    expect(next.entries.filter(({ kind }) => kind === 'mode-changed')).toMatchObject([
      { mode: 'observe', by: 'registry' },
      { mode: 'enforce', ...reason },
    ])
    for (const each of [world, next]) await each.close()
  })
})
