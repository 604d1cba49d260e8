import { describe, expect, it } from 'vitest'
import { scriptedRetrieval } from '../../test/support/scripted-retrieval.ts'
import { Cancellation } from '../base/cancellation.ts'
import { msToUs, secondsToUs } from '../base/clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import type { Retrieved } from '../lifecycle/retrieval-ports.ts'

/** On virtual time: every delay is exact, so "never longer than the budget" can be checked to the microsecond. */

const BUDGET_US = msToUs(150)
const TEXTS = ['Refunds take ten days.', 'Stores open at nine.', 'Small pets may travel in the cabin.']

type Scripted = ReturnType<typeof scriptedRetrieval>

async function inVirtualTime<T>(
  story: (world: Scripted & { clock: VirtualClock; ask: Ask; corpusId: string }) => Promise<T>,
): Promise<T> {
  const clock = new VirtualClock()
  const world = scriptedRetrieval(clock)
  let result: { value: T } | { error: unknown } | undefined
  const run = async (): Promise<T> => {
    const { id } = await world.corpora.createCorpus('acme', { name: 'handbook', metadata: {} })
    const drafts = TEXTS.map((text, i) => ({ name: `d${i}`, text, attributes: {} }))
    await world.corpora.addDocuments('acme', id, drafts)
    while ((await world.corpora.getCorpus('acme', id)).counts.completed < TEXTS.length) await clock.sleep(1_000)
    const ask: Ask = async (query, more = {}) => {
      const startedAt = clock.now()
      const budgetUs = more.budgetUs ?? BUDGET_US
      const retrieved = await world.retriever.retrieve({
        tenantId: 'acme',
        corpus: 'handbook',
        query,
        passagesMax: 2,
        tokensMax: 1_000,
        budgetUs,
        cancellation: new Cancellation(),
        ...more,
      })
      expect(clock.now() - startedAt).toBeLessThanOrEqual(budgetUs)
      return retrieved
    }
    return story({ ...world, clock, ask, corpusId: id })
  }
  run().then(
    (value) => {
      result = { value }
    },
    (error: unknown) => {
      result = { error }
    },
  )
  await clock.run()
  if (result === undefined) throw new Error('the story hangs')
  if ('error' in result) throw result.error
  return result.value
}

type Ask = (query: string, more?: Partial<Parameters<Scripted['retriever']['retrieve']>[0]>) => Promise<Retrieved>

