import { KeyObject, sign } from 'node:crypto'
import { exportSPKI, type JWTPayload, SignJWT } from 'jose'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  AUDIENCE,
  encoded,
  ISSUER,
  issuerTerms,
  makeSigningKey,
  rawToken,
  type SigningKey,
  TokenIssuer,
} from '../../test/support/token-issuer.ts'
import { secondsToUs } from '../base/clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import { READ_AGAIN_US } from './issuer-keys.ts'
import { OidcTokenVerifier } from './oidc-token-verifier.ts'

const NOW_S = 1_800_000_000

let one: SigningKey
let two: SigningKey
let rsa: SigningKey
beforeAll(async () => {
  ;[one, two, rsa] = await Promise.all([makeSigningKey('one'), makeSigningKey('two'), makeSigningKey('rsa', 'RS256')])
})

let clock: VirtualClock
let issuer: TokenIssuer
let verifier: OidcTokenVerifier
let complaints: string[]

async function start(terms: Parameters<typeof issuerTerms>[0] = {}, rememberedMax = 100): Promise<void> {
  complaints = []
  verifier = new OidcTokenVerifier({
    issuers: [issuerTerms(terms)],
    sourceOf: () => issuer,
    clock,
    complain: (problem) => complaints.push(problem),
    rememberedMax,
  })
  await verifier.start()
}

beforeEach(async () => {
  clock = new VirtualClock(secondsToUs(NOW_S))
  issuer = new TokenIssuer(() => clock.now())
  issuer.published = [one.jwk, rsa.jwk]
  await start()
  return () => verifier.close()
})

const pass = (us: number) => clock.run(clock.now() + us)
const known = { kind: 'known', identity: { issuerId: 'corp', subject: 'ada', tenantId: 'acme' } }
const refusedFor = (because: string) => ({ kind: 'refused', because: expect.stringContaining(because) })

