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
 * one to six microtasks later.
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

function momentsOf(eventCount: number): Moment[] {
  const whens: Array<Moment['when']> = ['before', 0, 1, 2, 3, 4, 5, 6]
  return Array.from({ length: eventCount }, (_, i) => i + 1).flatMap((event) => whens.map((when) => ({ event, when })))
}

/** Every moment at which something went wrong, in words; and how many moments found the target alive. */
async function cancelEverywhere(play: Scenario): Promise<{ problems: string[]; cancelledCount: number }> {
  const undisturbed = await play()
  const problems = problemsOf(undisturbed)
  if (undisturbed.target.settled?.outcome !== 'completed') problems.push('undisturbed, it does not complete')
  let cancelledCount = 0
  for (const moment of momentsOf(undisturbed.eventCount)) {
    const run = await play(moment)
    if (run.target.settled?.outcome === 'cancelled') cancelledCount++
    problems.push(...problemsOf(run).map((problem) => `${JSON.stringify(moment)} ${problem}`))
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

  it('while it waits, while it runs, and when it is about to end', async () => {
    const { problems, cancelledCount } = await cancelEverywhere(scripted([finished(4)]))
    expect(problems).toEqual([])
    expect(cancelledCount).toBeGreaterThan(50)
  })

  it('between a first try that was lost and the second', async () => {
    const { problems, cancelledCount } = await cancelEverywhere(scripted([lost(0), finished(3), finished(3)], 2))
    expect(problems).toEqual([])
    expect(cancelledCount).toBeGreaterThan(20)
  })

  it('while its reader is slow', async () => {
    const slow = scripted([finished(3)], 1, (world, sink) => {
      sink.onWrite = () => world.clock.sleep(2_500)
      return sink
    })
    const { problems, cancelledCount } = await cancelEverywhere(slow)
    expect(problems).toEqual([])
    expect(cancelledCount).toBeGreaterThan(50)
  })

  it('on a real engine, whose sequence goes at the same instant', async () => {
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
    const { problems, cancelledCount } = await cancelEverywhere(play)
    expect(problems).toEqual([])
    expect(cancelledCount).toBeGreaterThan(30)
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
