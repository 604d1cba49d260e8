import { afterEach, describe, expect, it, vi } from 'vitest'
import { LiveClock } from '../../base/live-clock.ts'
import { VirtualClock } from '../../base/virtual-clock.ts'
import type { EntitySpan } from '../../domain/screening.ts'
import { NAME_FINDER_DEFAULTS, type NameFinderOptions, ThreadedNameFinder } from './live-name-finder.ts'

const open: ThreadedNameFinder[] = []
afterEach(() => {
  for (const finder of open.splice(0)) finder.close()
})

const HERE: readonly EntitySpan[] = [{ screen: 'names', category: 'person', start: 0, end: 1 }]

function make(options: Partial<NameFinderOptions> = {}): ThreadedNameFinder {
  const finder = new ThreadedNameFinder({ clock: new LiveClock(), tagger: { find: () => HERE }, ...options })
  open.push(finder)
  return finder
}

const TEXT = 'My name is Anna Schmidt, and I have a question.'
const FOUND = [{ screen: 'names', category: 'person', start: 11, end: 23 }]

const WORKERS = "import { parentPort } from 'node:worker_threads'\n"
const moduleOf = (source: string): URL => new URL(`data:text/javascript,${encodeURIComponent(WORKERS + source)}`)
/** A thread that never says that it is ready. */
const SILENT = moduleOf('setInterval(() => {}, 1000)')
/** A thread that is ready and answers nothing. */
const DEAF = moduleOf("setInterval(() => {}, 1000); parentPort.postMessage('ready')")
const BROKEN = moduleOf("throw new Error('no tagger here')")

/** Asks until the thread is there: what is asked before is answered at once, with nothing. */
async function whenReady(finder: ThreadedNameFinder, tenantId = 'first'): Promise<void> {
  await vi.waitUntil(
    () => {
      void finder.ask(tenantId, TEXT)
      return finder.waitingCount > 0
    },
    { timeout: 30_000, interval: 5 },
  )
}

describe('the finder of names in a thread', () => {
  it('has no thread before it is asked, and then finds what the tagger finds', { timeout: 30_000 }, async () => {
    const finder = make({ limits: { answerUsMax: 20_000_000 } })
    expect(finder.isLoaded).toBe(false)
    // The start is not waited for: the text is looked at on the spot.
    expect(await finder.ask('acme', TEXT)).toBeUndefined()
    expect(finder.find(TEXT)).toBe(HERE)
    await whenReady(finder)
    expect(await finder.ask('acme', TEXT)).toEqual(FOUND)
    expect(finder.waitingCount).toBe(0)
  })

  it('answers nobody later than its bound', { timeout: 30_000 }, async () => {
    const clock = new VirtualClock()
    const finder = make({ clock, thread: DEAF })
    await whenReady(finder)
    const asked = finder.ask('acme', TEXT)
    await clock.run(clock.now() + NAME_FINDER_DEFAULTS.answerUsMax)
    expect(await asked).toBeUndefined()
    expect(finder.waitingCount).toBe(0)
  })

  it('lets a bounded number wait, a smaller one of one tenant, and no long text', { timeout: 30_000 }, async () => {
    const clock = new VirtualClock()
    const finder = make({ clock, thread: DEAF, limits: { waitingMax: 5, waitingOfTenantMax: 3, charactersMax: 100 } })
    await whenReady(finder)
    await expect(finder.ask('a', 'x'.repeat(101))).resolves.toBeUndefined()
    const asks = ['a', 'a', 'a', 'a', 'b', 'c'].map((tenantId) => finder.ask(tenantId, TEXT))
    expect(finder.waitingCount).toBe(5)
    await expect(asks[3]).resolves.toBeUndefined()
    await expect(asks[5]).resolves.toBeUndefined()
    await clock.run(clock.now() + NAME_FINDER_DEFAULTS.answerUsMax)
    expect(await Promise.all(asks)).toEqual(Array(6).fill(undefined))
  })

  it('ends a thread that hangs or does not start, and rests', { timeout: 30_000 }, async () => {
    const clock = new VirtualClock()
    const hanging = make({ clock, thread: DEAF, limits: { answerUsMax: 60_000_000 } })
    await whenReady(hanging)
    await clock.run(clock.now() + NAME_FINDER_DEFAULTS.hangUs)
    expect([hanging.isLoaded, hanging.waitingCount]).toEqual([false, 0])
    const silent = make({ clock, thread: SILENT })
    expect(await silent.ask('acme', TEXT)).toBeUndefined()
    expect(silent.isLoaded).toBe(true)
    await clock.run(clock.now() + NAME_FINDER_DEFAULTS.startUs)
    expect(silent.isLoaded).toBe(false)
    expect(await silent.ask('acme', TEXT)).toBeUndefined()
    expect(silent.isLoaded).toBe(false)
    await clock.run(clock.now() + NAME_FINDER_DEFAULTS.restUs)
    void silent.ask('acme', TEXT)
    expect(silent.isLoaded).toBe(true)
  })

  it('outlives a thread that breaks', { timeout: 30_000 }, async () => {
    const finder = make({ thread: BROKEN })
    expect(await finder.ask('acme', TEXT)).toBeUndefined()
    await vi.waitUntil(() => !finder.isLoaded, { timeout: 30_000, interval: 5 })
    expect(await finder.ask('acme', TEXT)).toBeUndefined()
    expect(finder.isLoaded).toBe(false)
  })

  it('gives its thread back when nobody asks any more', { timeout: 30_000 }, async () => {
    const finder = make({ limits: { answerUsMax: 20_000_000, idleUs: 20_000 } })
    await whenReady(finder)
    await vi.waitUntil(() => !finder.isLoaded, { timeout: 30_000, interval: 5 })
    expect(finder.waitingCount).toBe(0)
  })
})
