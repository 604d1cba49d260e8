import { KeyObject, sign } from 'node:crypto'
import fc from 'fast-check'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  AUDIENCE,
  encoded,
  ISSUER,
  issuerTerms,
  makeSigningKey,
  type SigningKey,
  TokenIssuer,
} from '../../test/support/token-issuer.ts'
import { secondsToUs, usToMs } from '../base/clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import { OidcTokenVerifier } from './oidc-token-verifier.ts'

/** Our check of tokens against that of a library (`jose`): what we accept it accepts, and what it accepts we do. */

const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
const NOW_S = 1_800_000_000

const clock = new VirtualClock(secondsToUs(NOW_S))
const issuer = new TokenIssuer(() => clock.now())
const keys = new Map<string, SigningKey>()

beforeAll(async () => {
  for (const alg of ALGORITHMS) keys.set(alg, await makeSigningKey(`key-${alg}`, alg))
}, 60_000)

async function verifierOf(published: readonly unknown[], algorithms = ALGORITHMS): Promise<OidcTokenVerifier> {
  issuer.published = [...published]
  const verifier = new OidcTokenVerifier({
    issuers: [issuerTerms({ algorithms })],
    sourceOf: () => issuer,
    clock,
    complain: () => {},
  })
  await verifier.start()
  return verifier
}

async function isGoodByLibrary(token: string, published: readonly unknown[]): Promise<boolean> {
  try {
    await jwtVerify(token, createLocalJWKSet({ keys: published as never }), {
      algorithms: ALGORITHMS,
      issuer: ISSUER,
      audience: AUDIENCE,
      clockTolerance: 60,
      currentDate: new Date(usToMs(clock.now())),
      requiredClaims: ['exp', 'sub'],
    })
    return true
  } catch {
    return false
  }
}

const isGood = async (verifier: OidcTokenVerifier, token: string) => (await verifier.verify(token))?.kind === 'known'
const published = () => [...keys.values()].map(({ jwk }) => jwk)
const keyOf = (alg: string) => keys.get(alg) as SigningKey

describe('every algorithm', () => {
  it.each(ALGORITHMS)('%s: the library’s signature is right, and wrong with any bit of it changed', async (alg) => {
    const verifier = await verifierOf(published())
    const token = await issuer.sign(keyOf(alg))
    expect(await isGood(verifier, token)).toBe(true)
    const [head, body, tail] = token.split('.') as [string, string, string]
    const bytes = Buffer.from(tail, 'base64url')
    for (const at of [0, bytes.length >> 1, bytes.length - 1]) {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] as number) ^ 1
      expect(await verifier.verify(`${head}.${body}.${changed.toString('base64url')}`)).toMatchObject({
        kind: 'refused',
      })
    }
    for (const length of [0, 1, bytes.length - 1])
      expect(await isGood(verifier, `${head}.${body}.${encoded(bytes.subarray(0, length).toString('latin1'))}`)).toBe(
        false,
      )
    verifier.close()
  })

  it('counts only where it is allowed, and only for a key that is for it', async () => {
    for (const named of ALGORITHMS) {
      const others = ALGORITHMS.filter((alg) => alg !== named)
      const without = await verifierOf(published(), others)
      expect(await isGood(without, await issuer.sign(keyOf(named)))).toBe(false)
      without.close()
    }
    const verifier = await verifierOf(published())
    for (const [named, other] of [
      ['RS256', 'PS256'],
      ['PS256', 'RS256'],
      ['RS256', 'RS512'],
    ] as const) {
      const { privateKey } = await makeSigningKey('x', other)
      const token = await issuer.sign({ ...keyOf(named), alg: other, privateKey })
      expect(await isGood(verifier, token)).toBe(false)
    }
    verifier.close()
  })
})

