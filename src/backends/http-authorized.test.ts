import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { answers, FakeUpstream, fails } from '../../test/support/fake-upstream.ts'
import { callOpenAi } from '../../test/support/openai-call.ts'
import { Cancellation } from '../base/cancellation.ts'
import type { CloudCredential } from '../wire/cloud-credential.ts'
import { CredentialError, FRESH_CREDENTIAL, FreshCredential } from './fresh-credential.ts'
import { bearerAuthorizer } from './http-authorized.ts'
import { HttpOpenAiBackend } from './http-openai.ts'

const replica = { id: 'r-0', poolId: 'p', model: 'm', releaseId: 'm@1', region: 'local' }

let upstream: FakeUpstream
let now = 0
/** What the source gives, in order; the last one stays. */
let source: Array<() => Promise<CloudCredential>>
let fetchCount = 0
let credential: FreshCredential

const token =
  (word: string, endsAtMs = Number.POSITIVE_INFINITY) =>
  (): Promise<CloudCredential> =>
    Promise.resolve({
      kind: 'token',
      token: word,
      endsAtMs: endsAtMs === Number.POSITIVE_INFINITY ? undefined : endsAtMs,
    })
const FIRST = 'first-secret-token'
const SECOND = 'second-secret-token'

/** Only this token is good. */
const accept = (good: string): void => {
  upstream.guard = ({ headers }) =>
    headers.authorization === `Bearer ${good}`
      ? undefined
      : fails(401, { error: { message: `${headers.authorization}` } })
}
const options = () => ({ authorizer: bearerAuthorizer(credential) })
const call = (behaviour = answers()) => callOpenAi(upstream, behaviour, options())
const sentTokens = (): unknown[] => upstream.seen.map(({ headers }) => headers.authorization)

beforeEach(async () => {
  upstream = await FakeUpstream.start()
  now = 1_000_000
  fetchCount = 0
  source = [token(FIRST), token(SECOND)]
  credential = new FreshCredential({
    now: () => now,
    after: () => () => {},
    fetch: () => {
      fetchCount++
      return (source.length > 1 ? source.shift()! : source[0]!)()
    },
  })
})
afterEach(() => upstream.close())

describe('a token that ends', () => {
  it('is sent with every call, and the next one when its end is near', async () => {
    source = [token(FIRST, now + 100_000), token(SECOND)]
    expect((await call()).ending.kind).toBe('finished')
    now += 95_000
    expect((await call()).ending.kind).toBe('finished')
    expect(sentTokens()).toEqual([`Bearer ${FIRST}`, `Bearer ${SECOND}`])
  })

  it('does not end an answer that has begun', async () => {
    source = [token(FIRST, now + 100_000), token(SECOND)]
    const long = call(answers({ everyMs: 3 }))
    await new Promise<void>((resolve) => {
      const look = (): unknown => (upstream.seen.length > 0 ? resolve() : setTimeout(look, 1))
      look()
    })
    now += 200_000
    accept(SECOND)
    expect((await call()).ending.kind).toBe('finished')
    expect((await long).ending.kind).toBe('finished')
  })
})

describe('a token that is refused', () => {
  it('is replaced, and the call is made once more', async () => {
    await call()
    accept(SECOND)
    now += FRESH_CREDENTIAL.replaceMs
    const { ending, deltas } = await call()
    expect(ending.kind).toBe('finished')
    expect(deltas.length).toBeGreaterThan(1)
    expect(sentTokens()).toEqual([`Bearer ${FIRST}`, `Bearer ${FIRST}`, `Bearer ${SECOND}`])
    expect(fetchCount).toBe(2)
  })

  it('stands when the next one is refused too, whose words nobody hears', async () => {
    await call()
    accept('another')
    now += FRESH_CREDENTIAL.replaceMs
    const { ending } = await call()
    expect(ending).toMatchObject({ kind: 'refused', refusal: { code: 'replica-denied', blame: 'platform' } })
    expect(JSON.stringify(ending)).not.toContain('secret')
    // The source is not asked for every call that such a server refuses.
    for (let i = 0; i < 5; i++) expect((await call()).ending.kind).toBe('refused')
    expect(fetchCount).toBe(2)
    expect(upstream.seen).toHaveLength(1 + 2 + 5)
  })

  it('is hidden where the server quotes it, the one before too', async () => {
    await call()
    now += FRESH_CREDENTIAL.unstatedMs
    await call()
    await call()
    const { ending } = await call(fails(400, { error: { message: `${FIRST} or ${SECOND}?` } }))
    expect(ending).toMatchObject({ refusal: { told: { error: { message: '[redacted] or [redacted]?' } } } })
  })
})

describe('what else a cloud says', () => {
  it.each([
    [403, { kind: 'refused', refusal: { code: 'replica-denied' } }],
    [429, { kind: 'refused', refusal: { code: 'replica-refused', retryAfterUs: 7_000_000 } }],
    [424, { kind: 'lost' }],
    [503, { kind: 'refused', refusal: { code: 'replica-refused' } }],
  ])('%i is no matter of the token', async (status, wanted) => {
    const { ending } = await call(fails(status, { error: { message: 'no' } }, { 'retry-after': '7' }))
    expect(ending).toMatchObject(wanted)
    expect(fetchCount).toBe(1)
    expect(upstream.seen).toHaveLength(1)
  })
})

describe('without a token', () => {
  it('a call is lost, a probe is not ready, and both say why', async () => {
    source = [() => Promise.reject(new CredentialError('the command gcloud is not installed'))]
    expect((await call()).ending).toEqual({
      kind: 'lost',
      because: 'there is no credential for the engine: the command gcloud is not installed',
    })
    const backend = new HttpOpenAiBackend({ url: upstream.url, upstreamModel: undefined, ...options() })
    const { isReady, because } = await backend.probe(replica)
    expect([isReady, because]).toEqual([false, expect.stringContaining('the command gcloud is not installed')])
    await backend.close()
    expect(upstream.seen).toEqual([])
  })

  it('keys for signing are not sent as one', async () => {
    const keys = {
      kind: 'keys',
      accessKeyId: 'a',
      secretKey: 'b',
      sessionToken: undefined,
      endsAtMs: undefined,
    } as const
    source = [() => Promise.resolve(keys)]
    expect((await call()).ending).toMatchObject({ kind: 'lost', because: expect.stringContaining('takes a token') })
  })

  it('a client that leaves ends the call at once, and nothing is sent later', async () => {
    let give = (): void => {}
    source = [
      () =>
        new Promise((resolve) => {
          give = () => resolve({ kind: 'token', token: FIRST, endsAtMs: undefined })
        }),
    ]
    const cancellation = new Cancellation()
    const called = callOpenAi(upstream, answers(), options(), {}, {}, undefined, cancellation)
    cancellation.cancel('client-gone')
    expect((await called).ending).toEqual({ kind: 'cancelled' })
    give()
    await new Promise(setImmediate)
    expect(upstream.seen).toEqual([])
    expect(upstream.openAnswers).toBe(0)
  })
})

describe('a probe', () => {
  it('shows the token, and the next one where the first is refused', async () => {
    const backend = new HttpOpenAiBackend({ url: upstream.url, upstreamModel: undefined, ...options() })
    accept(FIRST)
    expect(await backend.probe(replica)).toMatchObject({ isReady: true })
    accept(SECOND)
    now += FRESH_CREDENTIAL.replaceMs
    expect(await backend.probe(replica)).toMatchObject({ isReady: true })
    accept('another')
    expect(await backend.probe(replica)).toMatchObject({ isReady: false })
    expect(fetchCount).toBe(2)
    await backend.close()
  })
})