describe('a token', () => {
  it('of either kind of key is accepted, and then remembered: the second time the answer is there at once', async () => {
    for (const key of [one, rsa]) {
      const token = await issuer.sign(key)
      expect(await verifier.verify(token)).toMatchObject(known)
      expect(verifier.verify(token)).toMatchObject(known)
    }
    expect(issuer.asked).toHaveLength(1)
  })

  it.each([
    ['of another issuer', { iss: 'https://evil.example' }, 'an issuer that is not known'],
    ['whose issuer has a slash more', { iss: `${ISSUER}/` }, 'an issuer that is not known'],
    ['without an issuer', { iss: undefined }, 'an issuer that is not known'],
    ['for another audience', { aud: 'other' }, 'another audience'],
    ['for no audience', { aud: undefined }, 'another audience'],
    ['without a time of expiry', { exp: undefined }, 'no time of expiry'],
  ])('%s is refused', async (_, claims, because) => {
    const token = await issuer.sign(one, claims as JWTPayload)
    expect(await verifier.verify(token)).toEqual(refusedFor(because))
    expect(verifier.rememberedCount).toBe(0)
  })

  it('for several audiences is accepted when one of them is ours', async () => {
    expect(await verifier.verify(await issuer.sign(one, { aud: ['other', AUDIENCE] }))).toMatchObject(known)
  })

  it.each([
    ['has expired a leeway ago', { exp: NOW_S - 60 }, 'has expired'],
    ['has expired a moment less than a leeway ago', { exp: NOW_S - 59 }, undefined],
    ['begins a leeway from now', { nbf: NOW_S + 60 }, undefined],
    ['begins a moment later', { nbf: NOW_S + 61 }, 'not valid yet'],
  ])('that %s', async (_, claims, because) => {
    const found = await verifier.verify(await issuer.sign(one, claims))
    if (because === undefined) expect(found).toMatchObject(known)
    else expect(found).toEqual(refusedFor(because))
  })

  it('that is remembered expires all the same, to the second', async () => {
    const token = await issuer.sign(one, { exp: NOW_S + 10 })
    await verifier.verify(token)
    await pass(secondsToUs(70) - 1)
    expect(verifier.verify(token)).toMatchObject(known)
    await pass(1)
    expect(await verifier.verify(token)).toEqual(refusedFor('has expired'))
    expect(verifier.rememberedCount).toBe(0)
  })

  it('is remembered within a bound', async () => {
    verifier.close()
    await start({}, 2)
    const tokens = await Promise.all(['a', 'b', 'c'].map((sub) => issuer.sign(one, { sub })))
    for (const token of tokens) await verifier.verify(token)
    expect(verifier.rememberedCount).toBe(2)
    expect(verifier.verify(tokens[2] as string)).not.toBeInstanceOf(Promise)
    expect(await verifier.verify(tokens[0] as string)).toMatchObject({ kind: 'known', identity: { subject: 'a' } })
  })

  it('whose claim is there twice has the last one, for the check and for the tenant alike', async () => {
    const twice = `{"iss":"https://evil.example","iss":"${ISSUER}","aud":"${AUDIENCE}","sub":"ada","tenant":"globex","tenant":"acme","exp":1,"exp":${NOW_S + 9}}`
    const head = `${encoded({ alg: 'ES256', kid: 'one' })}.${encoded(twice)}`
    const key = KeyObject.from(one.privateKey as Parameters<typeof KeyObject.from>[0])
    const signature = sign('sha256', Buffer.from(head), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')
    expect(await verifier.verify(`${head}.${signature}`)).toMatchObject(known)
  })

  it.each(['logout+jwt', 'dpop+jwt', 'secevent+jwt'])('of the type %s is refused', async (typ) => {
    expect(await verifier.verify(await issuer.sign(one, {}, { typ }))).toEqual(refusedFor('not for calls of an API'))
  })

  it.each(['JWT', 'at+jwt'])('of the type %s is accepted', async (typ) => {
    expect(await verifier.verify(await issuer.sign(one, {}, { typ }))).toMatchObject(known)
  })

  it('that is none is left to others: keys may have dots', () => {
    for (const text of ['a.b.c', 'sk-x.y.z', rawToken('no JSON', {}), rawToken({ alg: 'RS256' }, 'no JSON')])
      expect(verifier.verify(text)).toBeUndefined()
  })
})

describe('a forged token', () => {
  const claims = { iss: ISSUER, aud: AUDIENCE, sub: 'ada', tenant: 'acme', exp: NOW_S + 300 }

  it.each(['none', 'None', 'NONE', 'nOnE'])('with the algorithm %s is refused', async (alg) => {
    for (const signature of ['', 'x']) {
      const found = await verifier.verify(rawToken({ alg, kid: 'one' }, claims, signature))
      expect(found).toEqual(refusedFor('an algorithm that is not allowed'))
    }
  })

  it('signed by HMAC with the public key as the secret is refused, in every form of that key', async () => {
    const pem = await exportSPKI(rsa.publicKey)
    const secrets = [pem, pem.trim(), JSON.stringify(rsa.jwk), rsa.jwk.n as string]
    for (const alg of ['HS256', 'HS384', 'HS512']) {
      for (const secret of secrets) {
        const token = await new SignJWT(claims)
          .setProtectedHeader({ alg, kid: 'rsa' })
          .sign(Buffer.from(secret.padEnd(64, ' ')))
        expect(await verifier.verify(token)).toEqual(refusedFor('an algorithm that is not allowed'))
      }
    }
  })

  it('signed by HMAC is refused even where an issuer publishes a secret as a key', async () => {
    const k = encoded('x'.repeat(64))
    issuer.published = [one.jwk, { kty: 'oct', k, kid: 'secret', alg: 'HS256', use: 'sig' }]
    verifier.close()
    await start({ algorithms: ['HS256', 'ES256'] })
    const token = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid: 'secret' })
      .sign(Buffer.from('x'.repeat(64)))
    expect(await verifier.verify(token)).toEqual(refusedFor('an algorithm that is not allowed'))
  })

  it('with a changed claim, a foreign signature or none is refused', async () => {
    const token = await issuer.sign(one)
    const [head, , signature] = token.split('.') as [string, string, string]
    const changed = `${head}.${encoded({ ...claims, tenant: 'globex' })}.${signature}`
    expect(await verifier.verify(changed)).toEqual(refusedFor('wrong signature'))
    expect(await verifier.verify(`${token.slice(0, token.lastIndexOf('.'))}.`)).toEqual(refusedFor(''))
    const foreign = await issuer.sign({ ...two, kid: 'one' })
    expect(await verifier.verify(foreign)).toEqual(refusedFor('wrong signature'))
  })

  it('whose signature is spelt in another way is refused: it would be remembered once for each spelling', async () => {
    const token = await issuer.sign(one)
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    // The last letter of 64 bytes has two bits of them and four that mean nothing.
    const last = letters[letters.indexOf(token.at(-1) as string) ^ 1] as string
    const respelt = token.slice(0, -1) + last
    const bytes = (text: string) => Buffer.from(text.slice(text.lastIndexOf('.') + 1), 'base64url')
    expect(bytes(respelt)).toEqual(bytes(token))
    expect(await verifier.verify(respelt)).toEqual(refusedFor('wrong signature'))
  })

  it('with its own key in the header is refused: such keys are not looked at', async () => {
    for (const header of [{ jwk: two.jwk }, { jku: 'https://evil.example/keys' }, { x5u: 'https://evil.example/c' }]) {
      const found = await verifier.verify(await issuer.sign({ ...two, kid: 'one' }, {}, header))
      expect(found).toEqual(refusedFor('wrong signature'))
    }
    expect(issuer.asked.every((url) => url.startsWith('https://login.example/'))).toBe(true)
  })

  it.each(['../../etc/passwd', "one' or '1'='1", '__proto__', 'constructor', '', 'one\u0000', 'ONE'])(
    'with the key id %j finds no key, and asks for the same address only',
    async (kid) => {
      const found = await verifier.verify(await issuer.sign({ ...two, kid }))
      expect(found).toEqual(refusedFor('a key that its issuer does not publish'))
      expect(new Set(issuer.asked).size).toBe(1)
    },
  )

  it('with an extension that must be understood is refused', async () => {
    const head = { alg: 'ES256', kid: 'one', crit: ['exp2'], exp2: 1 }
    expect(await verifier.verify(rawToken(head, claims, 'x'))).toEqual(refusedFor('malformed'))
  })

  it('says nothing of what is in it', async () => {
    const secret = 'a-secret-claim'
    const tokens = [
      await issuer.sign(two, { secret }),
      await issuer.sign(one, { aud: secret }),
      await issuer.sign(one, { iss: secret }),
      rawToken({ alg: secret, kid: secret }, claims, 'x'),
      rawToken({ alg: 'ES256', kid: 'one' }, { ...claims, secret }, 'x'),
    ]
    for (const token of tokens) expect(JSON.stringify(await verifier.verify(token))).not.toContain(secret)
  })
})

