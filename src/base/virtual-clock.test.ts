import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { VirtualClock } from './virtual-clock.ts'

describe('order', () => {
  it('is by instant, then by when the timer was set', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(20), { maxLength: 40 }), async (delays) => {
        const clock = new VirtualClock()
        const seen: Array<{ at: number; i: number }> = []
        for (const [i, delay] of delays.entries()) clock.at(delay, () => seen.push({ at: clock.now(), i }))
        await clock.run()
        const expected = delays.map((at, i) => ({ at, i })).toSorted((a, b) => a.at - b.at || a.i - b.i)
        expect(seen).toEqual(expected)
        expect(clock).toMatchObject({ pendingCount: 0, eventCount: delays.length })
      }),
    )
  })

  it('holds for timers that set timers; one in the past is due now, and time never runs backwards', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.nat(10), fc.integer({ min: -5, max: 10 }))), async (pairs) => {
        const clock = new VirtualClock(100)
        const instants: number[] = []
        for (const [delay, again] of pairs) {
          clock.at(100 + delay, () => {
            instants.push(clock.now())
            clock.at(clock.now() + again, () => instants.push(clock.now()))
          })
        }
        await clock.run()
        expect(instants).toHaveLength(2 * pairs.length)
        expect(instants).toEqual(instants.toSorted((a, b) => a - b))
      }),
    )
  })

  it('rounds fractions up: nothing happens too early', async () => {
    const clock = new VirtualClock()
    let at = 0
    clock.at(1.2, () => {
      at = clock.now()
    })
    await clock.run()
    expect(at).toBe(2)
  })
})

describe('promises', () => {
  it('have all settled, however deep, before the next timer is called', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 2, max: 6 }), async (depth, timers) => {
        const clock = new VirtualClock()
        const log: string[] = []
        const chain = async (name: number): Promise<void> => {
          for (let i = 0; i < depth; i++)
            await (i % 2 === 0 ? Promise.resolve() : Promise.all([Promise.resolve(), Promise.resolve()]))
          log.push(`end ${name} at ${clock.now()}`)
        }
        for (let i = 0; i < timers; i++) {
          // Two by two at one instant: even there the first one's promises come first.
          clock.at(i >> 1, () => {
            log.push(`begin ${i}`)
            void chain(i)
          })
        }
        await clock.run()
        const expected = Array.from({ length: timers }, (_, i) => [`begin ${i}`, `end ${i} at ${i >> 1}`]).flat()
        expect(log).toEqual(expected)
      }),
    )
  })

  it('wake at the instant that they slept until, in ordinary async code', async () => {
    const clock = new VirtualClock()
    const log: string[] = []
    const sleeper = async (name: string, stepUs: number): Promise<void> => {
      for (let i = 0; i < 3; i++) {
        await clock.sleep(stepUs)
        log.push(`${name}${clock.now()}`)
      }
    }
    const done = Promise.all([sleeper('a', 10), sleeper('b', 15)])
    await clock.run()
    await done
    expect(log).toEqual(['a10', 'b15', 'a20', 'b30', 'a30', 'b45'])
  })

  it('that are there before the run are settled first', async () => {
    const clock = new VirtualClock()
    const log: string[] = []
    void Promise.resolve().then(() => log.push('promise'))
    clock.at(0, () => log.push('timer'))
    await clock.run()
    expect(log).toEqual(['promise', 'timer'])
  })
})

describe('forgetting', () => {
  it('a timer that is forgotten is not called, even by one at the same instant', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.nat(5), fc.nat(30)), { maxLength: 30 }), async (timers) => {
        const clock = new VirtualClock()
        const called: number[] = []
        const forgotten = new Set<number>()
        const cancels: Array<() => void> = []
        timers.forEach(([at, victim], i) => {
          cancels.push(
            clock.at(at, () => {
              called.push(i)
              cancels[victim]?.()
              if (cancels[victim] !== undefined && !called.includes(victim)) forgotten.add(victim)
            }),
          )
        })
        await clock.run()
        for (const i of forgotten) expect(called).not.toContain(i)
        expect(called.length + forgotten.size).toBe(timers.length)
      }),
    )
  })
})

describe('run', () => {
  it('stops at the given instant, included, and goes on from there', async () => {
    const clock = new VirtualClock()
    const seen: number[] = []
    for (const at of [5, 10, 11, 20]) clock.at(at, () => seen.push(at))
    await clock.run(10)
    expect([seen, clock.now(), clock.pendingCount]).toEqual([[5, 10], 10, 2])
    await clock.run(15)
    expect([seen, clock.now()]).toEqual([[5, 10, 11], 15])
    await clock.run()
    expect([seen, clock.now()]).toEqual([[5, 10, 11, 20], 20])
    await clock.run(12)
    expect(clock.now()).toBe(20)
  })

  it('cannot run twice at once, and fails with what a timer throws', async () => {
    const clock = new VirtualClock()
    clock.at(1, () => {
      throw new Error('broken')
    })
    clock.at(2, () => {})
    const running = clock.run()
    expect(() => clock.run()).toThrow('already running')
    await expect(running).rejects.toThrow('broken')
    await clock.run()
    expect(clock.now()).toBe(2)
  })

  it('lets the process breathe in a long run', async () => {
    const clock = new VirtualClock()
    let left = 20_000
    const again = (): void => {
      if (left-- > 0) clock.at(clock.now() + 1, again)
    }
    again()
    let breaths = 0
    const timer = setInterval(() => breaths++, 0)
    await clock.run()
    clearInterval(timer)
    expect(clock.now()).toBe(20_000)
    expect(breaths).toBeGreaterThan(0)
  })

  it('is the same every time', async () => {
    const play = async (seed: readonly number[]): Promise<string[]> => {
      const clock = new VirtualClock()
      const log: string[] = []
      const worker = async (id: number, stepUs: number): Promise<void> => {
        for (let i = 0; i < 5; i++) {
          await clock.sleep((stepUs * (i + 1)) % 7)
          log.push(`${id}@${clock.now()}`)
          if (i === 2) clock.at(clock.now(), () => log.push(`timer of ${id}`))
        }
      }
      seed.forEach((stepUs, id) => void worker(id, stepUs))
      await clock.run()
      return log
    }
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(50), { maxLength: 12 }), async (seed) => {
        expect(await play(seed)).toEqual(await play(seed))
      }),
    )
  })
})
