import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { TokenFinding, TokenIdentity } from '../domain/identity.ts'
import type { CallRoute } from '../domain/key-terms.ts'
import type { Band, Key, Tenant } from '../domain/tenant.ts'
import { fixedRetryUs, type KeyCode, type ToldRefusal } from './error-table.ts'

/**
 * Who is calling? Keys are known only by their SHA-256: a reader of the configuration or of a memory dump cannot
 * call with it. The hash of a presented key is looked up, so comparing takes no longer for a near miss.
 *
 * A token of an issuer (JWT) is checked before its route is called, by a `TokenVerifier`; what was found comes here as
 * the bearer's `proof`. Key and token end in the same `Caller`, so that no budget, share or limit depends on the way in.
 */
export interface Caller {
  readonly tenant: Tenant
  readonly key: Key
  /** Bands of a key that has fewer than its tenant. */
  readonly bands?: readonly Band[]
  /** Models of a key that may not use all of them. */
  readonly models?: readonly string[]
  /** The part of the key's terms that forbids a call; absent where the key has no terms of its own. */
  readonly denial?: (call: CallerCall) => CallerDenial | undefined
  /** The region that sent the request on, and how often it was sent on. */
  readonly sentOn?: { readonly origin: string; readonly hops: number }
}

/** A call as far as it is known: first where it comes from and its route, then its model and band. */
export interface CallerCall {
  /** Asked for by keys with client ranges only. */
  readonly clientAddress: () => string | undefined
  /** Absent where no model is asked and nothing is stored. */
  readonly route?: CallRoute
  /** Public name, aliases resolved. */
  readonly model?: string | undefined
  readonly band?: Band | undefined
}

export type CallerDenial = 'clientRanges' | 'canInfer' | 'routes' | 'models' | 'bands'

/** Another region's gateway, which may act for any tenant by its name. */
export interface Peer {
  readonly region: string
}

export interface PeerDirectory {
  peerByHash(digest: string): Peer | undefined
  /** The tenant on the terms of a request that a peer sent on. */
  onBehalf(peer: Peer, tenantId: string): Caller | undefined
}

export interface KeyDirectory {
  /** The caller behind this hex digest, if there is one. */
  byHash(digest: string): Caller | undefined
  /** Why a key that is known does not count now; undefined when it is not known at all. */
  whyNot?(digest: string): ToldRefusal<KeyCode> | undefined
  /** The key behind this digest was used. */
  noteUse?(digest: string): void
  /** The caller that a verified token speaks for; undefined when it names no tenant of ours. */
  byIdentity(identity: TokenIdentity): Caller | undefined
  /** Why a tenant that is not known here may still be one; undefined when all are known. */
  whyNoTenant?(): ToldRefusal<KeyCode> | undefined
}

/** Checks tokens. What is known is told at once; a token that is new here takes a moment. */
export interface TokenVerifier {
  /** Undefined: no token, though it may look like one. */
  verify(token: string): TokenFinding | undefined | Promise<TokenFinding>
}

/** A request that may have a key, and what wants to know whether the key is valid. */
export interface KeyBearer {
  readonly req: { readonly headers: IncomingHttpHeaders }
  /** `keyId`: whose token it is, where many tokens are one caller. */
  readonly visit?: { noteKey(isValid: boolean, keyId?: string): void } | undefined
  /** What was found out about the request's token; undefined when it has none. */
  readonly proof?: TokenFinding | undefined
  /** The digest of the key that a session of the console was begun with. */
  readonly sessionDigest?: string | undefined
}

/** A longer key is not one of ours: strangers must not make us hash megabytes. */
const KEY_LENGTH_MAX = 512
/** The longest header with a token. Tokens of issuers have 600 to 3,000 letters, with many groups more. */
const TOKEN_LENGTH_MAX = 8_192