describe('the keys of an issuer', () => {
  it('are found by discovery, if the issuer names itself', async () => {
    verifier.close()
    const { jwksUrl: _, ...rest } = issuerTerms()
    verifier = new OidcTokenVerifier({ issuers: [rest], sourceOf: () => issuer, clock, complain: () => {} })
    await verifier.start()
    expect(issuer.asked.slice(1)).toEqual([`${ISSUER}/.well-known/openid-configuration`, 'https://login.example/keys'])
    expect(await verifier.verify(await issuer.sign(one))).toMatchObject(known)
  })

  it('are read once for any number of unknown key ids, and then not for a while', async () => {
    const flood = await Promise.all(Array.from({ length: 50 }, (_, i) => issuer.sign({ ...two, kid: `made-up-${i}` })))
    const all = () => Promise.all(flood.map(async (token) => verifier.verify(token)))
    issuer.asked.length = 0
    for (const found of await all()) expect(found).toEqual(refusedFor('a key that its issuer does not publish'))
    await all()
    expect(issuer.asked).toHaveLength(1)
    await pass(READ_AGAIN_US - 1)
    await all()
    expect(issuer.asked).toHaveLength(1)
    await pass(1)
    await all()
    expect(issuer.asked).toHaveLength(2)
  })

  it('rotate without one refusal: a new key is found at once, the old one stays as long as it is published', async () => {
    issuer.published = [one.jwk, two.jwk]
    const tokens = await Promise.all([one, two, one, two].map((key, i) => issuer.sign(key, { sub: `s${i}` })))
    for (const found of await Promise.all(tokens.map(async (token) => verifier.verify(token))))
      expect(found).toMatchObject({ kind: 'known' })
  })

  it('that are taken back are no longer good, not even for remembered tokens', async () => {
    issuer.published = [one.jwk, two.jwk]
    await pass(secondsToUs(300))
    const [old, young] = [
      await issuer.sign(one, { exp: NOW_S + 9_999 }),
      await issuer.sign(two, { exp: NOW_S + 9_999 }),
    ]
    expect(await verifier.verify(old)).toMatchObject(known)
    expect(await verifier.verify(young)).toMatchObject(known)
    issuer.published = [two.jwk]
    await pass(secondsToUs(300))
    expect(await verifier.verify(old)).toEqual(refusedFor('a key that its issuer does not publish'))
    expect(await verifier.verify(young)).toMatchObject(known)
  })

  it('stay in force while the issuer is away, and an answer without keys counts as away', async () => {
    issuer.isDown = true
    await pass(secondsToUs(3_600))
    expect(await verifier.verify(await issuer.sign(one))).toMatchObject(known)
    expect(complaints).toEqual([expect.stringContaining('The known keys stay in force')])
    issuer.isDown = false
    issuer.published = []
    await pass(secondsToUs(300))
    expect(await verifier.verify(await issuer.sign(one, { sub: 'bob' }))).toMatchObject({ kind: 'known' })
    issuer.published = [one.jwk]
    await pass(secondsToUs(300))
    expect(complaints.slice(1)).toEqual([expect.stringContaining('can be read again')])
  })

  it('that were never there leave tokens unchecked, not refused, until the issuer is back', async () => {
    verifier.close()
    issuer.isDown = true
    await start()
    const token = await issuer.sign(one)
    issuer.asked.length = 0
    for (let i = 0; i < 20; i++) expect(await verifier.verify(token)).toMatchObject({ kind: 'unchecked' })
    expect(issuer.asked).toHaveLength(1)
    issuer.isDown = false
    await pass(READ_AGAIN_US)
    expect(await verifier.verify(token)).toMatchObject(known)
  })

  it('are not read after the end', async () => {
    verifier.close()
    issuer.asked.length = 0
    await pass(secondsToUs(3_600))
    expect(issuer.asked).toEqual([])
    expect(clock.pendingCount).toBe(0)
  })

  it('do not count for another issuer', async () => {
    verifier.close()
    const other = new TokenIssuer(() => clock.now())
    other.published = [two.jwk]
    const terms = [issuerTerms(), issuerTerms({ issuerId: 'other', issuer: 'https://other.example' })]
    const sourceOf = ({ issuerId }: { issuerId: string }) => (issuerId === 'other' ? other : issuer)
    verifier = new OidcTokenVerifier({ issuers: terms, sourceOf, clock, complain: () => {} })
    await verifier.start()
    expect(await verifier.verify(await issuer.sign(two))).toMatchObject({ kind: 'refused' })
    const iss = 'https://other.example'
    expect(await verifier.verify(await issuer.sign(two, { iss }))).toMatchObject({
      kind: 'known',
      identity: { issuerId: 'other' },
    })
  })
})

