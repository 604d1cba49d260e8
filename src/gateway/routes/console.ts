import type { Clock } from '../../base/clock.ts'
import { secondsToUs } from '../../base/clock.ts'
import { Type } from '../../base/schema.ts'
import { type Checked, makeCheck } from '../../wire/check.ts'
import { invalidRequest } from '../../wire/openai-error.ts'
import { andThen, readStorable } from '../../wire/read-body.ts'
import { type AdminDirectory, NOT_ADMIN } from '../admin-directory.ts'
import { digestOf, digestOfBearer, type KeyDirectory, NO_VALID_KEY } from '../authenticate.ts'
import { sessionCaller } from '../check-call.ts'
import { collectBody } from '../collect-body.ts'
import { ConsoleSessions } from '../console-sessions.ts'
import type { ToldRefusal } from '../error-table.ts'
import type { Exchange } from '../exchange.ts'
import { endsWithServer } from '../http-connections.ts'
import { type Route, RouteTable } from '../http-server.ts'
import { addressGroup } from '../ingress.ts'
import { StaticDocument } from '../static-document.ts'
import { type WhatIfDesk, whatIfRoutes } from './what-if.ts'

/**
 * The console: pages, a session, a feed, and the calls behind its buttons. A session stands for a key, and what it may see
 * and do is what the key may: the calls are those of the admin API and of tenants' own routes, made with the session in
 * the key's place (`/console/api/…`). Nothing is decided here.
 *
 * A page of somebody else can neither read nor press anything: the cookie is SameSite=Strict, writes must come from our
 * own origin, and no answer here has CORS headers. On loopback the Host header must be a name of loopback, so that a
 * name that is made to point here does not open it.
 */
export interface ConsoleDeps {
  readonly clock: Clock
  readonly keys: KeyDirectory
  readonly admins: AdminDirectory
  readonly feed: ConsoleTeller
  readonly files: (name: string) => ConsoleFile | undefined
  /** What sessions are sealed with: the same at every gateway of the cell. */
  readonly secret: () => string
  readonly makeId: () => string
  readonly whatIf: WhatIfDesk
  /** Routes that a session may call. */
  readonly api: readonly Route[]
  readonly basePath: string
  readonly isLoopback: boolean
  readonly isSecure: boolean
}

export interface ConsoleFile {
  readonly type: string
  readonly text: string
  readonly etag: string
}

/** What the feed gives; `tenantId` for a tenant's own view, undefined for an operator's. */
export interface ConsoleTeller {
  snapshot(tenantId: string | undefined): Promise<string>
  history(): Promise<string>
  /** A place at the feed until the returned function is called; undefined when the viewer's places are taken. */
  takePlace(viewer: FeedViewer): (() => void) | undefined
  /** Calls back with every second's message until the returned function is called. */
  watch(tenantId: string | undefined, send: (json: string) => void): () => void
}

export interface FeedViewer {
  /** The key that the viewer came with. */
  readonly name: string
  readonly tenantId: string | undefined
  readonly address: string | undefined
}

const ROOT = '/console'
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
const GUARDS = [
  'content-security-policy',
  POLICY,
  'x-frame-options',
  'DENY',
  'x-content-type-options',
  'nosniff',
  'referrer-policy',
  'no-referrer',
]
const KEY_BYTES_MAX = 4_096
/** Bytes that may wait for a viewer who does not read; then the connection ends, and the browser comes again. */
const WAITING_BYTES_MAX = 1 << 20
const KEEP_ALIVE_US = secondsToUs(15)

interface Viewer {
  readonly digest: string
  readonly name: string
  /** Undefined for an operator. */
  readonly tenantId: string | undefined
}

const SessionBody = Type.Object({ key: Type.String({ minLength: 1, maxLength: 512 }) }, { additionalProperties: false })
const checkSession = makeCheck(SessionBody)

