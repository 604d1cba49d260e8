import { describe, expect, it } from 'vitest'
import { joinedLines } from '../../test/support/joined-lines.ts'
import { CallFault, CallLine, LineAway } from './call-line.ts'
import { VirtualClock } from './virtual-clock.ts'

const SECOND = 1_000_000

describe('a line between two processes', () => {
  it('asks in both directions', async () => {
    const [a, b] = joinedLines(new VirtualClock())
    a.on('double', (n: number) => 2 * n)
    b.on('halve', async (n: number) => n / 2)
    expect(await Promise.all([a.ask('halve', 8, SECOND), b.ask('double', 8, SECOND)])).toEqual([4, 16])
    expect(a.inFlightCount + b.inFlightCount).toBe(0)
  })

  it('tells without an answer, also what fails there', async () => {
    const [a, b] = joinedLines(new VirtualClock())
    const heard: number[] = []
    b.on('note', (n: number) => void heard.push(n))
    b.on('break', () => {
      throw new Error('x')
    })
    b.on('break-later', () => Promise.reject(new Error('x')))
    for (const what of ['break', 'break-later', 'unknown']) a.say(what, 0)
    a.say('note', 7)
    await new Promise((resolve) => setImmediate(resolve))
    expect(heard).toEqual([7])
  })

  it('brings back what was thrown, with its name, code and detail', async () => {
    const [a, b] = joinedLines(new VirtualClock())
    b.on('fail', () => {
      throw Object.assign(new TypeError('no'), { code: '42P01', detail: 'a file' })
    })
    const error = await a.ask('fail', undefined, SECOND).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(CallFault)
    expect(error).toMatchObject({ name: 'TypeError', message: 'no', code: '42P01', detail: 'a file' })
    await expect(a.ask('unknown', undefined, SECOND)).rejects.toMatchObject({ name: 'LineAway' })
  })

  it('ends a call when its time is over, and ignores the late answer', async () => {
    const clock = new VirtualClock()
    const [a, b] = joinedLines(clock)
    let finish = (_value: string): void => {}
    b.on('slow', () => new Promise<string>((resolve) => (finish = resolve)))
    const asked = a.ask('slow', undefined, SECOND).catch((thrown: unknown) => thrown)
    await clock.run(2 * SECOND)
    expect(await asked).toBeInstanceOf(LineAway)
    expect(a.inFlightCount).toBe(0)
    finish('late')
  })

  it('refuses more calls than its bound', async () => {
    const clock = new VirtualClock()
    const [a, b] = joinedLines(clock, 2)
    b.on('wait', () => new Promise(() => {}))
    const two = [1, 2].map(() => a.ask('wait', undefined, SECOND).catch(() => 'over'))
    await expect(a.ask('wait', undefined, SECOND)).rejects.toThrow('2 calls to the other process wait already')
    await clock.run(2 * SECOND)
    expect(await Promise.all(two)).toEqual(['over', 'over'])
  })

  it('tells everybody who waits when it closes, and refuses from then on', async () => {
    const [a, b] = joinedLines(new VirtualClock())
    b.on('wait', () => new Promise(() => {}))
    const asked = a.ask('wait', undefined, SECOND)
    a.close('the process has ended')
    await expect(asked).rejects.toThrow('the process has ended')
    await expect(a.ask('wait', undefined, SECOND)).rejects.toThrow(LineAway)
    expect(a.isClosed).toBe(true)
  })

  it('closes when its channel does', async () => {
    const send = (): void => {
      throw new Error('channel closed')
    }
    const line = new CallLine({ clock: new VirtualClock(), send })
    await expect(line.ask('x', undefined, SECOND)).rejects.toThrow('channel closed')
    expect(line.isClosed).toBe(true)
  })
})
