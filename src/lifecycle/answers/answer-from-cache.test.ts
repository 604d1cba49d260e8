import { describe, expect, it } from 'vitest'
import { ACME } from '../../../test/support/requests.ts'
import { finished, type Turnout } from '../../../test/support/scripted-backend.ts'
import { ScriptedEmbedder } from '../../../test/support/scripted-retrieval.ts'
import { VirtualWorld, type WorldOptions } from '../../../test/support/virtual-world.ts'
import { Breaker } from '../../base/breaker.ts'
import type { Clock } from '../../base/clock.ts'
import type { Entry } from '../../domain/entry.ts'
import type { Request } from '../../domain/request.ts'
import type { AnswerCacheTerms, Tenant } from '../../domain/tenant.ts'
import { MemoryAnswerStore } from '../../retrieval/answers/memory-answer-store.ts'
import { SemanticAnswerCache } from '../../retrieval/answers/semantic-answer-cache.ts'

/** The whole story on virtual time, with letters for meaning: words in another order are the same question. */
const TERMS: AnswerCacheTerms = { similarityMin: 0.97, temperatureMax: 0.3, ttlUs: 60_000_000, checkRatio: 0 }
const withCache = (terms: Partial<AnswerCacheTerms> = {}, more: Partial<Tenant> = {}): Tenant => ({
  ...ACME,
  answerCache: { ...TERMS, ...terms },
  ...more,
})
const asking = (question: string, more: Partial<Request> = {}): Partial<Request> => ({
  tenant: withCache(),
  cacheable: { promptVersion: 'v1', question },
  ...more,
})

async function worldOf(turnouts: readonly Turnout[] = [finished(5)], options: WorldOptions = {}) {
  let embedder: ScriptedEmbedder | undefined
  const store = new MemoryAnswerStore()
  const answers = (clock: Clock): SemanticAnswerCache => {
    embedder = new ScriptedEmbedder(clock)
    return new SemanticAnswerCache({ clock, store, embedder, embedderBreaker: new Breaker() })
  }
  const { world, backend } = await VirtualWorld.scripted(turnouts, { ...options, answers })
  const serve = async (request: Partial<Request>) => {
    const served = world.serve(request)
    await world.run()
    const settled = await served.done
    const lookup = world.entries.findLast((entry): entry is LookedUp => entry.kind === 'answer-looked-up')
    return { ...served, settled, lookup: lookup?.ticketId === served.request.id ? lookup : undefined }
  }
  return { world, backend, serve, store, embedder: embedder! }
}
type LookedUp = Extract<Entry, { kind: 'answer-looked-up' }>

describe('a question that was answered before', () => {
  it('is answered from the cache: no turn, no engine, no tokens, and says so', async () => {
    const { world, serve } = await worldOf()
    const first = await serve(asking('why is the sky blue'))
    expect(first.lookup).toMatchObject({ outcome: 'miss', similarity: undefined })
    const again = await serve(asking('the sky is blue why'))
    expect(world.kinds(again.request.id)).toEqual(['arrived', 'answer-looked-up', 'settled'])
    expect(again.settled).toMatchObject({
      outcome: 'completed',
      attempts: 0,
      usage: { promptTokens: 0, outputTokens: 0 },
    })
    expect(again.lookup).toMatchObject({ outcome: 'hit', saved: first.settled.usage })
    expect(again.sink).toMatchObject({
      isWellFormed: true,
      tokens: 5,
      head: { cached: { saved: first.settled.usage } },
    })
    expect(world.unrest()).toEqual([])
  })

  it.each([
    ['its tenant has no cache', { tenant: ACME }],
    ['the request may not be cached', { cacheable: undefined as never }],
    ['the prompt version is another one', { cacheable: { promptVersion: 'v2', question: 'why is the sky blue' } }],
    ['the question has another number', { cacheable: { promptVersion: 'v1', question: 'why is the sky blue 2' } }],
    ['the question is not near enough', { cacheable: { promptVersion: 'v1', question: 'how deep is the sea' } }],
    ['another tenant asks', { tenant: withCache({}, { id: 'globex', orgId: 'globex' }) }],
  ])('is answered anew when %s', async (_, change) => {
    const { serve } = await worldOf()
    await serve(asking('why is the sky blue'))
    const { settled, lookup } = await serve({ ...asking('why is the sky blue'), ...change })
    expect(settled).toMatchObject({ outcome: 'completed', attempts: 1 })
    expect(lookup?.outcome ?? 'miss').toBe('miss')
  })

  it('is answered anew when its time is over', async () => {
    const { world, serve } = await worldOf()
    await serve(asking('why is the sky blue'))
    await world.run(world.clock.now() + 61_000_000)
    expect((await serve(asking('why is the sky blue'))).lookup).toMatchObject({ outcome: 'miss' })
  })

  it('counts as a request of its tenant, and is refused when the tenant is over its limit', async () => {
    const { serve } = await worldOf()
    const tenant = withCache({}, { allowance: { requests: { perMinute: 2, burst: 2 } } })
    await serve(asking('why is the sky blue', { tenant }))
    expect((await serve(asking('why is the sky blue', { tenant }))).lookup).toMatchObject({ outcome: 'hit' })
    const third = await serve(asking('why is the sky blue', { tenant }))
    expect(third.settled).toMatchObject({ outcome: 'rejected', refusal: { code: 'rate-limit-requests' } })
  })
})