describe('a key', () => {
  const without = (jwk: object, more: object) => ({ ...jwk, ...more })
  it.each([
    ['without a use and an algorithm', { use: undefined, alg: undefined }, true],
    ['for encryption', { use: 'enc' }, false],
    ['for other operations', { key_ops: ['encrypt'] }, false],
    ['for verifying', { key_ops: ['verify'] }, true],
    ['for another algorithm', { alg: 'ES384' }, false],
    ['with another id', { kid: 'other' }, false],
    ['of another curve', { crv: 'P-384' }, false],
    ['that is private', { d: 'AAAA' }, false],
  ])('%s: as the library has it', async (_, more, good) => {
    const set = [JSON.parse(JSON.stringify(without(keyOf('ES256').jwk, more))), keyOf('RS256').jwk]
    const verifier = await verifierOf(set)
    const token = await issuer.sign(keyOf('ES256'))
    expect([await isGood(verifier, token), await isGoodByLibrary(token, set)]).toEqual([good, good])
    verifier.close()
  })

  it('is found without an id where only one fits, and not where two do', async () => {
    const other = await makeSigningKey('other')
    const token = await issuer.sign(keyOf('ES256'), {}, { kid: undefined })
    for (const [set, good] of [
      [[keyOf('ES256').jwk, keyOf('RS256').jwk], true],
      [[keyOf('ES256').jwk, other.jwk], false],
    ] as const) {
      const verifier = await verifierOf(set)
      expect([await isGood(verifier, token), await isGoodByLibrary(token, set)]).toEqual([good, good])
      verifier.close()
    }
  })
})

describe('any token', () => {
  const time = fc.oneof(
    fc.integer({ min: NOW_S - 62, max: NOW_S - 58 }),
    fc.integer({ min: NOW_S + 58, max: NOW_S + 62 }),
    fc.constantFrom<unknown>(undefined, '1', null, NOW_S, 0, -1, NOW_S + 0.5, 1e15),
  )
  const changes = {
    iss: fc.constantFrom<unknown>(ISSUER, `${ISSUER}/`, [ISSUER], undefined),
    aud: fc.constantFrom<unknown>(AUDIENCE, [AUDIENCE], ['x', AUDIENCE], 'x', [], undefined, null, [[AUDIENCE]]),
    exp: time,
    nbf: time,
    iat: fc.constantFrom<unknown>(NOW_S, undefined, 'x'),
    sub: fc.constantFrom<unknown>('ada', 'bob'),
    alg: fc.constantFrom<unknown>('ES256', 'RS256', 'none', 'HS256', 'es256', undefined, 7),
    kid: fc.constantFrom<unknown>('key-ES256', 'key-RS256', 'x', undefined),
    typ: fc.constantFrom<unknown>('JWT', 'at+jwt', undefined),
    crit: fc.constantFrom<unknown>(undefined, ['exp'], [], 'x'),
  }
  const names = Object.keys(changes) as (keyof typeof changes)[]
  /** At most three parts of a good token are changed: with more, nearly all are bad for several reasons. */
  const changed = fc
    .uniqueArray(fc.constantFrom(...names), { maxLength: 3 })
    .chain((some) => fc.record(Object.fromEntries(some.map((name) => [name, changes[name]]))))

  it('is good here if it is good there, and only then', async () => {
    const set = published()
    const verifier = await verifierOf(set)
    const key = KeyObject.from(keyOf('ES256').privateKey as Parameters<typeof KeyObject.from>[0])
    let goodCount = 0
    const property = fc.asyncProperty(changed, async (change) => {
      const good = { iss: ISSUER, aud: AUDIENCE, sub: 'ada', exp: NOW_S + 300, alg: 'ES256', kid: 'key-ES256' }
      const { alg, kid, typ, crit, ...claims } = { ...good, ...change } as Record<string, unknown>
      const head = `${encoded({ alg, kid, typ, crit })}.${encoded({ ...claims, tenant: 'acme' })}`
      const token = `${head}.${sign('sha256', Buffer.from(head), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
      const here = await isGood(verifier, token)
      if (here) goodCount++
      expect(here).toBe(await isGoodByLibrary(token, set))
    })
    await fc.assert(property, { numRuns: 600, seed: 13 })
    expect(goodCount).toBeGreaterThan(100)
    expect(goodCount).toBeLessThan(500)
    verifier.close()
  })
})
