import { describe, expect, it } from 'vitest'
import { finished, lost, type Turnout } from '../../test/support/scripted-backend.ts'
import { type Moment, SteppingClock } from '../../test/support/stepping-clock.ts'
import { RecordingSink, type Served, VirtualWorld, type WorldOptions } from '../../test/support/virtual-world.ts'
import type { EngineDriver } from '../backends/engine-driver.ts'
import { Cancellation } from '../base/cancellation.ts'
import type { VirtualClock } from '../base/virtual-clock.ts'

/**
 * A client that goes away frees everything it held, at the instant at which it goes, whatever was being done for it.
 * Each scenario is run once undisturbed, then once for every moment there is: before every timer, right after it, and
 * one to six microtasks later. Each of these eight is a test of its own, so that none is long.
 */

interface Run extends Cast {
  /** When the target was called off; undefined if it had ended by then or the moment never came. */
  cancelledAt: number | undefined
  eventCount: number
}

interface Cast {
  readonly world: VirtualWorld
  readonly target: Served
  readonly others: readonly Served[]
}

type Scenario = (moment?: Moment) => Promise<Run>

function scenario(start: (options: WorldOptions) => Promise<Cast>): Scenario {
  return async (moment) => {
    let clock: SteppingClock | undefined
    let run: Run | undefined
    const cancel = (): void => {
      if (run === undefined || run.target.settled !== undefined) return
      run.cancelledAt = run.world.clock.now()
      run.target.cancellation.cancel('client-gone')
    }
    const wrapClock = (virtual: VirtualClock): SteppingClock => {
      clock = new SteppingClock(virtual, moment, cancel)
      return clock
    }
    run = { ...(await start({ wrapClock })), cancelledAt: undefined, eventCount: 0 }
    await run.world.run()
    run.eventCount = clock!.eventCount
    return run
  }
}

const WHENS: ReadonlyArray<Moment['when']> = ['before', 0, 1, 2, 3, 4, 5, 6]

/** Every event at which something went wrong, in words; and how many events found the target alive. */
async function cancelAtEveryEvent(
  play: Scenario,
  when: Moment['when'],
): Promise<{ problems: string[]; cancelledCount: number }> {
  const undisturbed = await play()
  const problems = problemsOf(undisturbed)
  if (undisturbed.target.settled?.outcome !== 'completed') problems.push('undisturbed, it does not complete')
  let cancelledCount = 0
  for (let event = 1; event <= undisturbed.eventCount; event++) {
    const run = await play({ event, when })
    if (run.target.settled?.outcome === 'cancelled') cancelledCount++
    problems.push(...problemsOf(run).map((problem) => `event ${event}: ${problem}`))
  }
  return { problems, cancelledCount }
}

function problemsOf({ world, target, others, cancelledAt }: Run): string[] {
  const { settled, sink } = target
  const isCompleted = settled?.outcome === 'completed'
  const isCalledOff = settled?.outcome === 'cancelled' && settled.because === 'client-gone'
  const facts: Record<string, boolean> = {
    'the client was told nonsense': !sink.isWellFormed,
    'another ticket suffered': others.some((other) => other.settled?.outcome !== 'completed'),
    [`it ended as ${settled?.outcome}`]: !isCompleted && !isCalledOff,
    'it did not end at once': isCalledOff && settled.at !== cancelledAt,
    'its tokens are miscounted': settled?.usage.outputTokens !== sink.tokens,
    'a client that had gone was told of a failure': sink.calls.includes('fail'),
  }
  return [...world.unrest(), ...Object.keys(facts).filter((fact) => facts[fact])]
}

