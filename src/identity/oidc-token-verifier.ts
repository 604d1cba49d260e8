import { hash } from 'node:crypto'
import { ChurningMap } from '../base/churning-map.ts'
import type { Clock, Instant } from '../base/clock.ts'
import type { IssuerTerms, TokenFinding } from '../domain/identity.ts'
import { claimProblem, expiryOf } from './check-claims.ts'
import { identityOf } from './claims-to-identity.ts'
import { IssuerKeys } from './issuer-keys.ts'
import { type ParsedToken, parseToken } from './parse-token.ts'
import type { KeySource } from './read-keys.ts'
import type { SignatureFinding } from './signing-keys.ts'

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

/** About 500 bytes each: 5 MB. A token beyond that is verified each time, at 0.1 ms. */
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
    const parsed = parseToken(token)
    if (parsed === undefined) return undefined
    // Not verified yet: the name only chooses whose keys must fit.
    const issuer = this.#issuers.get(parsed.claims['iss'] as string)
    if (issuer === undefined) return refused('comes from an issuer that is not known here')
    const finding = this.#check(parsed, digest, issuer)
    return finding === 'unknown-key' ? this.#checkAgain(parsed, digest, issuer) : finding
  }

  /** The signature first, so that nobody learns what we think of claims that anybody could have written. */
  #check(token: ParsedToken, digest: string, { terms, keys }: Issuer): TokenFinding | 'unknown-key' {
    const { set, epoch } = keys
    if (set === undefined) return 'unknown-key'
    const signature = set.keys.check(token, terms.algorithms)
    if (signature === 'unknown-key') return signature
    if (signature !== 'right') return refused(WRONG_SIGNATURE[signature])
    const problem = claimProblem(token, terms, this.#clock.now())
    if (problem !== undefined) return refused(problem)
    const finding = identityOf(token.claims, terms)
    if (finding.kind === 'known') this.#remember(digest, { finding, keys, epoch, endsAt: expiryOf(token, terms) })
    return finding
  }

  /** With the keys that the issuer publishes now, if they may be asked for. */
  async #checkAgain(token: ParsedToken, digest: string, issuer: Issuer): Promise<TokenFinding> {
    await issuer.keys.seek()
    if (issuer.keys.set === undefined) return unchecked(issuer.terms.issuerId)
    const finding = this.#check(token, digest, issuer)
    return finding === 'unknown-key' ? refused('is signed with a key that its issuer does not publish') : finding
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

/** Words for the client, which quote nothing of the token: its claims are nobody else's business. */
const WRONG_SIGNATURE: Readonly<Record<Exclude<SignatureFinding, 'right' | 'unknown-key'>, string>> = {
  wrong: 'has a wrong signature',
  malformed: 'is malformed',
  'ambiguous-key': 'does not say which of the issuer’s keys it is signed with',
  'algorithm-not-allowed': 'is signed with an algorithm that is not allowed (`alg`)',
}

const refused = (what: string): TokenFinding => ({ kind: 'refused', because: `The token ${what}.` })

const unchecked = (issuerId: string): TokenFinding => ({
  kind: 'unchecked',
  because: `The keys of the issuer ${issuerId} cannot be read, so the token cannot be checked.`,
})
