import { afterEach, describe, expect, it } from 'vitest'
import { ControlledWorld } from '../../test/support/controlled-world.ts'
import { LeavingStore } from '../../test/support/leaving-store.ts'
import { finished, lost, ScriptedBackend } from '../../test/support/scripted-backend.ts'
import { secondsToUs } from '../base/clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import { buildConfig } from '../config/load.ts'
import type { Entry } from '../domain/entry.ts'
import type { AdminAnswer } from '../gateway/fleet-admin.ts'
import type { ModelRolloutMemory } from '../policy/rollout/model-rollout.ts'
import { RegistryRolloutKeeper } from './registry-rollout-keeper.ts'

const memory = (step: number): ModelRolloutMemory => ({
  stable: 'm@1',
  canary: 'm@2',
  state: { phase: 'canary', step },
  before: [],
  stepSince: 0,
  isHeld: false,
})
const WHY = { by: 'judge', because: 'a test' }
const AWAY: AdminAnswer = {
  kind: 'refused',
  refusal: { code: 'registry-unavailable', because: 'it is away', param: null },
}

/** A registry that answers as the test says, and what was told. */
function given() {
  const clock = new VirtualClock()
  const entries: Entry[] = []
  const tries: string[] = []
  const state = { isAway: false, refusedModel: '' }
  const keeper = new RegistryRolloutKeeper({
    clock,
    journal: { record: (entry) => void entries.push(entry) },
    async write(editsOf) {
      const [edit] = editsOf()
      const step = (edit?.body as unknown as ModelRolloutMemory | undefined)?.state.step
      tries.push(`${clock.now() / 1_000_000} ${edit?.name} ${step}`)
      if (state.isAway || state.refusedModel === edit?.name) return AWAY
      return { kind: 'changed', revision: tries.length }
    },
  })
  const told = () =>
    entries.flatMap((entry) => (entry.kind === 'rollout-memory' ? [`${entry.model} ${entry.outcome}`] : []))
  return { clock, keeper, tries, state, told }
}

describe('the keeper of rollouts in the registry', () => {
  it('tries again, later each time up to half a minute, and writes only the newest', async () => {
    const { clock, keeper, tries, state, told } = given()
    state.isAway = true
    keeper.keep('m', memory(0), WHY)
    keeper.keep('m', memory(1), WHY)
    await clock.run(secondsToUs(100))
    expect(tries).toEqual(['0 m 0', '1 m 1', '3 m 1', '7 m 1', '15 m 1', '31 m 1', '61 m 1', '91 m 1'])
    expect(keeper.pendingOf('m')).toEqual(memory(1))
    state.isAway = false
    await clock.run(secondsToUs(200))
    expect(tries.slice(8)).toEqual(['121 m 1'])
    expect(keeper.pendingOf('m')).toBeUndefined()
    expect(told()).toEqual([...Array.from({ length: 8 }, () => 'm failed'), 'm kept'])
    // After a success the next failure begins with a second again.
    state.isAway = true
    keeper.keep('m', memory(2), WHY)
    await clock.run(secondsToUs(202))
    expect(tries.slice(9)).toEqual(['200 m 2', '201 m 2'])
  })

  it('holds one memory for each model however many come, and one that is always refused blocks no other', async () => {
    const { clock, keeper, tries, state, told } = given()
    state.refusedModel = 'bad'
    for (let step = 0; step < 1_000; step++)
      for (const model of ['bad', 'm', 'n']) keeper.keep(model, memory(step), WHY)
    await clock.run(secondsToUs(10))
    expect(tries.length).toBeLessThan(10)
    expect(['m', 'n'].map((model) => keeper.pendingOf(model))).toEqual([undefined, undefined])
    expect(keeper.pendingOf('bad')).toEqual(memory(999))
    expect(told().filter((line) => line.endsWith('kept'))).toEqual(['m kept', 'n kept'])
    const closing = keeper.close()
    await clock.run()
    await closing
  })

  it('answers who waits after one try, and says that it goes on', async () => {
    const { clock, keeper, state } = given()
    state.isAway = true
    keeper.keep('m', memory(0), WHY)
    const answered = keeper.whenTried('m')
    await clock.run(1)
    expect(await answered).toMatchObject({
      kind: 'refused',
      refusal: {
        code: 'registry-unavailable',
        because: expect.stringMatching(/in force, but could not be written yet: it is away\. It is/),
      },
    })
    state.isAway = false
    keeper.keep('m', memory(1), WHY)
    expect(await keeper.whenTried('m')).toEqual({ kind: 'changed', revision: 2 })
    expect(await keeper.whenTried('m')).toEqual({ kind: 'changed', revision: undefined })
  })

  it('writes what waits when it is closed, and counts what a store that stays away loses, within five seconds', async () => {
    const back = given()
    back.state.isAway = true
    back.keeper.keep('m', memory(0), WHY)
    await back.clock.run(1)
    back.clock.at(secondsToUs(2), () => {
      back.state.isAway = false
    })
    const closed = back.keeper.close()
    await back.clock.run()
    await closed
    expect(back.told().at(-1)).toBe('m kept')

    const away = given()
    away.state.isAway = true
    away.keeper.keep('m', memory(0), WHY)
    const ended = away.keeper.close()
    await away.clock.run()
    await ended
    expect(away.told().at(-1)).toBe('m lost')
    expect(away.clock.now()).toBeLessThanOrEqual(secondsToUs(6))
    expect(away.clock.pendingCount).toBe(0)
  })
})