describe('cancelled at any moment', () => {
  const scripted = (
    turnouts: readonly Turnout[],
    replicas = 1,
    prepare = (_world: VirtualWorld, sink: RecordingSink) => sink,
  ) =>
    scenario(async (options) => {
      const { world } = await VirtualWorld.scripted(turnouts, { ...options, replicas })
      const before = replicas === 1 ? [world.serve()] : []
      const target = world.serve({}, prepare(world, new RecordingSink()))
      return { world, target, others: [...before, world.serve()] }
    })

  it.each(WHENS)('while it waits, while it runs, and when it is about to end (%s)', async (when) => {
    const { problems, cancelledCount } = await cancelAtEveryEvent(scripted([finished(4)]), when)
    expect(problems).toEqual([])
    expect(cancelledCount).toBeGreaterThan(6)
  })

  it.each(WHENS)('between a first try that was lost and the second (%s)', async (when) => {
    const play = scripted([lost(0), finished(3), finished(3)], 2)
    const { problems, cancelledCount } = await cancelAtEveryEvent(play, when)
    expect(problems).toEqual([])
    expect(cancelledCount).toBeGreaterThan(3)
  })

  it.each(WHENS)('while its reader is slow (%s)', async (when) => {
    const slow = scripted([finished(3)], 1, (world, sink) => {
      sink.onWrite = () => world.clock.sleep(2_500)
      return sink
    })
    const { problems, cancelledCount } = await cancelAtEveryEvent(slow, when)
    expect(problems).toEqual([])
    expect(cancelledCount).toBeGreaterThan(6)
  })

  it.each(WHENS)('on a real engine, whose sequence goes at the same instant (%s)', async (when) => {
    let engine: EngineDriver | undefined
    const freed: boolean[] = []
    const script = { promptTokens: 700, outputTokens: 5, prefixHashes: [], finishReason: 'stop' } as const
    const play = scenario(async (options) => {
      const { world, drivers } = await VirtualWorld.simulated(
        { ...script, textBetween: () => 'x' },
        {
          ...options,
          concurrencyMax: 2,
        },
      )
      engine = drivers[0]!
      const others = [world.serve(), world.serve()]
      const target = world.serve({ choiceCount: 2 })
      void target.done.then(({ outcome }) => {
        if (outcome !== 'cancelled') return
        const { running, waiting } = engine!.view()
        const openOthers = others.filter((other) => other.settled === undefined).length
        freed.push(running + waiting <= openOthers)
      })
      return { world, target, others }
    })
    const { problems, cancelledCount } = await cancelAtEveryEvent(play, when)
    expect(problems).toEqual([])
    expect(cancelledCount).toBeGreaterThan(4)
    expect(freed).toHaveLength(cancelledCount)
    expect(freed).not.toContain(false)
    const { blocksFree, blockCount } = engine!.view()
    expect(blocksFree).toBe(blockCount)
  })
})

it('called off before it arrives, it takes no place and no turn', async () => {
  const { world, backend } = await VirtualWorld.scripted([finished(2)])
  const busy = world.serve()
  const alreadyGone = new Cancellation()
  alreadyGone.cancel('client-gone')
  const gone = world.serve({}, new RecordingSink(), alreadyGone)
  expect(world.platform.turnstile.view()).toMatchObject({ waiting: 0, inFlight: 1 })
  await world.run()
  expect(gone.settled).toMatchObject({ outcome: 'cancelled', attempts: 0 })
  expect(busy.settled).toMatchObject({ outcome: 'completed' })
  expect(backend.replicaIds).toHaveLength(1)
  expect(world.unrest()).toEqual([])
})

it('counts every token that a simulated client had got, though it was told of few', async () => {
  const script = { promptTokens: 20, outputTokens: 400, prefixHashes: [], finishReason: 'stop' } as const
  const { world, drivers } = await VirtualWorld.simulated(script)
  const target = world.serve()
  const startedAt = world.virtual.now()
  await world.run(startedAt + 1_000_000)
  const made = drivers[0]!.view().generationTokens
  target.cancellation.cancel('client-gone')
  await world.run()
  expect(target.sink.tokens).toBeLessThan(10)
  expect(made).toBeGreaterThan(50)
  expect(target.settled).toMatchObject({ outcome: 'cancelled', usage: { outputTokens: made } })
  expect(world.unrest()).toEqual([])
})
