import { EventEmitter } from 'node:events'
import { describe, expect, it } from 'vitest'
import { msToUs } from '../base/clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import { runUntilSignal } from './run-until-signal.ts'

/** Sends signals at the given milliseconds to something that takes a second to close. */
async function play(signals: readonly (readonly [number, 'SIGINT' | 'SIGTERM'])[]) {
  const clock = new VirtualClock()
  const exits: { atMs: number; code: number }[] = []
  let closeCount = 0
  const source = Object.assign(new EventEmitter(), {
    exit: (code: number) => exits.push({ atMs: clock.now() / 1_000, code }),
  })
  const running = {
    address: '',
    close: () => {
      closeCount++
      return clock.sleep(msToUs(1_000))
    },
  }
  const start = async () => {
    await clock.sleep(msToUs(2))
    return running
  }
  const ended = runUntilSignal(start, source, clock)
  for (const [atMs, signal] of signals) clock.at(msToUs(atMs), () => source.emit(signal))
  await clock.run()
  return { exitCode: exits.length === 0 ? await ended : undefined, closeCount, exits, listeners: source.eventNames() }
}

describe('runUntilSignal', () => {
  it('closes gently on the first signal', async () => {
    expect(await play([[5, 'SIGTERM']])).toEqual({ exitCode: 0, closeCount: 1, exits: [], listeners: [] })
  })
  it('closes what was still starting', async () => {
    expect(await play([[1, 'SIGTERM']])).toMatchObject({ exitCode: 0, closeCount: 1 })
  })
  it('counts what arrives in one blink once', async () => {
    expect(
      await play([
        [5, 'SIGINT'],
        [6, 'SIGINT'],
        [200, 'SIGTERM'],
      ]),
    ).toMatchObject({ exitCode: 0, closeCount: 1 })
  })
  it('ends at once on a second one', async () => {
    const { closeCount, exits } = await play([
      [5, 'SIGTERM'],
      [400, 'SIGTERM'],
    ])
    expect(closeCount).toBe(1)
    expect(exits).toEqual([{ atMs: 400, code: 143 }])
  })
  it('says by which signal it ended', async () => {
    expect(
      (
        await play([
          [5, 'SIGTERM'],
          [400, 'SIGINT'],
        ])
      ).exits,
    ).toEqual([{ atMs: 400, code: 130 }])
  })
})