describe('a retrieval', () => {
  it('is fresh, then cached', () =>
    inVirtualTime(async ({ ask, counts }) => {
      const fresh = await ask('When do stores open?')
      expect(fresh.outcome).toBe('fresh')
      expect(fresh.passages.map(({ text }) => text)).toContain('Stores open at nine.')
      expect(await ask('When do stores open?')).toMatchObject({ outcome: 'cached', passages: fresh.passages })
      expect(counts.searches).toBe(1)
    }))

  it('has only one search for the same question asked at once', () =>
    inVirtualTime(async ({ ask, counts, storeMood }) => {
      storeMood.delayUs = msToUs(5)
      const all = await Promise.all(Array.from({ length: 20 }, () => ask('pets?')))
      expect(new Set(all.map(({ outcome }) => outcome))).toEqual(new Set(['fresh']))
      expect(counts.searches).toBe(1)
    }))

  it('serves what is past its time, and searches again behind it', () =>
    inVirtualTime(async ({ ask, counts, clock }) => {
      await ask('pets?')
      await clock.sleep(secondsToUs(61))
      expect((await ask('pets?')).outcome).toBe('stale')
      await clock.sleep(secondsToUs(1))
      expect((await ask('pets?')).outcome).toBe('cached')
      expect(counts.searches).toBe(2)
    }))

  it('sees a change at once', () =>
    inVirtualTime(async ({ ask, corpora, corpusId, clock }) => {
      expect((await ask('trains')).passages.map(({ text }) => text)).not.toContain('Trains leave at noon.')
      await corpora.addDocuments('acme', corpusId, [{ name: 't', text: 'Trains leave at noon.', attributes: {} }])
      await clock.sleep(secondsToUs(2))
      const found = await ask('trains')
      expect(found.outcome).toBe('fresh')
      expect(found.passages.map(({ text }) => text)).toContain('Trains leave at noon.')
    }))

  it('makes do with words when the embedder hangs, and stops asking it', () =>
    inVirtualTime(async ({ ask, embedder, breakers, clock }) => {
      embedder.mood.isHanging = true
      const first = await ask('When do stores open?')
      expect(first.outcome).toBe('reduced')
      expect(first.passages[0]?.text).toBe('Stores open at nine.')
      for (const query of ['stores two', 'stores three', 'stores four'])
        expect((await ask(query)).outcome).toBe('reduced')
      expect(breakers).toEqual(['embedder open'])
      const askedAt = clock.now()
      expect((await ask('stores five')).outcome).toBe('reduced')
      expect(clock.now() - askedAt).toBeLessThan(msToUs(5))
      embedder.mood.isHanging = false
      await clock.sleep(secondsToUs(4))
      expect((await ask('stores six')).outcome).toBe('fresh')
      expect(breakers).toEqual(['embedder open', 'embedder closed'])
    }))

  it('falls back on the cache when the store hangs, and else goes without', () =>
    inVirtualTime(async ({ ask, storeMood, breakers, clock, counts }) => {
      await ask('pets?')
      storeMood.isHanging = true
      await clock.sleep(secondsToUs(61))
      expect(await ask('pets?')).toMatchObject({ outcome: 'stale', passages: [{}, {}] })
      expect(await ask('refunds?')).toMatchObject({ outcome: 'failed', passages: [] })
      for (let i = 0; i < 5; i++) await ask(`question ${i}`)
      expect(breakers).toContain('store open')
      expect(counts.cancelled).toBeGreaterThan(0)
      const askedAt = clock.now()
      await ask('another')
      expect(clock.now()).toBe(askedAt)
      storeMood.isHanging = false
      await clock.sleep(secondsToUs(5))
      expect((await ask('refunds?')).outcome).toBe('fresh')
    }))

  it('never shows from a cache what was deleted since', () =>
    inVirtualTime(async ({ ask, corpora, corpusId, storeMood, clock }) => {
      const { passages } = await ask('refunds')
      const secret = passages.find(({ text }) => text.includes('Refunds'))
      await corpora.deleteDocument('acme', corpusId, secret!.documentId)
      expect((await ask('refunds')).passages.map(({ text }) => text)).not.toContain(secret!.text)
      storeMood.isHanging = true
      await clock.sleep(secondsToUs(2))
      expect((await ask('refunds')).passages.map(({ text }) => text)).not.toContain(secret!.text)
    }))

  it('sees one tenant only, with the same question and the same names', () =>
    inVirtualTime(async ({ ask, corpora }) => {
      expect((await ask('refunds')).outcome).toBe('fresh')
      expect(await ask('refunds', { tenantId: 'mallory' })).toMatchObject({ outcome: 'failed', passages: [] })
      await corpora.createCorpus('mallory', { name: 'handbook', metadata: {} })
      expect(await ask('refunds', { tenantId: 'mallory' })).toMatchObject({ passages: [] })
    }))

  it.each([
    ['no text', { query: '  ' }],
    ['no room', { tokensMax: 0 }],
    ['no time', { budgetUs: 0 }],
  ])('does nothing with %s', (_, more) =>
    inVirtualTime(async ({ ask, counts }) => {
      expect(await ask('refunds', more)).toMatchObject({ outcome: 'skipped', passages: [] })
      expect(counts.searches).toBe(0)
    }),
  )

  it('is called off in the store when its client has gone', () =>
    inVirtualTime(async ({ ask, storeMood, clock, counts }) => {
      await ask('warm up')
      storeMood.isHanging = true
      const cancellation = new Cancellation()
      const asked = ask('pets?', { cancellation })
      await clock.sleep(msToUs(10))
      cancellation.cancel('client-gone')
      await asked
      expect(counts.cancelled).toBeGreaterThan(0)
    }))
})
