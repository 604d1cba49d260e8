import { describe, expect, it } from 'vitest'
import { finished, lost, type ScriptedBackend, type Turnout } from '../../../test/support/scripted-backend.ts'
import { VirtualWorld, type WorldOptions } from '../../../test/support/virtual-world.ts'
import { ControlLoop } from '../control-loop.ts'
import type { Backend, ReplicaReport } from '../ports.ts'

const S = 1_000_000
const READY: ReplicaReport = { isReady: true, because: 'fine' }
const ID = 'sim-local-0'

/** A platform that probes once a second, in front of one engine that can be asked. */
async function start(turnouts: readonly Turnout[], options: WorldOptions = {}) {
  const { world, backend } = await VirtualWorld.scripted(turnouts, { concurrencyMax: 8, ...options })
  const engine: ScriptedBackend & Backend = backend
  const loop = new ControlLoop(world.platform, S)
  await loop.start()
  const { health } = world.platform.policies
  const runFor = (us: number) => world.run(world.virtual.now() + us)
  return { world, engine, loop, health, runFor }
}

const hangs: Turnout = { deltas: 0, ending: 'hangs' }
const refusedConnection: Turnout = {
  deltas: 0,
  ending: { kind: 'lost', because: 'connection refused', isUnreachable: true },
}

describe('an engine that sleeps', () => {
  it('gets nothing, loses what it has, and is back when it answers a question', async () => {
    const { world, engine, loop, health, runFor } = await start([hangs, finished(1)])
    let isAwake = true
    let asked = 0
    engine.ask = async () => {
      asked++
      if (!isAwake) await world.clock.sleep(2 * S)
      return isAwake
    }
    const { done } = world.serve()
    await runFor(S / 10)
    isAwake = false
    engine.probe = () => Promise.resolve({ ...READY, isAsleep: !isAwake })
    await runFor(S)
    expect(health.kindOf(ID)).toBe('away')
    expect(await done).toMatchObject({
      outcome: 'failed',
      refusal: { code: 'engine-stalled', because: 'The answer broke off: the engine sleeps.' },
    })
    await runFor(20 * S)
    expect(health.kindOf(ID)).toBe('away')
    isAwake = true
    await runFor(3 * S)
    expect(health.kindOf(ID)).toMatch(/warming|steady/)
    const askedThen = asked
    await runFor(20 * S)
    expect(asked).toBe(askedThen)
    loop.stop()
    await world.run()
    expect(world.unrest()).toEqual([])
  })
})

describe('the only replica of a pool', () => {
  const lose = async (isAnswered: boolean) => {
    const { world, engine, loop, health, runFor } = await start([lost(0)])
    let asked = 0
    engine.ask = () => {
      asked++
      return Promise.resolve(isAnswered)
    }
    for (let i = 0; i < 4; i++) {
      world.serve()
      await runFor(S / 10)
    }
    const kind = health.kindOf(ID)
    loop.stop()
    await world.run()
    return { kind, asked }
  }

  it('is ejected after five losses of one tenant only where it does not answer us either', async () => {
    expect(await lose(true)).toMatchObject({ kind: 'steady' })
    expect(await lose(false)).toEqual({ kind: 'ejected', asked: 1 })
  })

  it('is away as soon as nothing listens there, and its requests wait for its return', async () => {
    const { world, loop, health, runFor } = await start([lost(0), refusedConnection, finished(1)])
    const { done } = world.serve()
    await runFor(S / 2)
    expect(health.kindOf(ID)).toBe('away')
    expect(world.platform.turnstile.view()).toMatchObject({ waiting: 1, inFlight: 0 })
    await runFor(S)
    expect(await done).toMatchObject({ outcome: 'completed', attempts: 3 })
    loop.stop()
    await world.run()
    expect(world.unrest()).toEqual([])
  })

  it('that does not return costs its requests their patience, and no 502', async () => {
    const { world, engine, loop, runFor } = await start([refusedConnection], { waitMsMax: 5_000 })
    engine.probe = () => Promise.resolve({ isReady: false, because: 'connection refused' })
    const { done } = world.serve()
    await runFor(10 * S)
    expect(await done).toMatchObject({ outcome: 'expired', attempts: 1, refusal: { code: 'waited-too-long' } })
    loop.stop()
    await world.run()
    expect(world.unrest()).toEqual([])
  })
})