export function consoleRoutes(deps: ConsoleDeps): Route[] {
  const sessions = new ConsoleSessions(deps)
  const table = new RouteTable(deps.api, '')
  const viewerOf = (exchange: Exchange): Viewer | undefined => {
    // A program (`spillway top`) sends its key with each call and has no session.
    const digest = sessions.of(exchange.req.headers.cookie)?.digest ?? digestOfBearer(exchange)
    return digest === undefined ? undefined : whoLooks(deps, exchange, digest)
  }
  const page = (name: string) => (exchange: Exchange) => {
    if (!isOurHost(deps, exchange)) return refuseHost(exchange)
    sendFile(exchange, deps.files(name))
  }
  const guarded = (handle: (exchange: Exchange, viewer: Viewer, rest: string) => Promise<void> | void) => {
    return (exchange: Exchange, rest: string): Promise<void> | void => {
      if (!isOurHost(deps, exchange)) return refuseHost(exchange)
      if (exchange.req.method !== 'GET' && exchange.req.method !== 'HEAD' && !isOurOrigin(exchange))
        return refuseOrigin(exchange)
      const viewer = viewerOf(exchange)
      if (viewer === undefined) return exchange.sendRefusal(NO_VALID_KEY, GUARDS)
      return handle(exchange, viewer, rest)
    }
  }
  const forOperators = (handle: (exchange: Exchange, rest: string) => Promise<void> | void) =>
    guarded((exchange, { tenantId }, rest) => {
      if (tenantId === undefined) return handle(exchange, rest)
      exchange.sendRefusal(NOT_ADMIN, GUARDS)
    })
  const callApi = guarded((exchange, { digest }, rest) => {
    const found = table.find(exchange.req.method === 'HEAD' ? 'GET' : (exchange.req.method ?? 'GET'), `/${rest}`)
    if (found === undefined) {
      exchange.sendFault(invalidRequest(`The console has no call /${rest}.`, null, 'unknown-url'), GUARDS)
      return
    }
    exchange.sessionDigest = digest
    return found.route.handle(exchange, found.rest)
  })
  return [
    { method: 'GET', path: ROOT, handle: page('index.html') },
    { method: 'GET', path: `${ROOT}/session`, handle: guarded((exchange, viewer) => sendViewer(exchange, viewer)) },
    { method: 'POST', path: `${ROOT}/session`, handle: (exchange) => beginSession(deps, sessions, exchange) },
    {
      method: 'DELETE',
      path: `${ROOT}/session`,
      handle: guarded((exchange) => {
        sessions.end(exchange.req.headers.cookie)
        const ended = sessions.cookie('', deps.basePath + ROOT, deps.isSecure)
        exchange.sendJson(200, '{}', [...GUARDS, 'set-cookie', ended])
      }),
    },
    { method: 'GET', path: `${ROOT}/feed`, handle: guarded((exchange, viewer) => sendFeed(deps, exchange, viewer)) },
    {
      method: 'GET',
      path: `${ROOT}/view`,
      handle: guarded(async (exchange, { tenantId }) =>
        exchange.sendJson(200, await deps.feed.snapshot(tenantId), GUARDS),
      ),
    },
    {
      method: 'GET',
      path: `${ROOT}/history`,
      handle: guarded(async (exchange, { tenantId }) => {
        if (tenantId === undefined) exchange.sendJson(200, await deps.feed.history(), GUARDS)
        else exchange.sendJson(200, '[]', GUARDS)
      }),
    },
    ...whatIfRoutes(deps.whatIf, { path: `${ROOT}/whatif`, guards: GUARDS, forOperators }),
    ...(['GET', 'POST', 'DELETE', 'PATCH'] as const).map(
      (method): Route => ({ method, path: `${ROOT}/api/*`, handle: callApi }),
    ),
    {
      method: 'GET',
      path: `${ROOT}/*`,
      handle: (exchange, rest) => {
        if (!isOurHost(deps, exchange)) return refuseHost(exchange)
        sendFile(exchange, deps.files(rest))
      },
    },
  ]
}

async function beginSession(deps: ConsoleDeps, sessions: ConsoleSessions, exchange: Exchange): Promise<void> {
  if (!isOurHost(deps, exchange)) return refuseHost(exchange)
  if (!isOurOrigin(exchange)) return refuseOrigin(exchange)
  const body = await collectBody(exchange, KEY_BYTES_MAX)
  if (body.kind === 'gone') return
  const read: Checked<{ key: string }> = body.kind === 'fault' ? body : andThen(readStorable(body.bytes), checkSession)
  if (read.kind === 'fault') return exchange.sendFault(read.fault, GUARDS)
  const digest = digestOf(read.value.key)
  const viewer = whoLooks(deps, exchange, digest)
  if (viewer === undefined) return exchange.sendRefusal(NO_VALID_KEY, GUARDS)
  const cookie = sessions.cookie(sessions.begin(digest), deps.basePath + ROOT, deps.isSecure)
  sendViewer(exchange, viewer, ['set-cookie', cookie])
}

