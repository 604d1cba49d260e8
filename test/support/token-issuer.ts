import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose'
import { secondsToUs } from '../../src/base/clock.ts'
import type { IssuerTerms } from '../../src/domain/identity.ts'
import type { KeySource } from '../../src/identity/read-keys.ts'

/** An issuer in memory: it signs anything with any of its keys, publishes what a test wants, and counts who asks. */
export const ISSUER = 'https://login.example/realm'
export const AUDIENCE = 'spillway'
const JWKS_URL = 'https://login.example/keys'

export type SigningKey = Awaited<ReturnType<typeof makeSigningKey>>

export async function makeSigningKey(kid: string, alg = 'ES256') {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  const jwk: JWK = { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' }
  return { kid, alg, privateKey, publicKey, jwk }
}

export class TokenIssuer implements KeySource {
  published: unknown[] = []
  isDown = false
  readonly asked: string[] = []
  readonly now: () => number

  /** `now`: the clock of the verifier, in microseconds. */
  constructor(now: () => number) {
    this.now = now
  }

  async fetchText(url: string): Promise<string> {
    this.asked.push(url)
    if (this.isDown) throw new Error(`${url} answered ECONNREFUSED`)
    if (url.endsWith('/.well-known/openid-configuration')) return JSON.stringify({ issuer: ISSUER, jwks_uri: JWKS_URL })
    return JSON.stringify({ keys: this.published })
  }

  addressProblem(): undefined {
    return undefined
  }

  /** Valid for five minutes, unless the claims say otherwise. */
  sign(key: SigningKey, claims: JWTPayload = {}, header: Record<string, unknown> = {}): Promise<string> {
    const nowS = Math.floor(this.now() / secondsToUs(1))
    return new SignJWT({ iss: ISSUER, aud: AUDIENCE, sub: 'ada', tenant: 'acme', exp: nowS + 300, ...claims })
      .setProtectedHeader({ alg: key.alg, kid: key.kid, ...header })
      .sign(key.privateKey)
  }
}

export function issuerTerms(more: Partial<IssuerTerms> = {}): IssuerTerms {
  return {
    issuerId: 'corp',
    issuer: ISSUER,
    audiences: [AUDIENCE],
    jwksUrl: JWKS_URL,
    algorithms: ['RS256', 'ES256'],
    leewayUs: secondsToUs(60),
    refreshUs: secondsToUs(300),
    tenantClaim: 'tenant',
    roles: new Map(),
    allowance: {},
    ...more,
  }
}

/** A token of any parts, signed by nobody. */
export const rawToken = (header: unknown, payload: unknown, signature = ''): string =>
  `${encoded(header)}.${encoded(payload)}.${signature}`

export const encoded = (part: unknown): string =>
  Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url')
