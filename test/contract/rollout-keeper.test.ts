import { describe, expect, it } from 'vitest'
import { VirtualClock } from '../../src/base/virtual-clock.ts'
import { RegistryRolloutKeeper } from '../../src/control/registry-rollout-keeper.ts'
import type { RolloutKeeper } from '../../src/lifecycle/ports.ts'
import type { ModelRolloutMemory } from '../../src/policy/rollout/model-rollout.ts'
import { MemoryRegistryStore } from '../../src/store/memory-registry-store.ts'
import { MemoryRolloutKeeper } from '../../src/store/memory-rollout-keeper.ts'

/** What every keeper of rollouts must do: the newest memory of each model is there for the next process. */
interface Kept {
  readonly keeper: RolloutKeeper
  readonly clock: VirtualClock
  /** What the next process would find. */
  readonly read: (model: string) => Promise<unknown>
}

const KINDS: ReadonlyArray<{ name: string; make: () => Kept }> = [
  {
    name: 'memory',
    make() {
      const keeper = new MemoryRolloutKeeper()
      return { keeper, clock: new VirtualClock(), read: (model) => Promise.resolve(keeper.kept(model)?.memory) }
    },
  },
  {
    name: 'the registry',
    make() {
      const clock = new VirtualClock()
      const store = new MemoryRegistryStore()
      const keeper = new RegistryRolloutKeeper({
        clock,
        journal: { record: () => {} },
        async write(editsOf, reason) {
          const { revision } = await store.load()
          const edits = editsOf()
          const written = await store.write({ expectedRevision: revision, atMs: 0, ...reason, edits })
          return { kind: 'changed', revision: typeof written === 'string' ? undefined : written }
        },
      })
      const read = async (model: string) => (await store.load()).entries.find(({ name }) => name === model)?.body
      return { keeper, clock, read }
    },
  },
]

const memory = (step: number, phase: 'canary' | 'rolled-back' = 'canary'): ModelRolloutMemory => ({
  stable: 'm@1',
  canary: 'm@2',
  state: { phase, step },
  before: [],
  stepSince: step,
  isHeld: false,
})

const WHY = { by: 'judge', because: 'it is worse' }

describe.each(KINDS)('a keeper of rollouts in $name', ({ make }) => {
  it('keeps the newest of every model, however fast they come', async () => {
    const { keeper, clock, read } = make()
    for (let step = 0; step < 5; step++) {
      keeper.keep('m', memory(step), WHY)
      keeper.keep('n', memory(4 - step), WHY)
    }
    keeper.keep('m', memory(4, 'rolled-back'), WHY)
    await clock.run()
    expect(await read('m')).toEqual(memory(4, 'rolled-back'))
    expect(await read('n')).toEqual(memory(0))
    expect(await read('nobody')).toBeUndefined()
  })

  it('returns at once and never throws, and an undo by hand is kept like everything else', async () => {
    const { keeper, clock, read } = make()
    expect(keeper.keep('m', memory(0, 'rolled-back'), WHY)).toBeUndefined()
    await clock.run()
    keeper.keep('m', { ...memory(0), isHeld: true }, { by: 'ada', because: 'it was the database' })
    await clock.run()
    expect(await read('m')).toEqual({ ...memory(0), isHeld: true })
  })
})