describe('an answer is not kept', () => {
  it.each<[string, Turnout, Partial<Request>]>([
    ['that failed', { deltas: 2, ending: { kind: 'lost', because: 'gone' } }, {}],
    ['with passages that came too late', finished(5), { retrieval: { corpus: 'c', query: 'q', passagesMax: 2 } }],
  ])('%s', async (_, turnout, more) => {
    const { serve, store } = await worldOf([turnout])
    await serve(asking('why is the sky blue', more))
    expect(store.size).toBe(0)
  })
})

describe('a cache that is slow, broken or mad', () => {
  it('costs a tenth of a second at most, and the request goes on', async () => {
    const { serve, embedder, world } = await worldOf()
    await serve(asking('why is the sky blue'))
    embedder.mood.isHanging = true
    const slow = await serve(asking('why is the sky blue'))
    expect(slow.lookup).toMatchObject({ outcome: 'skipped', tookUs: 100_000 })
    expect(slow.settled).toMatchObject({ outcome: 'completed', attempts: 1 })
    embedder.mood.isHanging = false
    embedder.mood.isBroken = true
    expect((await serve(asking('why is the sky blue'))).settled.outcome).toBe('completed')
    expect(world.unrest()).toEqual([])
  })

  it('is a fault of ours when it throws, and the request goes on', async () => {
    const mad = (): never => {
      throw new Error('mad')
    }
    const { world } = await VirtualWorld.scripted([finished(5)], {
      answers: () => ({ find: mad, keep: mad, likeness: mad }),
    })
    const served = world.serve(asking('why is the sky blue'))
    await world.run()
    expect((await served.done).outcome).toBe('completed')
    expect(world.entries.filter((entry) => entry.kind === 'fault-seen').length).toBeGreaterThan(0)
  })
})

describe('known answers that are made anew', () => {
  it('are compared with what the cache would have said', async () => {
    const said = (text: string): Turnout => ({ ...finished(1), text })
    const { world, serve } = await worldOf([said('because of scattering'), said('because of scattering'), said('quiz')])
    const tenant = withCache({ checkRatio: 1 })
    for (let i = 0; i < 3; i++) await serve(asking('why is the sky blue', { tenant }))
    await world.run()
    const checks = world.entries.filter((entry) => entry.kind === 'answer-checked')
    expect(checks).toMatchObject([
      { isSame: true, likeness: 1 },
      { isSame: false, tenantId: 'acme' },
    ])
    const lookups = world.entries.filter((entry) => entry.kind === 'answer-looked-up')
    expect(lookups.map(({ outcome }) => outcome)).toEqual(['miss', 'checked', 'checked'])
  })
})
