import type { IncomingMessage, ServerOptions, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { TokenFinding } from '../domain/identity.ts'
import { invalidRequest } from '../wire/openai-error.ts'
import { jwtOf, type TokenVerifier } from './authenticate.ts'
import { Cors, type CorsOptions } from './cors.ts'
import { fixedRetryUs } from './error-table.ts'
import { type ErrorWords, OPENAI_ERRORS } from './error-words.ts'
import { Exchange } from './exchange.ts'
import { answerBrokenRequest, answerOnSocket } from './http-broken-request.ts'
import { Connections } from './http-connections.ts'
import type { HttpRequest, HttpResponse } from './http-message.ts'
import { NodeHttpServer } from './http-node.ts'
import type { Ingress } from './ingress.ts'
import { readTrusted } from './request-address.ts'
import { nearestPath, notFound } from './unknown-route.ts'

/**
 * The HTTP server. A route is a method, a path and a function; a request without a route gets an error in OpenAI's
 * shape. A route that throws is a bug: the client gets a 500, the fault is counted, the process goes on.
 */
const METHODS = ['GET', 'POST', 'PATCH', 'DELETE'] as const

export interface Route {
  readonly method: (typeof METHODS)[number]
  /** An exact path, or one that ends in `/*`: then the route gets what stands there. */
  readonly path: string
  /** Health checks: they must be answered while everything else is refused, and cost nothing. */
  readonly isUnmetered?: boolean
  handle(exchange: Exchange, rest: string): Promise<void> | void
}

export interface HttpServerOptions {
  readonly basePath: string
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
  readonly idleTimeoutMs: number
  readonly connectionsMax: number
  readonly makeRequestId: () => string
  /** Format of errors; OpenAI's if absent. */
  readonly errors?: ErrorWords
  /** Formats of errors of single paths and of all below them, by path without the base path. */
  readonly errorsUnder?: Readonly<Record<string, ErrorWords>>
  readonly onFault: (where: string, error: unknown) => void
  /** The allowance for being read; a server without one reads everything. */
  readonly ingress?: Ingress
  /** Web pages that may call this server; none if absent. */
  readonly cors?: CorsOptions
  /** Address ranges of the proxies whose `x-forwarded-for` is believed. */
  readonly trustedProxies?: readonly string[]
  /** Checks the tokens of issuers; a server without one knows keys only. */
  readonly tokens?: TokenVerifier | undefined
}

/** Interval at which Node looks for clients that are too slow with their headers. */
const SLOW_CLIENT_CHECK_MS = 500

type Answer = (req: HttpRequest, res: HttpResponse) => void

/** Node's server, with its open connections. */
export class HttpServer extends NodeHttpServer {
  /** Node's own listener, which reads HTTP/1 from a connection. */
  readonly #readOne = this.listeners('connection')[0] as (socket: Socket) => void
  readonly open = new Connections(this)
  /** Answers a request, whichever version of HTTP it came by. */
  readonly answer: Answer
  /** Format of errors. */
  readonly errors: ErrorWords

  constructor(limits: ServerOptions, answer: Answer, errors: ErrorWords) {
    super(limits, (req, res) => {
      this.open.notePart(req.socket, res)
      answer(req, res)
    })
    this.answer = answer
    this.errors = errors
  }

  /** From here each new connection goes to `first`, which passes on what is HTTP/1 to `readOne`. */
  lookFirst(first: (socket: Socket) => void): void {
    this.off('connection', this.#readOne)
    this.on('connection', first)
  }

  readOne(socket: Socket): void {
    this.#readOne(socket)
  }
}

export function makeHttpServer(routes: readonly Route[], options: HttpServerOptions): HttpServer {
  const table = new RouteTable(routes, options.basePath)
  const errors = options.errors ?? OPENAI_ERRORS
  const cors =
    (options.cors?.origins.length ?? 0) > 0 ? new Cors(options.cors as CorsOptions, options.basePath) : undefined
  const trusted = readTrusted(options.trustedProxies)
  const errorsOf = makeErrorsOf(options)
  const answer = (req: HttpRequest, res: HttpResponse): void => {
    req.url = originForm(req.url ?? '/')
    const path = pathOf(req.url)
    const isPages = cors?.admit(req, res, path) === true
    const found = table.find(req.method === 'HEAD' ? 'GET' : (req.method ?? 'GET'), path)
    const exchange = new Exchange(req, res, options.makeRequestId(), errorsOf(path), trusted)
    const visit = found?.route.isUnmetered === true ? undefined : options.ingress?.arrive(exchange)
    if (visit !== undefined && 'code' in visit) {
      exchange.leaveUnread()
      exchange.sendRefusal(visit)
      return
    }
    exchange.visit = visit
    if (hasNoHost(req)) {
      exchange.leaveUnread()
      exchange.sendFault(invalidRequest('The request has no Host header.', null, 'invalid-http'))
      return
    }
    if (req.url.includes('%00')) {
      exchange.leaveUnread()
      exchange.sendFault(invalidRequest('The address has the character U+0000.', null, 'invalid-value'))
      return
    }
    if (found === undefined) {
      answerUnknown(exchange, path, isPages ? cors : undefined)
      return
    }
    try {
      const pending = serveRoute(exchange, found, options.tokens)
      if (pending !== undefined) pending.catch((error: unknown) => failed(exchange, found.route, error))
    } catch (error) {
      failed(exchange, found.route, error)
    }
  }
  const answerUnknown = (exchange: Exchange, path: string, cors: Cors | undefined): void => {
    const methods = table.methodsOf(path)
    const preflight = methods.length === 0 ? undefined : cors?.preflight(exchange.req, methods)
    if (preflight === undefined) notFound(exchange, path, methods, table.nearest(path))
    else exchange.sendNothing(preflight)
  }
  const failed = (exchange: Exchange, route: Route, error: unknown): void => {
    options.onFault(`route ${route.path}`, error)
    exchange.sendRefusal({
      code: 'internal-error',
      because: 'Something broke while answering.',
      blame: 'platform',
      retryAfterUs: fixedRetryUs('internal-error'),
    })
  }
  const limits: ServerOptions = {
    noDelay: true,
    headersTimeout: options.headersTimeoutMs,
    requestTimeout: options.requestTimeoutMs,
    keepAliveTimeout: options.idleTimeoutMs,
    connectionsCheckingInterval: Math.min(SLOW_CLIENT_CHECK_MS, options.headersTimeoutMs),
    // Node would answer a request without a host by itself, with a bare status line.
    requireHostHeader: false,
  }
  const server = new HttpServer(limits, answer, errors)
  server.maxConnections = options.connectionsMax
  answerOddRequests(server, options.makeRequestId, errors)
  return server
}

/** The words of errors for a path. They are found before the route: a refusal at the ingress needs them, too. */
function makeErrorsOf({ errors = OPENAI_ERRORS, errorsUnder = {}, basePath }: HttpServerOptions) {
  const under = Object.entries(errorsUnder).map(([path, words]) => ({ path: basePath + path, words }))
  return (path: string): ErrorWords => {
    for (const one of under)
      if (path.startsWith(one.path) && (path.length === one.path.length || path[one.path.length] === '/'))
        return one.words
    return errors
  }
}

/** Calls the route with what its token proves: at once, unless the token is new here and takes a moment to check. */
function serveRoute(exchange: Exchange, found: Found, tokens: TokenVerifier | undefined): Promise<void> | void {
  const { route, rest } = found
  const isAsked = tokens !== undefined && route.isUnmetered !== true
  const token = isAsked ? jwtOf(exchange.req.headers) : undefined
  const proof = token === undefined ? undefined : tokens?.verify(token)
  if (proof instanceof Promise) return serveProved(exchange, found, proof)
  exchange.proof = proof
  return route.handle(exchange, rest)
}

/** A client that has gone meanwhile is not served. */
async function serveProved(exchange: Exchange, { route, rest }: Found, proof: Promise<TokenFinding>): Promise<void> {
  exchange.proof = await proof
  if (exchange.isOpen) await route.handle(exchange, rest)
}

/** Requests that Node does not pass on as requests. Without a listener each gets a bare status line, or nothing. */
function answerOddRequests(server: HttpServer, makeRequestId: () => string, errors: ErrorWords): void {
  server.on('clientError', (error: NodeJS.ErrnoException, stream) => {
    const socket = stream as Socket
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && server.open.hasSlowBody(socket)) return
    answerBrokenRequest(error, socket, server.open.isAnswering(socket), { requestId: makeRequestId(), errors })
  })
  server.on('checkExpectation', (req: IncomingMessage, res: ServerResponse) => {
    server.open.note(req.socket, res)
    const exchange = new Exchange(req, res, makeRequestId(), errors)
    exchange.leaveUnread()
    const expected = (req.headers.expect ?? '').slice(0, 100)
    const message = `The expectation '${expected}' cannot be met; only 100-continue can.`
    exchange.sendFault(invalidRequest(message, null, 'unsupported-expectation'))
  })
  server.on('connect', (_req: IncomingMessage, stream) => {
    const fault = invalidRequest('Method CONNECT is not allowed: this is no proxy.', null, 'method-not-allowed')
    answerOnSocket(stream as Socket, fault, {
      requestId: makeRequestId(),
      errors,
      headers: ['allow', METHODS.join(', ')],
    })
  })
}

interface Found {
  readonly route: Route
  readonly rest: string
}

export class RouteTable {
  /** Routes by method, then by path, so that no key is built for each request. */
  readonly #exact = new Map<string, Map<string, Found>>(METHODS.map((method) => [method, new Map()]))
  readonly #under: ReadonlyArray<{ prefix: string; route: Route }>
  readonly #paths: readonly string[]
  readonly #basePath: string

  constructor(routes: readonly Route[], basePath: string) {
    const isUnder = (route: Route): boolean => route.path.endsWith('/*')
    for (const route of routes) {
      if (!isUnder(route)) this.#exact.get(route.method)?.set(pathOf(basePath + route.path), { route, rest: '' })
    }
    this.#basePath = basePath
    this.#paths = routes.map(({ path }) => basePath + path)
    this.#under = routes.filter(isUnder).map((route) => ({ prefix: basePath + route.path.slice(0, -1), route }))
  }

  /** Methods of the routes with this path; empty when no route has it. */
  methodsOf(path: string): string[] {
    return METHODS.filter((method) => this.find(method, path) !== undefined)
  }

  /** The known path that a client with this one may have meant. */
  nearest(path: string): string | undefined {
    return nearestPath(path, this.#paths, this.#basePath)
  }

  find(method: string, path: string): Found | undefined {
    const found = this.#exact.get(method)?.get(path)
    if (found !== undefined) return found
    for (const { prefix, route } of this.#under) {
      if (route.method === method && path.startsWith(prefix)) return { route, rest: decode(path.slice(prefix.length)) }
    }
    return undefined
  }
}

/** A percent sign that escapes nothing is kept. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** HTTP/1.1 requires a host; HTTP/1.0 does not. */
const hasNoHost = ({ headers, httpVersionMinor }: HttpRequest): boolean =>
  headers.host === undefined && httpVersionMinor >= 1

/** A client may put the whole address of the server in front of the path (RFC 9112, 3.2.2), as it would for a proxy. */
function originForm(url: string): string {
  if (url.startsWith('/')) return url
  return /^https?:\/\/[^/?#]*(.*)$/is.exec(url)?.[1]?.replace(/^(?!\/)/, '/') ?? url
}

function pathOf(url: string): string {
  const query = url.indexOf('?')
  const path = query < 0 ? url : url.slice(0, query)
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
}
