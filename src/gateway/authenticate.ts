import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Key, Tenant } from '../domain/tenant.ts'
import type { KeyCode, ToldRefusal } from './error-table.ts'

/**
 * Who is calling? Keys are known only by their SHA-256: a reader of the configuration or of a memory dump cannot
 * call with it. The hash of a presented key is looked up, so comparing takes no longer for a near miss.
 */
export interface Caller {
  readonly tenant: Tenant
  readonly key: Key
  /** The region that sent the request on, and how often it was sent on. */
  readonly sentOn?: { readonly origin: string; readonly hops: number }
}

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
}

/** A request that may have a key, and what wants to know whether the key is valid. */
export interface KeyBearer {
  readonly req: { readonly headers: IncomingHttpHeaders }
  readonly visit?: { noteKey(isValid: boolean): void } | undefined
}

/** A longer bearer token is not one of ours: strangers must not make us hash megabytes. */
const TOKEN_LENGTH_MAX = 512

export function authenticate(directory: KeyDirectory, bearer: KeyBearer): Caller | undefined {
  const digest = digestOfBearer(bearer)
  if (digest === undefined) return undefined
  const caller = directory.byHash(digest)
  bearer.visit?.noteKey(caller !== undefined)
  return caller
}

/** The digest of the request's key; undefined when it has none. */
export function digestOfBearer({ req }: KeyBearer): string | undefined {
  const token = tokenOf(req.headers.authorization)
  return token === undefined ? undefined : digestOf(token)
}

/** The token as nearly every client sends it, or as HTTP allows it. */
export function tokenOf(authorization: string | undefined): string | undefined {
  if (authorization === undefined || authorization.length > TOKEN_LENGTH_MAX) return undefined
  if (authorization.startsWith('Bearer ') && !authorization.includes(' ', 7)) return authorization.slice(7)
  return /^bearer +(\S+) *$/i.exec(authorization)?.[1]
}

/**
 * A client with its own key, or a peer that acts for a tenant. Only peers may name a tenant: any other key that does is
 * refused, because a gateway that calls with an ordinary key would run everybody's requests under one tenant, unnoticed.
 */
export function identify(directory: KeyDirectory & PeerDirectory, bearer: KeyBearer): Caller | ToldRefusal<KeyCode> {
  const digest = digestOfBearer(bearer)
  if (digest === undefined) return NO_VALID_KEY
  const { headers } = bearer.req
  const peer = directory.peerByHash(digest)
  const own = peer === undefined ? directory.byHash(digest) : undefined
  bearer.visit?.noteKey(peer !== undefined || own !== undefined)
  const tenantId = headers['x-spillway-tenant']
  if (peer === undefined) {
    if (own === undefined) return NO_VALID_KEY
    return tenantId === undefined ? own : NOT_A_PEER
  }
  const caller = typeof tenantId === 'string' ? directory.onBehalf(peer, tenantId) : undefined
  if (caller === undefined) return NO_SUCH_TENANT
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