/** Whose key it is, as it is now: a key that was revoked meanwhile opens nothing. */
function whoLooks({ keys, admins }: ConsoleDeps, exchange: Exchange, digest: string): Viewer | undefined {
  const bearer = { req: exchange.req, visit: exchange.visit, sessionDigest: digest }
  const admin = admins.whoIs(bearer)
  if (typeof admin === 'string') return { digest, name: admin, tenantId: undefined }
  const caller = sessionCaller(exchange, keys, digest)
  return caller && { digest, name: caller.key.id, tenantId: caller.tenant.id }
}

function sendViewer(exchange: Exchange, { name, tenantId }: Viewer, more: readonly string[] = []): void {
  const role = tenantId === undefined ? 'operator' : 'tenant'
  exchange.sendJson(200, JSON.stringify({ name, role, tenant: tenantId ?? null }), [...GUARDS, ...more])
}

async function sendFeed(deps: ConsoleDeps, exchange: Exchange, { name, tenantId }: Viewer): Promise<void> {
  const { feed } = deps
  // The place is taken first, so that a viewer without one costs no snapshot.
  const leave = feed.takePlace({ name, tenantId, address: addressGroup(exchange.clientAddress) })
  if (leave === undefined) return exchange.sendRefusal(NO_PLACE, GUARDS)
  exchange.res.on('close', leave)
  try {
    const first = await feed.snapshot(tenantId)
    // A viewer who has gone meanwhile would never be let go.
    if (exchange.res.destroyed) leave()
    else stream(deps, exchange, tenantId, first)
  } catch (error) {
    leave()
    throw error
  }
}

function stream({ feed, clock }: ConsoleDeps, exchange: Exchange, tenantId: string | undefined, first: string): void {
  const { res } = exchange
  const send = (event: string, json: string): void => {
    if (res.writableLength > WAITING_BYTES_MAX) res.destroy()
    else if (!res.destroyed) res.write(`event: ${event}\ndata: ${json}\n\n`)
  }
  let beat = (): void => {}
  const stop = feed.watch(tenantId, (json) => send('delta', json))
  const head = ['content-type', 'text/event-stream', 'cache-control', 'no-store', 'x-accel-buffering', 'no']
  endsWithServer(res)
  res.writeHead(200, [...head, ...GUARDS, 'x-request-id', exchange.id])
  res.flushHeaders()
  send('snapshot', first)
  const later = (): void => {
    beat = clock.at(clock.now() + KEEP_ALIVE_US, () => {
      if (!res.destroyed) res.write(': \n\n')
      later()
    })
  }
  later()
  res.on('close', () => {
    beat()
    stop()
  })
  if (exchange.req.method === 'HEAD') res.end()
}

/** Pages are closed at any time: a viewer may try again soon. */
const NO_PLACE: ToldRefusal = {
  code: 'concurrency-limit',
  because: 'as many feeds of the console are open as one key, tenant or address may have',
  blame: 'tenant',
  retryAfterUs: secondsToUs(5),
}

/** By the file as the console has it, which is the same object each time. */
const documents = new WeakMap<ConsoleFile, StaticDocument>()

function sendFile(exchange: Exchange, file: ConsoleFile | undefined): void {
  if (file === undefined) {
    exchange.sendFault(invalidRequest('The console has no such page.', null, 'unknown-url'), GUARDS)
    return
  }
  const headers = [...GUARDS, 'etag', file.etag, 'cache-control', 'no-cache']
  if (exchange.req.headers['if-none-match'] === file.etag) {
    exchange.res.writeHead(304, ['x-request-id', exchange.id, ...headers])
    exchange.res.end()
    return
  }
  const document = documents.get(file) ?? new StaticDocument(file.type, file.text)
  documents.set(file, document)
  document.send(exchange, headers)
}

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i

const isOurHost = ({ isLoopback }: ConsoleDeps, { req }: Exchange): boolean =>
  !isLoopback || LOOPBACK_HOST.test(req.headers.host ?? '')

/** A browser names the origin of every write; who names none is no browser, and needs the cookie still. */
function isOurOrigin({ req }: Exchange): boolean {
  const { origin, host } = req.headers
  if (origin === undefined) return req.headers['sec-fetch-site'] === undefined
  try {
    return new URL(origin).host === host
  } catch {
    return false
  }
}

function refuseHost(exchange: Exchange): void {
  const message = 'The console on loopback answers to names of loopback only: open it as http://localhost.'
  exchange.sendFault(invalidRequest(message, null, 'invalid-value'), GUARDS)
}

function refuseOrigin(exchange: Exchange): void {
  exchange.sendFault(invalidRequest('Only the console’s own pages may do this.', null, 'invalid-value'), GUARDS)
}