describe('a set of keys', () => {
  it.each([
    ['no JSON', 'hello', 'has no keys'],
    ['no set', '{"keys":7}', 'has no keys'],
    ['too many', JSON.stringify({ keys: Array(101).fill({ kty: 'EC' }) }), '101 keys'],
    ['no keys but numbers', '{"keys":[1]}', 'has no keys'],
    ['secrets', '{"keys":[{"kty":"oct","k":"AAAA"}]}', 'has no keys'],
  ])('that is %s is a failure of the issuer', async (_, text, because) => {
    verifier.close()
    issuer.fetchText = () => Promise.resolve(text)
    await start()
    expect(complaints).toEqual([expect.stringContaining(because)])
  })

  it.each([
    ['names another issuer', { issuer: 'https://evil.example', jwks_uri: 'https://evil.example/k' }, 'does not name'],
    ['names no keys', { issuer: ISSUER }, 'has no jwks_uri'],
    ['names an address that may not be called', { issuer: ISSUER, jwks_uri: 'http://169.254.169.254/' }, 'link-local'],
  ])('is not looked for where the issuer’s document %s', async (_, document, because) => {
    verifier.close()
    const asked: string[] = []
    const { jwksUrl: __, ...terms } = issuerTerms()
    const complain = (problem: string) => complaints.push(problem)
    const source = {
      fetchText(url: string) {
        asked.push(url)
        return Promise.resolve(JSON.stringify(document))
      },
      addressProblem: () => 'is a link-local address',
    }
    verifier = new OidcTokenVerifier({ issuers: [terms], sourceOf: () => source, clock, complain })
    await verifier.start()
    expect(asked).toEqual([`${ISSUER}/.well-known/openid-configuration`])
    expect(complaints).toEqual([expect.stringContaining(because)])
  })
})