export function authenticate(directory: KeyDirectory, bearer: KeyBearer): Caller | ToldRefusal<KeyCode> {
  if (bearer.proof !== undefined) return callerOfToken(directory, bearer, bearer.proof)
  const digest = digestOfBearer(bearer)
  if (digest === undefined) return NO_VALID_KEY
  const caller = directory.byHash(digest)
  return noted(directory, bearer, digest, caller)
}

/** The caller, or why there is none. A wrong key is counted; one that nobody could look up is not. */
function noted(
  directory: KeyDirectory,
  { visit }: KeyBearer,
  digest: string,
  caller: Caller | undefined,
): Caller | ToldRefusal<KeyCode> {
  if (caller !== undefined) directory.noteUse?.(digest)
  const found = caller ?? directory.whyNot?.(digest) ?? NO_VALID_KEY
  if (!('code' in found) || found.blame !== 'platform') visit?.noteKey(!('code' in found))
  return found
}

/** The caller that a token speaks for. A wrong token counts as a wrong key; one that nobody could check does not. */
function callerOfToken(
  directory: KeyDirectory,
  { visit }: KeyBearer,
  proof: TokenFinding,
): Caller | ToldRefusal<KeyCode> {
  const caller = proof.kind === 'known' ? directory.byIdentity(proof.identity) : undefined
  const unread = proof.kind === 'known' && caller === undefined ? directory.whyNoTenant?.() : undefined
  if (unread !== undefined) return unread
  if (proof.kind !== 'unchecked') visit?.noteKey(caller !== undefined, caller?.key.id)
  if (caller !== undefined) return caller
  return proof.kind === 'known' ? NO_TENANT : tokenRefusal(proof)
}

/** What is said of a token that proves nothing. */
function tokenRefusal({ kind, because }: Exclude<TokenFinding, { kind: 'known' }>): ToldRefusal<KeyCode> {
  return kind === 'unchecked'
    ? { code: 'issuer-unavailable', because, blame: 'platform', retryAfterUs: fixedRetryUs('issuer-unavailable') }
    : { code: 'invalid-token', because, blame: 'request', retryAfterUs: undefined }
}

/** Whoever made a job, hours later: by the key's hash, or by whom the token was about. Its terms are asked as for any call. */
export function callerAgain(
  directory: KeyDirectory,
  { digest, identity }: { readonly digest?: string | undefined; readonly identity?: TokenIdentity | undefined },
): Caller | ToldRefusal<KeyCode> {
  if (identity !== undefined) return directory.byIdentity(identity) ?? directory.whyNoTenant?.() ?? NO_TENANT
  if (digest === undefined) return NO_VALID_KEY
  return directory.byHash(digest) ?? directory.whyNot?.(digest) ?? NO_VALID_KEY
}

/** The digest of the request's key; undefined when it has none. */
export function digestOfBearer({ req, sessionDigest }: KeyBearer): string | undefined {
  if (sessionDigest !== undefined) return sessionDigest
  const token = tokenOf(req.headers)
  return token === undefined ? undefined : digestOf(token)
}

/**
 * The key or token of a request. The ingress, the check of tokens and every route ask here and nowhere else, so that
 * all of them see the same caller. A bearer token comes first; without one, Anthropic's `x-api-key` counts, then
 * Azure's `api-key`. The first that is there decides: a wrong one is not made good by a right one behind it.
 */
export function tokenOf(headers: IncomingHttpHeaders): string | undefined {
  const { authorization } = headers
  if (authorization !== undefined && /^bearer /i.test(authorization)) return bearerOf(authorization)
  return keyOf(headers['x-api-key'] ?? headers['api-key'])
}

/** The token as nearly every client sends it, or as HTTP allows it. */
function bearerOf(authorization: string): string | undefined {
  if (authorization.length > TOKEN_LENGTH_MAX) return undefined
  if (authorization.startsWith('Bearer ') && !authorization.includes(' ', 7)) return bounded(authorization.slice(7))
  // A key may have spaces inside: its hash in the configuration is taken from whatever text it is.
  return bounded(/^bearer +(\S(?:.*\S)?) *$/i.exec(authorization)?.[1])
}

