import { hash } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader, errors, jwtVerify } from 'jose'
import { ChurningMap } from '../base/churning-map.ts'
import { type Clock, type Instant, secondsToUs, usToMs, usToSeconds } from '../base/clock.ts'
import type { IssuerTerms, TokenFinding } from '../domain/identity.ts'
import { type Claims, identityOf } from './claims-to-identity.ts'
import { IssuerKeys } from './issuer-keys.ts'
import type { KeySource } from './read-keys.ts'

/**
 * Whose token is this? A token names its issuer; only that issuer's keys, algorithms and audiences then count, so no
 * issuer can speak for another. A token that proved right is remembered by its hash until it expires, or until its
 * issuer takes back a key: the answer is then there at once. Wrong tokens are not remembered: that would let strangers
 * fill the memory.
 */
export interface TokenVerifierOptions {
  readonly issuers: readonly IssuerTerms[]
  readonly sourceOf: (terms: IssuerTerms) => KeySource
  readonly clock: Clock
  readonly complain: (problem: string) => void
  readonly rememberedMax?: number
}

/** About 500 bytes each: 5 MB. A token beyond that is verified each time, at 0.1 to 0.2 ms. */
const REMEMBERED_MAX = 10_000

interface Issuer {
  readonly terms: IssuerTerms
  readonly keys: IssuerKeys
}

interface Remembered {
  readonly finding: TokenFinding
  readonly keys: IssuerKeys
  readonly epoch: number
  readonly endsAt: Instant
}

/** Tokens for APIs, and tokens that do not say what they are. Those for other uses (`logout+jwt`) say so. */
const TYPES: ReadonlySet<unknown> = new Set([undefined, 'jwt', 'at+jwt', 'application/at+jwt', 'application/jwt'])

export class OidcTokenVerifier {
  readonly #issuers: ReadonlyMap<string, Issuer>
  readonly #clock: Clock
  readonly #remembered = new ChurningMap<string, Remembered>()
  readonly #rememberedMax: number

  constructor({ issuers, sourceOf, clock, complain, rememberedMax = REMEMBERED_MAX }: TokenVerifierOptions) {
    this.#clock = clock
    this.#rememberedMax = rememberedMax
    this.#issuers = new Map(
      issuers.map((terms) => {
        const keys = new IssuerKeys({ terms, source: sourceOf(terms), clock, complain })
        return [terms.issuer, { terms, keys }]
      }),
    )
  }

  /** For tests: tokens that are remembered. */
  get rememberedCount(): number {
    return this.#remembered.size
  }

  async start(): Promise<void> {
    await Promise.all([...this.#issuers.values()].map(({ keys }) => keys.start()))
  }

  close(): void {
    for (const { keys } of this.#issuers.values()) keys.close()
  }

  /** Undefined: this is no token at all, though it may look like one. */
  verify(token: string): TokenFinding | undefined | Promise<TokenFinding> {
    const digest = hash('sha256', token, 'base64')
    const known = this.#remembered.get(digest)
    if (known !== undefined) {
      if (known.epoch === known.keys.epoch && this.#clock.now() < known.endsAt) return known.finding
      this.#remembered.delete(digest)
    }
    const name = issuerNamedIn(token)
    if (name === undefined) return undefined
    const issuer = name.issuer === undefined ? undefined : this.#issuers.get(name.issuer)
    if (issuer === undefined) return refused('comes from an issuer that is not known here')
    return this.#check(token, digest, issuer)
  }

  async #check(token: string, digest: string, issuer: Issuer): Promise<TokenFinding> {
    const { terms, keys } = issuer
    if (keys.set === undefined) await keys.seek()
    const before = keys.set
    if (before === undefined) return unchecked(terms.issuerId)
    const finding = await this.#checkWith(token, digest, issuer)
    if (finding !== 'unknown-key') return finding
    await keys.seek()
    if (keys.set === before) return NO_SUCH_KEY
    const again = await this.#checkWith(token, digest, issuer)
    return again === 'unknown-key' ? NO_SUCH_KEY : again
  }

  async #checkWith(token: string, digest: string, { terms, keys }: Issuer): Promise<TokenFinding | 'unknown-key'> {
    const { set, epoch } = keys
    if (set === undefined) return unchecked(terms.issuerId)
    const now = this.#clock.now()
    try {
      const { payload, protectedHeader } = await jwtVerify(token, set.keyFor, {
        algorithms: [...terms.algorithms],
        issuer: terms.issuer,
        audience: [...terms.audiences],
        clockTolerance: usToSeconds(terms.leewayUs),
        currentDate: new Date(usToMs(now)),
        requiredClaims: ['exp'],
      })
      if (!TYPES.has(protectedHeader.typ?.toLowerCase())) return refused('is not for calls of an API (`typ`)')
      const finding = identityOf(payload as Claims, terms)
      const endsAt = secondsToUs(payload.exp as number) + terms.leewayUs
      if (finding.kind === 'known') this.#remember(digest, { finding, keys, epoch, endsAt })
      return finding
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) return 'unknown-key'
      return refused(whatIsWrong(error))
    }
  }

  /** The oldest makes room: it is the next to expire where an issuer gives all tokens the same time. */
  #remember(digest: string, entry: Remembered): void {
    if (this.#remembered.size >= this.#rememberedMax) {
      for (const oldest of this.#remembered.keys()) {
        this.#remembered.delete(oldest)
        break
      }
    }
    this.#remembered.set(digest, entry)
  }
}

/** The issuer that the token names, unverified: it only chooses whose keys must fit. */
function issuerNamedIn(token: string): { readonly issuer: string | undefined } | undefined {
  try {
    decodeProtectedHeader(token)
    return { issuer: decodeJwt(token).iss }
  } catch {
    return undefined
  }
}

/** Words for the client. The library's own may quote the token, and its claims are nobody else's business. */
function whatIsWrong(error: unknown): string {
  if (error instanceof errors.JWTExpired) return 'has expired'
  if (error instanceof errors.JOSEAlgNotAllowed) return 'is signed with an algorithm that is not allowed (`alg`)'
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'has a wrong signature'
  if (error instanceof errors.JWKSMultipleMatchingKeys)
    return 'does not say which of the issuer’s keys it is signed with'
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === 'nbf' && error.reason === 'check_failed') return 'is not valid yet (`nbf`)'
    if (error.claim === 'aud') return 'is for another audience (`aud`)'
    if (error.claim === 'exp') return 'has no time of expiry (`exp`)'
    return 'has a claim that is not as it should be'
  }
  return 'is malformed'
}

const refused = (what: string): TokenFinding => ({ kind: 'refused', because: `The token ${what}.` })

const NO_SUCH_KEY = refused('is signed with a key that its issuer does not publish')

const unchecked = (issuerId: string): TokenFinding => ({
  kind: 'unchecked',
  because: `The keys of the issuer ${issuerId} cannot be read, so the token cannot be checked.`,
})