const worlds: ControlledWorld[] = []
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close()
})

const CONFIG = buildConfig(
  {
    path: 'x.yaml',
    tree: {
      models: [
        {
          name: 'm',
          releases: [{ version: '1' }, { version: '2' }],
          rollout: { stable: '1', canary: '2', steps: [50] },
        },
      ],
      pools: ['1', '2'].map((release) => ({ id: `p${release}`, model: 'm', release, backend: { kind: 'simulated' } })),
      tenants: [{ id: 'a', slo: 'patient', keys: [] }],
    },
    lineOf: () => undefined,
  },
  {},
)

/** The canary's engine breaks every answer off. */
async function start(store: LeavingStore, isInUse: boolean): Promise<ControlledWorld> {
  const backendOf = ({ releaseId }: { releaseId: string }, clock: VirtualClock) =>
    new ScriptedBackend(clock, [releaseId === 'm@2' ? lost(0) : finished(3)])
  const world = await ControlledWorld.start(CONFIG, { store, isInUse, backendOf })
  worlds.push(world)
  await world.run(world.clock.now() + secondsToUs(10))
  return world
}

const phaseOf = (world: ControlledWorld) => world.platform.policies.rollouts.get('m')?.view().phase

async function untilRolledBack(world: ControlledWorld): Promise<void> {
  for (let i = 0; i < 400 && phaseOf(world) !== 'rolled-back'; i++) {
    void world.serve({ id: `r${i}`, model: 'm', sessionHash: i })
    await world.run(world.clock.now() + 50_000)
  }
  expect(phaseOf(world)).toBe('rolled-back')
}

