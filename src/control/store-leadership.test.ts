import { describe, expect, it } from 'vitest'
import { VirtualClock } from '../base/virtual-clock.ts'
import type { Entry } from '../domain/entry.ts'
import type { LeaderStore } from '../domain/leader.ts'
import type { ModelRolloutMemory } from '../policy/rollout/model-rollout.ts'
import { MemoryLeaderStore } from '../store/memory-leader-store.ts'
import { MemoryRegistryStore } from '../store/memory-registry-store.ts'
import { LeadershipLost } from './live-registry.ts'
import { RegistryRolloutKeeper } from './registry-rollout-keeper.ts'
import { StoreLeadership } from './store-leadership.ts'

const S = 1_000_000

function makeGateway(clock: VirtualClock, store: LeaderStore, gatewayId: string) {
  const entries: Entry[] = []
  const leadership = new StoreLeadership({
    clock,
    journal: { record: (entry) => void entries.push(entry) },
    store,
    name: 'duties',
    gatewayId,
  })
  const roles = () => entries.flatMap((entry) => (entry.kind === 'leader-changed' ? [entry.role] : []))
  return { leadership, roles, entries }
}

/** A store that can be away. */
class AwayStore implements LeaderStore {
  isAway = false
  readonly inner: MemoryLeaderStore
  constructor(inner: MemoryLeaderStore) {
    this.inner = inner
  }
  acquire(ask: Parameters<LeaderStore['acquire']>[0]) {
    return this.isAway ? Promise.reject(new Error('away')) : this.inner.acquire(ask)
  }
  renew(ask: Parameters<LeaderStore['renew']>[0]) {
    return this.isAway ? new Promise<never>(() => {}) : this.inner.renew(ask)
  }
  release(fence: Parameters<LeaderStore['release']>[0]) {
    return this.isAway ? Promise.reject(new Error('away')) : this.inner.release(fence)
  }
}

describe('leading by a store', () => {
  it('one leads for as long as it lives, and the other one when it has given up', async () => {
    const clock = new VirtualClock()
    const store = new MemoryLeaderStore(clock)
    const [a, b] = [makeGateway(clock, store, 'a'), makeGateway(clock, store, 'b')]
    a.leadership.start()
    await clock.run(1)
    b.leadership.start()
    await clock.run(60 * S)
    expect(a.leadership.role()).toEqual({ kind: 'leads', fence: { name: 'duties', holder: 'a', number: 1 } })
    expect(b.leadership.role()).toEqual({ kind: 'follows', holder: 'a' })
    const closing = a.leadership.close()
    await clock.run(clock.now() + 10_000)
    await closing
    b.leadership.notice()
    await clock.run(clock.now() + 10_000)
    expect(b.leadership.role()).toMatchObject({ kind: 'leads', fence: { number: 2 } })
    expect([a.roles(), b.roles()]).toEqual([['leads'], ['follows', 'leads']])
  })

  it('knows of no leader while the store is away, and leads again with a higher fence', async () => {
    const clock = new VirtualClock()
    const store = new AwayStore(new MemoryLeaderStore(clock))
    const { leadership, roles } = makeGateway(clock, store, 'a')
    leadership.start()
    await clock.run(10 * S)
    store.isAway = true
    await clock.run(30 * S)
    expect(leadership.role().kind).toBe('nobody')
    store.isAway = false
    await clock.run(40 * S)
    expect(leadership.role()).toMatchObject({ kind: 'leads', fence: { number: 2 } })
    expect(roles()).toEqual(['leads', 'nobody', 'leads'])
  })
})

const memory = (step: number): ModelRolloutMemory => ({
  stable: 'm@1',
  canary: 'm@2',
  state: { phase: 'canary', step },
  before: [],
  stepSince: step,
  isHeld: false,
})

/** Two gateways whose clocks are their own: a paused process sees no time pass. */
function makeWorld() {
  const clocks = { a: new VirtualClock(), b: new VirtualClock(), database: new VirtualClock() }
  const leaders = new MemoryLeaderStore(clocks.database)
  const registry = new MemoryRegistryStore((fence) => leaders.isHeld(fence))
  const make = (id: 'a' | 'b') => {
    const { leadership, entries } = makeGateway(clocks[id], leaders, id)
    const overruled: string[] = []
    const keeper = new RegistryRolloutKeeper({
      clock: clocks[id],
      journal: { record: (entry) => void entries.push(entry) },
      leadership,
      async write(editsOf, reason) {
        const { revision } = await registry.load()
        const written = await registry.write({ expectedRevision: revision, atMs: 0, ...reason, edits: editsOf() })
        if (written === 'deposed') throw new LeadershipLost('another gateway leads')
        return { kind: 'changed', revision: written === 'stale' ? undefined : written }
      },
      onOverruled(model) {
        overruled.push(model)
        leadership.depose()
      },
    })
    leadership.onChange(() => keeper.leaderChanged())
    const decide = (step: number): void => {
      const role = leadership.role()
      const fence = role.kind === 'leads' ? role.fence : undefined
      keeper.keep('m', memory(step), { by: 'judge', because: 'a test', fence })
    }
    return { leadership, keeper, entries, overruled, decide }
  }
  const advance = async (toUs: number, ...who: Array<keyof typeof clocks>): Promise<void> => {
    for (const name of who) await clocks[name].run(toUs)
  }
  const steps = async () =>
    (await registry.history({ limit: 10 }))
      .toReversed()
      .map(({ after }) => (after as unknown as typeof MEMORY).stepSince)
  return { a: make('a'), b: make('b'), advance, steps }
}
const MEMORY = memory(0)

describe('what a leader decides', () => {
  it('is refused after a pause beyond its term, taken back, and counted; and the leader steps down', async () => {
    const { a, b, advance, steps } = makeWorld()
    a.leadership.start()
    await advance(1, 'a', 'database')
    a.decide(1)
    await advance(2, 'a')
    expect(await steps()).toEqual([1])
    // a stands still, and its clock with it: it believes in its term.
    await advance(7 * S, 'database', 'b')
    b.leadership.start()
    await advance(7 * S + 1, 'b')
    b.decide(2)
    await advance(7 * S + 2, 'b')
    expect(a.leadership.role().kind).toBe('leads')
    a.decide(3)
    await advance(3, 'a')
    expect(await steps()).toEqual([1, 2])
    expect(a.overruled).toEqual(['m'])
    expect(a.leadership.role()).toEqual({ kind: 'follows', holder: 'b' })
    expect(a.entries.flatMap((entry) => (entry.kind === 'rollout-memory' ? [entry.outcome] : []))).toEqual([
      'kept',
      'overruled',
    ])
  })

  it('without a known leader waits: it is written by who leads next, and given up where another one does', async () => {
    const { a, b, advance, steps } = makeWorld()
    a.decide(1)
    b.decide(2)
    await advance(1, 'a', 'b')
    expect(await steps()).toEqual([])
    a.leadership.start()
    await advance(2, 'a')
    expect(await steps()).toEqual([1])
    b.leadership.start()
    await advance(2, 'b')
    expect(await steps()).toEqual([1])
    expect(b.overruled).toEqual(['m'])
    expect(b.keeper.pendingOf('m')).toBeUndefined()
  })

  it('by hand needs no leader', async () => {
    const { b, advance, steps } = makeWorld()
    b.keeper.keep('m', memory(5), { by: 'ada', because: 'a test' })
    await advance(1, 'b')
    expect(await steps()).toEqual([5])
  })
})
