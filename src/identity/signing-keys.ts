import { constants, createPublicKey, verify } from 'node:crypto'
import type { ParsedToken } from './parse-token.ts'

/**
 * An issuer's published keys (RFC 7517), and the check of a signature with them. The algorithm that a token names only
 * counts if the issuer's terms allow it, and it must fit the key: its type, its curve, and what the key says it is for.
 * Only algorithms with a public key are known here; `none` and HMAC do not exist.
 *
 * Node's own `verify` is synchronous: it takes 30 to 130 µs. A library on Web Crypto was measured with as much of this
 * thread's time for its promises alone, and waits for a thread of the pool besides; tests hold this file against it.
 */
interface Algorithm {
  readonly kty: 'RSA' | 'EC' | 'OKP'
  readonly crv?: string
  readonly digest: string | null
  readonly options: { readonly padding?: number; readonly saltLength?: number; readonly dsaEncoding?: 'ieee-p1363' }
}

const rsa = (digest: string): Algorithm => ({ kty: 'RSA', digest, options: { padding: constants.RSA_PKCS1_PADDING } })
const pss = (digest: string): Algorithm => ({
  kty: 'RSA',
  digest,
  options: { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST },
})
const ecdsa = (digest: string, crv: string): Algorithm => ({
  kty: 'EC',
  crv,
  digest,
  options: { dsaEncoding: 'ieee-p1363' },
})
const ED25519: Algorithm = { kty: 'OKP', crv: 'Ed25519', digest: null, options: {} }

const ALGORITHMS: ReadonlyMap<string, Algorithm> = new Map([
  ['RS256', rsa('sha256')],
  ['RS384', rsa('sha384')],
  ['RS512', rsa('sha512')],
  ['PS256', pss('sha256')],
  ['PS384', pss('sha384')],
  ['PS512', pss('sha512')],
  ['ES256', ecdsa('sha256', 'P-256')],
  ['ES384', ecdsa('sha384', 'P-384')],
  ['ES512', ecdsa('sha512', 'P-521')],
  ['EdDSA', ED25519],
  ['Ed25519', ED25519],
])

/** RFC 7518, 3.3: shorter keys must not be used. */
const RSA_BITS_MIN = 2_048

interface SigningKey {
  readonly jwk: Readonly<Record<string, unknown>>
  readonly publicKey: ReturnType<typeof createPublicKey>
}

export class SigningKeys {
  readonly #keys: readonly SigningKey[]

  /** Keys that are not for signatures, or not to be read, are left out: issuers publish keys for other uses too. */
  constructor(jwks: readonly unknown[]) {
    this.#keys = jwks.flatMap((jwk) => importKey(jwk) ?? [])
  }

  get count(): number {
    return this.#keys.length
  }

  /** Whether the signature is right; the algorithm must be one of those that are allowed. */
  check({ header, signed, signature }: ParsedToken, allowed: readonly string[]): SignatureFinding {
    const { alg, kid } = header
    if (typeof alg !== 'string' || !allowed.includes(alg)) return 'algorithm-not-allowed'
    const algorithm = ALGORITHMS.get(alg)
    if (algorithm === undefined) return 'algorithm-not-allowed'
    // RFC 7515, 4.1.11: an extension that must be understood and is not. None is understood here.
    if (header['crit'] !== undefined || (kid !== undefined && typeof kid !== 'string')) return 'malformed'
    const fitting = this.#keys.filter(
      ({ jwk }) => isFor(jwk, alg, algorithm) && (kid === undefined || jwk['kid'] === kid),
    )
    const [key] = fitting
    if (key === undefined) return 'unknown-key'
    if (fitting.length > 1) return 'ambiguous-key'
    return isSigned(signed, signature, key, algorithm) ? 'right' : 'wrong'
  }
}

export type SignatureFinding =
  | 'right'
  | 'wrong'
  | 'malformed'
  | 'unknown-key'
  | 'ambiguous-key'
  | 'algorithm-not-allowed'

const isFor = (jwk: SigningKey['jwk'], alg: string, { kty, crv }: Algorithm): boolean =>
  jwk['kty'] === kty && (crv === undefined || jwk['crv'] === crv) && (jwk['alg'] === undefined || jwk['alg'] === alg)

function isSigned(signed: Buffer, signature: Buffer, { publicKey }: SigningKey, algorithm: Algorithm): boolean {
  try {
    return verify(algorithm.digest, signed, { key: publicKey, ...algorithm.options }, signature)
  } catch {
    return false
  }
}

function importKey(value: unknown): SigningKey | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const jwk = value as Readonly<Record<string, unknown>>
  const { use, key_ops: uses } = jwk
  if (use !== undefined && use !== 'sig') return undefined
  if (uses !== undefined && !(Array.isArray(uses) && uses.includes('verify'))) return undefined
  // A published private key is everybody's.
  if (jwk['d'] !== undefined) return undefined
  try {
    const publicKey = createPublicKey({ key: { ...jwk }, format: 'jwk' })
    const { modulusLength = RSA_BITS_MIN } = publicKey.asymmetricKeyDetails ?? {}
    return modulusLength < RSA_BITS_MIN ? undefined : { jwk, publicKey }
  } catch {
    return undefined
  }
}