/** A header that is the key and nothing else. Node joins two headers of one name with a comma and a space. */
function keyOf(header: string | string[] | undefined): string | undefined {
  if (typeof header !== 'string' || header.length > TOKEN_LENGTH_MAX || !/^\S+$/.test(header)) return undefined
  return bounded(header)
}

const bounded = (token: string | undefined): string | undefined =>
  token === undefined || (token.length > KEY_LENGTH_MAX && !IS_JWT.test(token)) ? undefined : token

/** Three parts in base64url, as every JWT is sent (RFC 7515, 3.1). */
const IS_JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/

/** The token of the request that may be one of an issuer. */
export function jwtOf(headers: IncomingHttpHeaders): string | undefined {
  const token = tokenOf(headers)
  return token !== undefined && IS_JWT.test(token) ? token : undefined
}

/**
 * A client with its own key, or a peer that acts for a tenant. Only peers may name a tenant: any other key that does is
 * refused, because a gateway that calls with an ordinary key would run everybody's requests under one tenant, unnoticed.
 */
export function identify(directory: KeyDirectory & PeerDirectory, bearer: KeyBearer): Caller | ToldRefusal<KeyCode> {
  if (bearer.proof !== undefined) {
    const caller = callerOfToken(directory, bearer, bearer.proof)
    return 'code' in caller || bearer.req.headers['x-spillway-tenant'] === undefined ? caller : NOT_A_PEER
  }
  const digest = digestOfBearer(bearer)
  if (digest === undefined) return NO_VALID_KEY
  const { headers } = bearer.req
  const peer = directory.peerByHash(digest)
  const tenantId = headers['x-spillway-tenant']
  if (peer === undefined) {
    const own = noted(directory, bearer, digest, directory.byHash(digest))
    return 'code' in own || tenantId === undefined ? own : NOT_A_PEER
  }
  bearer.visit?.noteKey(true)
  const caller = typeof tenantId === 'string' ? directory.onBehalf(peer, tenantId) : undefined
  if (caller === undefined) return directory.whyNoTenant?.() ?? NO_SUCH_TENANT
  return { ...caller, sentOn: { origin: originOf(headers) ?? peer.region, hops: hopsOf(headers) } }
}

/** A longer name is not the name of a region. */
const ORIGIN_LENGTH_MAX = 128

function originOf(headers: IncomingHttpHeaders): string | undefined {
  const origin = headers['x-spillway-origin']
  return typeof origin === 'string' && origin !== '' && origin.length <= ORIGIN_LENGTH_MAX ? origin : undefined
}

/** A request from a peer was sent on at least once, whatever its header says. */
function hopsOf(headers: IncomingHttpHeaders): number {
  const hops = Number(headers['x-spillway-hops'])
  return Number.isInteger(hops) && hops > 1 ? hops : 1
}

export function digestOf(token: string): string {
  return hash('sha256', token, 'hex')
}

const NOT_A_PEER: ToldRefusal<KeyCode> = {
  code: 'not-a-peer',
  because: 'This key may not act for another tenant.',
  blame: 'request',
  retryAfterUs: undefined,
}

const NO_TENANT: ToldRefusal<KeyCode> = {
  code: 'token-without-tenant',
  because: 'The token is valid, but names no tenant that is known here.',
  blame: 'request',
  retryAfterUs: undefined,
}

const NO_SUCH_TENANT: ToldRefusal<KeyCode> = {
  code: 'unknown-tenant',
  because: 'The tenant in x-spillway-tenant is not known here.',
  blame: 'request',
  retryAfterUs: undefined,
}

export const NO_VALID_KEY: ToldRefusal<KeyCode> = {
  code: 'invalid-api-key',
  because: 'No valid API key was sent.',
  blame: 'request',
  retryAfterUs: undefined,
}
