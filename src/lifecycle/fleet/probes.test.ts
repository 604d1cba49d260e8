import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { VirtualClock } from '../../base/virtual-clock.ts'
import type { Replica } from '../../domain/fleet.ts'
import type { ReplicaReport } from '../ports.ts'
import { PROBE_US_MAX, Probes } from './probes.ts'

const READY: ReplicaReport = { isReady: true, because: 'the test says so' }
const ROUND_US = 1_000_000

const replicaOf = (id: string): Replica => ({ id, poolId: 'p', model: 'm', releaseId: 'm@1', region: 'local' })

/** Replicas that answer after as long as the test says; `Infinity` never. */
function makeProbes(answerUs: (replica: Replica, asked: number) => number) {
  const clock = new VirtualClock()
  const told: Array<{ at: number; id: string; isReady: boolean }> = []
  const asked = new Map<Replica, number>()
  const open = new Map<Replica, number>()
  let mostOpen = 0
  const probe = async (replica: Replica): Promise<ReplicaReport> => {
    const count = (asked.get(replica) ?? 0) + 1
    asked.set(replica, count)
    open.set(replica, (open.get(replica) ?? 0) + 1)
    mostOpen = Math.max(mostOpen, open.get(replica)!)
    const afterUs = answerUs(replica, count)
    if (afterUs === Number.POSITIVE_INFINITY) await new Promise(() => {})
    if (afterUs > 0) await clock.sleep(afterUs)
    open.set(replica, open.get(replica)! - 1)
    return READY
  }
  const probes = new Probes({
    clock,
    backends: { of: () => ({ probe, generate: () => Promise.reject(new Error('nothing is generated here')) }) },
    onReport: ({ id }, { isReady }) => void told.push({ at: clock.now(), id, isReady }),
  })
  const rounds = (count: number, replicas: () => readonly Replica[]): void => {
    for (let i = 0; i < count; i++) clock.at(i * ROUND_US, () => void probes.ask(replicas()))
  }
  return { clock, probes, told, asked, rounds, mostOpen: () => mostOpen }
}