describe('a rollback by the judge', () => {
  it('is saved although the store was away just then, and stays over a restart', async () => {
    const store = new LeavingStore()
    const world = await start(store, false)
    store.isAway = true
    await untilRolledBack(world)
    await world.run(world.clock.now() + secondsToUs(20))
    expect(store.failureCount).toBeGreaterThan(1)
    store.isAway = false
    await world.run(world.clock.now() + secondsToUs(40))
    expect((await store.load()).entries).toMatchObject([
      { kind: 'rollout', name: 'm', body: { canary: 'm@2', state: { phase: 'rolled-back' } } },
    ])
    const [change] = await store.history({ limit: 1 })
    expect(change).toMatchObject({ by: 'judge', because: expect.stringMatching(/./) })

    const next = await start(store, true)
    expect(phaseOf(next)).toBe('rolled-back')
    for (let i = 0; i < 20; i++) void next.serve({ id: `s${i}`, model: 'm', sessionHash: i })
    await next.run(next.clock.now() + secondsToUs(5))
    const releases = next.entries.flatMap((entry) => (entry.kind === 'settled' ? [entry.releaseId] : []))
    expect(new Set(releases)).toEqual(new Set(['m@1']))
  })

  it('of the process before wins over a process that had to begin without the store', async () => {
    const store = new LeavingStore()
    await untilRolledBack(await start(store, false))
    store.isAway = true
    const next = await start(store, true)
    expect(phaseOf(next)).toBe('canary')
    // A change that this process makes on the little it knows must not be written over what the store holds.
    void next.control.admin.rollout('m', { kind: 'pause' }, { by: 'ada', because: 'a test' })
    await next.run(next.clock.now() + secondsToUs(3))
    store.isAway = false
    await next.run(next.clock.now() + secondsToUs(60))
    expect(phaseOf(next)).toBe('rolled-back')
    expect((await store.load()).entries).toMatchObject([{ body: { state: { phase: 'rolled-back' } } }])
  })

  it('that is not written yet is not undone by what another gateway writes about something else', async () => {
    const store = new LeavingStore()
    const world = await start(store, false)
    const by = { by: 'ada', because: 'a test' }
    const paused = world.control.admin.rollout('m', { kind: 'pause' }, by)
    await world.run(world.clock.now() + 1)
    expect(await paused).toMatchObject({ kind: 'changed' })
    const resumed = world.control.admin.rollout('m', { kind: 'resume' }, by)
    await world.run(world.clock.now() + 1)
    await resumed
    store.isAway = true
    await untilRolledBack(world)
    store.isAway = false
    const { revision } = await store.load()
    const edits = [{ kind: 'model', name: 'other', body: { name: 'other' } }] as const
    await store.write({ expectedRevision: revision, atMs: 0, ...by, edits })
    const added = world.control.admin.edit([{ kind: 'model', name: 'third', body: { name: 'third' } }], by)
    await world.run(world.clock.now() + 1)
    expect(await added).toMatchObject({ kind: 'changed' })
    expect(phaseOf(world)).toBe('rolled-back')
    await world.run(world.clock.now() + secondsToUs(60))
    const kept = (await store.load()).entries.find(({ kind }) => kind === 'rollout')
    expect(kept?.body).toMatchObject({ state: { phase: 'rolled-back' } })
  })

  it('and so is a pause by hand: what this process has not written yet is newer than what it reads', async () => {
    const store = new LeavingStore()
    const world = await start(store, false)
    const by = { by: 'ada', because: 'a test' }
    const command = async (kind: 'pause' | 'resume') => {
      const answer = world.control.admin.rollout('m', { kind }, by)
      await world.run(world.clock.now() + 1)
      return (await answer).kind
    }
    expect(await command('pause')).toBe('changed')
    expect(await command('resume')).toBe('changed')
    store.isAway = true
    expect(await command('pause')).toBe('refused')
    store.isAway = false
    const { revision } = await store.load()
    const edits = [{ kind: 'model', name: 'other', body: { name: 'other' } }] as const
    await store.write({ expectedRevision: revision, atMs: 0, ...by, edits })
    const added = world.control.admin.edit([{ kind: 'model', name: 'third', body: { name: 'third' } }], by)
    await world.run(world.clock.now() + 1)
    expect(await added).toMatchObject({ kind: 'changed' })
    expect(world.platform.policies.rollouts.get('m')?.view().isHeld).toBe(true)
    await world.run(world.clock.now() + secondsToUs(60))
    const kept = (await store.load()).entries.find(({ kind }) => kind === 'rollout')
    expect(kept?.body).toMatchObject({ isHeld: true })
  })
})
