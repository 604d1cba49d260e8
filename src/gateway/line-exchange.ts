import { isBackgroundJob, jobCore } from '../domain/job.ts'
import type { LineAsk, LineEnd, LineRun, LineRunner } from '../lifecycle/job-ports.ts'
import type { KeyDirectory } from './authenticate.ts'
import type { ErrorWords } from './error-words.ts'
import { Exchange } from './exchange.ts'
import type { HttpRequest, HttpResponse } from './http-message.ts'
import type { Route } from './http-server.ts'
import { callerOfJob, type JobCaller } from './job-caller.ts'

/**
 * Lines of jobs go through the routes as requests do: read by the same dialects, screened by the same screens, admitted
 * and charged in the same way. The request is made here, and its answer is collected here; no socket is between. What
 * differs: the caller is known, its band is the job's (`offline`, or `standard` for one that has risen), and the deadline is the end of the job's window.
 */
export interface LineDeps {
  readonly keys: KeyDirectory
  readonly routes: readonly Route[]
  readonly errors: ErrorWords
  readonly errorsUnder: Readonly<Record<string, ErrorWords>>
}

export class RouteLineRunner implements LineRunner {
  readonly #deps: LineDeps
  readonly #routes: ReadonlyMap<string, Route>

  constructor(deps: LineDeps) {
    this.#deps = deps
    this.#routes = new Map(deps.routes.flatMap((route) => (route.method === 'POST' ? [[route.path, route]] : [])))
  }

  run({ job, ticketId, body, deadlineMs, band }: LineAsk): LineRun {
    const { keys, errors, errorsUnder } = this.#deps
    const made = JSON.parse(job.caller) as JobCaller
    const bytes = Buffer.from(body)
    const res = new LineResponse()
    const words = Object.entries(errorsUnder).find(([path]) => job.endpoint.startsWith(path))?.[1] ?? errors
    const exchange = new Exchange(new LineRequest(job.endpoint, bytes, deadlineMs, made.address), res, ticketId, words)
    const caller = callerOfJob(keys, made, band)
    const route = this.#routes.get(job.endpoint)
    if ('code' in caller) exchange.sendRefusal(caller)
    else if (route === undefined) res.destroy()
    else {
      exchange.knownCaller = caller
      if (isBackgroundJob(job)) exchange.answerCore = jobCore(job)
      void this.#handle(route, exchange, res)
    }
    return { done: res.done, cancel: () => res.destroy() }
  }

  async #handle(route: Route, exchange: Exchange, res: LineResponse): Promise<void> {
    try {
      await route.handle(exchange, '')
    } catch {
      // The journal has the ticket's end; the line tries again.
      if (exchange.isOpen) exchange.sendJson(500, '{"error":{"message":"The request failed.","type":"server_error"}}')
      else res.destroy()
    }
  }
}

type Listener = () => void

/** A request whose body is there. */
class LineRequest implements HttpRequest {
  readonly method = 'POST'
  readonly url: string
  readonly headers: HttpRequest['headers']
  readonly httpVersionMinor = 1
  readonly socket: { readonly remoteAddress?: string | undefined }
  readonly complete = true
  readonly readableEnded = true
  readonly destroyed = false
  readonly #bytes: Buffer

  constructor(url: string, bytes: Buffer, deadlineMs: number, remoteAddress: string | undefined) {
    this.url = url
    this.#bytes = bytes
    this.socket = { remoteAddress }
    this.headers = {
      'content-type': 'application/json',
      'content-length': String(bytes.length),
      'x-spillway-deadline-ms': String(deadlineMs),
    }
  }

  takeWhole(): Buffer {
    return this.#bytes
  }

  read(): null {
    return null
  }

  pause(): void {}
  destroy(): void {}
  on(): void {}
  off(): void {}
}

/** Bytes of one answer that are kept: as many as a line may have, several times over. */
const ANSWER_BYTES_MAX = 32 * 1_048_576

/** Collects an answer. Its reader is never slow. */
class LineResponse implements HttpResponse {
  shouldKeepAlive = true
  headersSent = false
  destroyed = false
  writableEnded = false
  writableFinished = false
  readonly writableLength = 0
  readonly done: Promise<LineEnd>
  #end: (end: LineEnd) => void = () => {}
  #status = 200
  #headers: readonly string[] = []
  #parts: (string | Uint8Array)[] = []
  #size = 0
  readonly #closers: Listener[] = []

  constructor() {
    this.done = new Promise((resolve) => {
      this.#end = resolve
    })
  }

  setHeader(): void {}
  setTimeout(): void {}

  writeHead(status: number, headers: string[]): void {
    this.headersSent = true
    this.#status = status
    this.#headers = headers
  }

  flushHeaders(): void {
    this.headersSent = true
  }

  write(part: string | Uint8Array, taken?: () => void): boolean {
    this.#size += part.length
    if (this.#size > ANSWER_BYTES_MAX) this.destroy()
    else this.#parts.push(part)
    taken?.()
    return true
  }

  end(last?: string): void {
    if (this.writableEnded || this.destroyed) return
    if (last !== undefined) this.write(last)
    if (this.destroyed) return
    this.headersSent = true
    this.writableEnded = true
    this.writableFinished = true
    this.destroyed = true
    const parts = this.#parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part))
    const body = Buffer.concat(parts).toString('utf8')
    const retryAfterMs = retryAfterOf(this.#headers) ?? predictedRetryOf(this.#status, body)
    this.#parts = []
    this.#end({ kind: 'answered', status: this.#status, body, retryAfterMs })
    this.#close()
  }

  destroy(): void {
    if (this.destroyed) return
    this.destroyed = true
    this.#parts = []
    this.#end({ kind: 'gone' })
    this.#close()
  }

  on(event: 'finish' | 'close' | 'drain', listener: Listener): void {
    if (event === 'close') this.#closers.push(listener)
  }

  off(event: 'finish' | 'close' | 'drain', listener: Listener): void {
    const at = event === 'close' ? this.#closers.indexOf(listener) : -1
    if (at >= 0) this.#closers.splice(at, 1)
  }

  #close(): void {
    for (const listener of this.#closers.splice(0)) listener()
  }
}

/** Headers are names and values in turn. */
function retryAfterOf(headers: readonly string[]): number | undefined {
  const numberAt = (name: string): number | undefined => {
    for (let i = 0; i < headers.length; i += 2) if (headers[i]?.toLowerCase() === name) return Number(headers[i + 1])
    return undefined
  }
  const ms = numberAt('retry-after-ms')
  const seconds = numberAt('retry-after')
  return ms ?? (seconds === undefined ? undefined : seconds * 1_000)
}

/** A line that no room is kept for is tried again all the same: its job has until tomorrow. */
function predictedRetryOf(status: number, body: string): number | undefined {
  if (status !== 429 && status !== 503) return undefined
  const said = /"retry_after_ms":\s*(\d+)/.exec(body)?.[1]
  return said === undefined ? undefined : Number(said)
}