describe('probes', () => {
  it('report each replica when it answers, whatever the others do', async () => {
    const [quick, slow, silent] = ['quick', 'slow', 'silent'].map(replicaOf) as [Replica, Replica, Replica]
    const afterUs = new Map([
      [quick, 0],
      [slow, 300_000],
      [silent, Number.POSITIVE_INFINITY],
    ])
    const { clock, told, rounds } = makeProbes((replica) => afterUs.get(replica)!)
    rounds(3, () => [silent, slow, quick])
    await clock.run(10_000_000)
    const at = (id: string) => told.filter((one) => one.id === id).map((one) => [one.at, one.isReady])
    expect(at('quick')).toEqual([0, 1, 2].map((s) => [s * ROUND_US, true]))
    expect(at('slow')).toEqual([0, 1, 2].map((s) => [s * ROUND_US + 300_000, true]))
    expect(at('silent')).toEqual([[PROBE_US_MAX, false]])
  })

  it('take a replica that is always slower than the limit for away, and its late answers for nothing', async () => {
    const slow = replicaOf('slow')
    const { clock, told, asked, rounds } = makeProbes(() => PROBE_US_MAX + 500_000)
    rounds(20, () => [slow])
    await clock.run()
    // Asked at 0, 6, 12 and 18 s: in the first round after the late answer.
    expect(told.map(({ at, isReady }) => [at / ROUND_US, isReady])).toEqual([
      [5, false],
      [11, false],
      [17, false],
      [23, false],
    ])
    expect(asked.get(slow)).toBe(4)
  })

  it('wait for all of a first round, and for a silent replica no longer than its limit', async () => {
    const ask = async (answersUs: readonly number[]) => {
      const replicas = answersUs.map((_, i) => replicaOf(`r${i}`))
      const { clock, probes } = makeProbes((replica) => answersUs[replicas.indexOf(replica)]!)
      let doneAt = -1
      void probes.ask(replicas).then(() => {
        doneAt = clock.now()
      })
      await clock.run()
      return doneAt
    }
    expect(await ask([])).toBe(0)
    expect(await ask([0, 0])).toBe(0)
    expect(await ask([20, 70_000, 300])).toBe(70_000)
    expect(await ask([Number.POSITIVE_INFINITY, 20])).toBe(PROBE_US_MAX)
  })

  it('say nothing of a replica that was removed while it was asked, nor of its successor in its place', async () => {
    const before = replicaOf('same-name')
    const after = replicaOf('same-name')
    const { clock, probes, told, asked } = makeProbes((replica) => (replica === before ? 700_000 : 50_000))
    const first = probes.ask([before])
    clock.at(100_000, () => void probes.ask([after]))
    await clock.run()
    await first
    expect(told).toEqual([{ at: 150_000, id: 'same-name', isReady: true }])
    expect([asked.get(before), asked.get(after)]).toEqual([1, 1])
    expect(probes.openCount).toBe(0)
  })

  it('say nothing once they are stopped, and leave no timer behind', async () => {
    const { clock, probes, told } = makeProbes(() => Number.POSITIVE_INFINITY)
    const first = probes.ask([replicaOf('a'), replicaOf('b')])
    probes.stop()
    await first
    await clock.run()
    expect(told).toEqual([])
    expect([probes.openCount, clock.now()]).toEqual([0, 0])
  })

  it('say why a question came to nothing', async () => {
    const reports: ReplicaReport[] = []
    const clock = new VirtualClock()
    const fails = { probe: () => Promise.reject(new Error('socket gone')), generate: () => Promise.reject(new Error()) }
    const silent = { ...fails, probe: () => new Promise<ReplicaReport>(() => {}) }
    for (const backend of [fails, silent]) {
      const backends = { of: () => backend }
      void new Probes({ clock, backends, onReport: (_, report) => reports.push(report) }).ask([replicaOf('r')])
    }
    await clock.run()
    expect(reports.map(({ because }) => because)).toEqual([
      'the probe failed: Error: socket gone',
      'no answer to the probe in 5 s',
    ])
  })

  it('never ask a replica twice at once, hear each in its time or not at all, and hold no more than the fleet', async () => {
    const waits = fc.array(fc.integer({ min: 0, max: 9_000_000 }), { minLength: 1, maxLength: 12 })
    const leaves = fc.option(fc.integer({ min: 1, max: 14 }))
    const fleet = fc.array(fc.record({ waits, leaves }), { minLength: 1, maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(fleet, async (specs) => {
        const replicas = specs.map((_, i) => replicaOf(`r${i}`))
        const specOf = (replica: Replica) => specs[replicas.indexOf(replica)]!
        const world = makeProbes((replica, count) => specOf(replica).waits[count % specOf(replica).waits.length]!)
        const { clock, probes, told, asked } = world
        let round = 0
        let mostHeld = 0
        world.rounds(15, () => {
          round++
          mostHeld = Math.max(mostHeld, probes.openCount)
          return replicas.filter((replica) => (specOf(replica).leaves ?? 99) >= round)
        })
        await clock.run()
        expect(world.mostOpen()).toBe(1)
        expect(mostHeld).toBeLessThanOrEqual(replicas.length)
        expect(probes.openCount).toBe(0)
        for (const replica of replicas) {
          const { leaves: lastRound } = specOf(replica)
          const its = told.filter(({ id }) => id === replica.id)
          // A replica that left may owe the report of its last question.
          const missing = asked.get(replica)! - its.length
          expect(missing).toBeLessThanOrEqual(lastRound === null ? 0 : 1)
          if (lastRound !== null) for (const { at } of its) expect(at).toBeLessThanOrEqual(lastRound * ROUND_US)
        }
      }),
      { numRuns: 100 },
    )
  })
})
