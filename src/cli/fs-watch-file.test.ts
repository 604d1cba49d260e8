import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { secondsToUs } from '../base/clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import { FileWatch } from './fs-watch-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'spillway-watch-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Texts that the file has, one a second from the start on; the last one stays. Says at which second it changed. */
async function changes(...texts: (string | undefined)[]): Promise<number[]> {
  const clock = new VirtualClock()
  const seen: number[] = []
  const read = (): string | undefined => texts[Math.min(texts.length - 1, Math.round(clock.now() / 1_000_000))]
  const onChange = (): void => void seen.push(Math.round(clock.now() / 1_000_000))
  const watch = new FileWatch({ path: 'x', clock, read, onChange })
  await clock.run(secondsToUs(texts.length + 3))
  watch.stop()
  return seen
}

it('is quiet while the text stays, and says once that it is another one, when it has stayed for a look', async () => {
  expect(await changes('a')).toEqual([])
  expect(await changes('a', 'b')).toEqual([2])
  expect(await changes('a', 'b', 'b', 'b', 'a')).toEqual([2, 5])
})

it('waits for a file that is still being written, or is away while it is replaced', async () => {
  expect(await changes('a', 'b', 'bc', 'bcd')).toEqual([4])
  expect(await changes('a', undefined, undefined, undefined, 'a')).toEqual([])
  expect(await changes('a', undefined, undefined, 'b')).toEqual([4])
  expect(await changes('a', 'b', 'a')).toEqual([])
})

it('sees a change that came before it began to look', async () => {
  const clock = new VirtualClock()
  let count = 0
  const watch = new FileWatch({ path: 'x', clock, taken: 'a', read: () => 'b', onChange: () => void count++ })
  await clock.run(secondsToUs(5))
  watch.stop()
  expect(count).toBe(1)
})

it('follows a file that an editor replaces by another one of its name', async () => {
  const path = join(folder, 'spillway.yaml')
  writeFileSync(path, 'a')
  const clock = new VirtualClock()
  let count = 0
  const watch = new FileWatch({ path, clock, onChange: () => void count++ })
  await clock.run(secondsToUs(3))
  writeFileSync(`${path}.new`, 'b')
  renameSync(`${path}.new`, path)
  await clock.run(secondsToUs(6))
  watch.stop()
  expect(count).toBe(1)
})
