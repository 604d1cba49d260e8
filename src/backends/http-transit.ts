import type { Dispatcher } from 'undici'
import type { Usage } from '../domain/delta.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { OpenBody, Transit } from '../domain/transit.ts'
import type { Call, Ending } from '../lifecycle/ports.ts'
import { transitUsage } from '../wire/transit.ts'
import { endingOf, retryAfterSeconds, whyLost } from './http-ending.ts'
import type { HttpUpstream } from './http-upstream.ts'

/**
 * One attempt of a transit: the client's bytes go to the engine as it takes them, the engine's bytes go to the sink as
 * the client takes them, and nothing is kept of either.
 *
 *     2xx                      ─▶ head, bytes … finished, or lost if it breaks off
 *     4xx about the request    ─▶ collect (bounded) ─▶ refused; the client gets the engine's own answer
 *     any other status         ─▶ collect (bounded) ─▶ refused or lost, as for every request (`http-ending.ts`)
 *
 * A cancelled attempt drops the connection, in the middle of the upload too.
 *
 * A short answer in JSON is also read for its `usage`, so that a tenant pays what the engine counted.
 */
export interface TransitAttempt {
  readonly call: Call
  readonly transit: Transit
  readonly upstream: HttpUpstream
  /** The engine's own name for the model. */
  readonly model: string
  readonly headers: readonly string[]
}

/** Most bytes of an error that are kept for the client, and of an answer that is read for its usage. */
const KEPT_BYTES_MAX = 64 << 10

/** Headers of an engine that are about the answer itself; its connection and its servers are nobody's business. */
const PASSED_HEADERS = [
  'content-type',
  'content-length',
  'content-encoding',
  'content-disposition',
  'content-language',
  'cache-control',
] as const

/** No such address, or not with this method: which endpoints there are is the engine's to say. */
const UNKNOWN_ADDRESS: ReadonlySet<number> = new Set([404, 405])

export function runTransit(attempt: TransitAttempt): Promise<Ending> {
  const { call, transit, upstream, model, headers } = attempt
  if (call.cancellation.isCancelled) return Promise.resolve({ kind: 'cancelled' })
  const body = transit.body.open(model)
  const length = body.length === undefined ? [] : ['content-length', String(body.length)]
  const accept = transit.accept === undefined ? [] : ['accept', transit.accept]
  return new Promise((resolve, reject) => {
    const reader = new TransitReader(attempt, body, { resolve, reject })
    const options = {
      path: transit.isRooted === true ? upstream.besideVersion(transit.path) : upstream.path(transit.path),
      method: 'POST',
      headers: upstream.headersWith(transit.contentType, ...accept, ...length, ...headers),
      body: body.pieces,
    }
    upstream.postPieces(options as unknown as Dispatcher.DispatchOptions, reader)
  })
}

interface Settle {
  readonly resolve: (ending: Ending) => void
  readonly reject: (error: unknown) => void
}

class TransitReader implements Dispatcher.DispatchHandler {
  readonly #attempt: TransitAttempt
  readonly #body: OpenBody
  readonly #settle: Settle
  readonly #forget: () => void
  #controller: Dispatcher.DispatchController | undefined
  #status = 0
  #contentType = ''
  #retryAfterS: number | undefined
  /** An error, or an answer that may say its usage; undefined when it is neither, or too long. */
  #kept: Buffer[] | undefined
  #keptBytes = 0
  #hasEnded = false

  constructor(attempt: TransitAttempt, body: OpenBody, settle: Settle) {
    this.#attempt = attempt
    this.#body = body
    this.#settle = settle
    this.#forget = attempt.call.cancellation.onCancel(() => {
      this.#end({ kind: 'cancelled' })
      this.#controller?.abort(new Error('cancelled'))
    })
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#hasEnded) controller.abort(new Error('cancelled'))
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200 || this.#hasEnded) return
    this.#status = status
    const type = headers['content-type']
    this.#contentType = typeof type === 'string' ? type : 'application/octet-stream'
    const isJson = /\bjson\b/i.test(this.#contentType)
    if (status >= 300 || isJson) this.#kept = []
    if (status >= 300) this.#retryAfterS = retryAfterSeconds(headers, Date.now())
    else this.#pass(controller, { tokens: 0, result: { kind: 'transit', head: { status, headers: passed(headers) } } })
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    if (this.#hasEnded) return
    this.#keep(piece)
    if (this.#status < 300) this.#pass(controller, { tokens: 0, bytes: piece })
  }

  onResponseEnd(): void {
    if (this.#hasEnded) return
    if (this.#status >= 300) this.#end(this.#refused())
    else this.#end({ kind: 'finished', usage: this.#usage() })
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#end({ kind: 'lost', because: whyLost(error) })
  }

  #pass(controller: Dispatcher.DispatchController, delta: Parameters<Call['sink']['write']>[0]): void {
    let wait: Promise<void> | undefined
    try {
      wait = this.#attempt.call.sink.write(delta)
    } catch (error) {
      this.#fail(error)
      return
    }
    if (wait === undefined) return
    controller.pause()
    wait.then(
      () => controller.aborted || controller.resume(),
      (error: unknown) => this.#fail(error),
    )
  }

  #keep(piece: Buffer): void {
    this.#keptBytes += piece.length
    if (this.#keptBytes > KEPT_BYTES_MAX) this.#kept = undefined
    this.#kept?.push(piece)
  }

  #text(): string | undefined {
    return this.#kept === undefined ? undefined : Buffer.concat(this.#kept).toString('utf8')
  }

  #usage(): Usage | undefined {
    const tokens = transitUsage(parsedJson(this.#text()))
    return tokens === undefined ? undefined : { promptTokens: tokens, cachedTokens: 0, outputTokens: 0 }
  }

  #refused(): Ending {
    const { upstream } = this.#attempt
    const redact = (text: string): string => upstream.redact(text)
    const status = this.#status
    const text = this.#text()
    const json = parsedJson(text)
    const ending = endingOf({ status, json, retryAfterS: this.#retryAfterS, redact })
    if (ending.kind !== 'refused') return ending
    const isKept = ending.refusal.blame === 'request' || UNKNOWN_ADDRESS.has(status)
    if (!isKept) return ending
    const kept = text === undefined ? {} : { kept: { status, contentType: this.#contentType, body: redact(text) } }
    return { kind: 'refused', refusal: { ...asRejected(ending.refusal), ...kept } }
  }

  #fail(error: unknown): void {
    if (!this.#hasEnded) this.#settle.reject(error)
    this.#end({ kind: 'lost', because: 'the answer could not be passed on' })
    this.#controller?.abort(new Error('the answer could not be passed on'))
  }

  #end(ending: Ending): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#kept = undefined
    this.#forget?.()
    this.#body.close()
    this.#settle.resolve(ending)
  }
}

const asRejected = (refusal: Refusal): Refusal => ({
  ...refusal,
  code: refusal.blame === 'request' ? refusal.code : 'replica-rejected-request',
  blame: 'request',
})

function passed(headers: Readonly<Record<string, string | string[] | undefined>>): string[] {
  return PASSED_HEADERS.flatMap((name) => {
    const value = headers[name]
    return typeof value === 'string' ? [name, value] : []
  })
}

function parsedJson(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as unknown)
  } catch {
    return undefined
  }
}
