import type { IssuerTerms } from '../domain/identity.ts'
import { SigningKeys } from './signing-keys.ts'

/** Where an issuer's keys are, and what may be taken for a set of keys. */
export interface KeySource {
  /** One bounded GET, with a time limit; rejects with words for the operator. Redirects are not followed. */
  fetchText(url: string): Promise<string>
  /** What is wrong with an address that an issuer names; undefined when it may be called. */
  addressProblem(url: string): string | undefined
}

/** A published set of keys, ready for use. */
export interface KeySet {
  readonly keys: SigningKeys
  /** Each key as text, to see which ones have gone. */
  readonly names: ReadonlySet<string>
}

/** Issuers publish two to ten keys. */
const KEYS_MAX = 100

/** The issuer's keys as published now; rejects when there are none to be had. */
export async function readKeys(source: KeySource, terms: IssuerTerms): Promise<KeySet> {
  const url = terms.jwksUrl ?? (await discoverKeys(source, terms.issuer))
  const document = asObject(await source.fetchText(url))
  const jwks = Array.isArray(document?.['keys']) ? (document['keys'] as unknown[]) : []
  if (jwks.length > KEYS_MAX) throw new Error(`${url} has ${jwks.length} keys, more than ${KEYS_MAX}`)
  const keys = new SigningKeys(jwks)
  // An issuer without keys has signed nothing: what came is not its set of keys, whatever the status said.
  if (keys.count === 0) throw new Error(`${url} has no keys for signatures ("keys": [...]). Correct jwksUrl`)
  return { keys, names: new Set(jwks.map((jwk) => JSON.stringify(jwk))) }
}

/** OpenID Connect Discovery 1.0, 4: the document must name the issuer itself, and says where its keys are. */
async function discoverKeys(source: KeySource, issuer: string): Promise<string> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const document = asObject(await source.fetchText(url))
  if (document?.['issuer'] !== issuer)
    throw new Error(`${url} does not name the issuer ${issuer}. Copy the issuer from there, letter for letter`)
  const { jwks_uri: jwksUrl } = document
  if (typeof jwksUrl !== 'string') throw new Error(`${url} has no jwks_uri. Set jwksUrl`)
  const problem = source.addressProblem(jwksUrl)
  if (problem !== undefined) throw new Error(`the jwks_uri of ${url} ${problem}`)
  return jwksUrl
}

function asObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined
  } catch {
    return undefined
  }
}
