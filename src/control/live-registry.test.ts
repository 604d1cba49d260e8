import { afterEach, describe, expect, it } from 'vitest'
import { ControlledWorld } from '../../test/support/controlled-world.ts'
import { LeavingStore } from '../../test/support/leaving-store.ts'
import { secondsToUs } from '../base/clock.ts'
import { buildConfig } from '../config/load.ts'

const CONFIG = buildConfig(
  {
    tree: {
      models: [{ name: 'm' }],
      pools: [{ id: 'p', model: 'm', backend: { kind: 'simulated' } }],
      tenants: [{ id: 'a', slo: 'patient', keys: [] }],
    },
    path: 'spillway.yaml',
    lineOf: () => undefined,
  },
  {},
)
const REASON = { by: 'ada', because: 'a test' }
const added = (name: string) => [
  { kind: 'model' as const, name, body: { name } },
  {
    kind: 'pool' as const,
    name: `${name}-pool`,
    body: { id: `${name}-pool`, model: name, backend: { kind: 'simulated' } },
  },
]

const worlds: ControlledWorld[] = []
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close()
})

async function start(store: LeavingStore): Promise<ControlledWorld> {
  const world = await ControlledWorld.start(CONFIG, { store, isInUse: true, isShared: true })
  worlds.push(world)
  return world
}

async function edit(world: ControlledWorld, name: string): Promise<void> {
  const answer = world.control.registry.edit(added(name), REASON)
  await world.run(world.clock.now() + secondsToUs(1))
  expect(await answer).toMatchObject({ kind: 'changed' })
}

const poolsOf = ({ platform }: ControlledWorld): string[] => [...platform.policies.poolsById.keys()].sort()
const pass = (world: ControlledWorld, seconds: number) => world.run(world.clock.now() + secondsToUs(seconds))
const namesIn = async (store: LeavingStore): Promise<string[]> => (await store.load()).entries.map(({ name }) => name)

describe('a registry whose database comes back empty', () => {
  it('keeps the pools in force, writes them back, and says so once', async () => {
    const store = new LeavingStore()
    const world = await start(store)
    await edit(world, 'one')
    await edit(world, 'two')
    store.lose()
    await pass(world, 30)
    expect(poolsOf(world)).toEqual(['one-pool', 'p', 'two-pool'])
    expect(await namesIn(store)).toEqual(['one', 'two', 'one-pool', 'two-pool'])
    expect(world.complaints).toEqual([
      'registry: the database lost its revisions and came back at 0 instead of 2. ' +
        'What was added here stays in force, and the 4 entries that the database lacked were written to it again',
    ])
    const served = world.serve({ model: 'one' })
    await pass(world, 30)
    expect(await served).toMatchObject({ outcome: 'completed' })
    expect(await store.history({ limit: 1 })).toMatchObject([{ by: 'registry', revision: 1 }])
  })

  it('keeps them when the loss is found out by the next change', async () => {
    const store = new LeavingStore()
    const world = await start(store)
    await edit(world, 'one')
    store.lose()
    await edit(world, 'two')
    expect(poolsOf(world)).toEqual(['one-pool', 'p', 'two-pool'])
    expect(await namesIn(store)).toEqual(['one', 'two', 'one-pool', 'two-pool'])
    expect(world.complaints).toHaveLength(1)
  })

  it('keeps them while the database can be read and not written', async () => {
    const store = new LeavingStore()
    const world = await start(store)
    await edit(world, 'one')
    store.lose()
    store.isReadOnly = true
    await pass(world, 10)
    expect(poolsOf(world)).toEqual(['one-pool', 'p'])
    store.isReadOnly = false
    await pass(world, 10)
    expect(await namesIn(store)).toEqual(['one', 'one-pool'])
  })

  it('agrees with another gateway that has written them back already', async () => {
    const store = new LeavingStore()
    const [first, second] = [await start(store), await start(store)]
    await edit(first, 'one')
    await edit(first, 'two')
    await pass(second, 5)
    store.lose()
    await pass(first, 5)
    await pass(second, 5)
    for (const world of [first, second]) {
      expect(poolsOf(world)).toEqual(['one-pool', 'p', 'two-pool'])
      expect(world.complaints).toHaveLength(1)
    }
    expect(await store.revision()).toBe(1)
  })

  it('lets a pool go that another gateway removes', async () => {
    const store = new LeavingStore()
    const [first, second] = [await start(store), await start(store)]
    await edit(first, 'one')
    await pass(second, 5)
    const removed = first.control.registry.remove('model', 'one', REASON)
    await pass(first, 40)
    expect(await removed).toMatchObject({ kind: 'changed' })
    await pass(second, 40)
    expect(poolsOf(second)).toEqual(['p'])
    expect(second.complaints).toEqual([])
  })
})
