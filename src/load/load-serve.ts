import type { Cancellation } from '../base/cancellation.ts'
import type { Clock } from '../base/clock.ts'
import type { Entry, Settled } from '../domain/entry.ts'
import { promptTokensOf, type Request } from '../domain/request.ts'
import type { Sink } from '../lifecycle/ports.ts'
import type { PromptWords } from '../sim/clients/prompt-words.ts'
import { ClientScripts } from '../sim/clients/scripts.ts'
import type { LoadEnding } from './http-load-reader.ts'
import type { LoadTarget } from './http-load-target.ts'
import { LoadSeen } from './load-seen.ts'

/**
 * Serves a simulated client's request by sending it to a real server, and records what was seen as journal entries, so
 * that a live run and a simulated run have the same report. What only the server knows (its pool, its predictions) is
 * left out; "admitted" is when the answer's headers came.
 *
 * Latency counts from `request.arrivedAt`, the instant at which the client meant to send, so that a process too busy to
 * send in time shows in the latency.
 */
export interface LoadServeParts {
  readonly clock: Clock
  readonly target: LoadTarget
  readonly words: PromptWords
  readonly scripts: LoadScripts
  readonly keyOf: (tenantId: string) => string | undefined
  /** The server's name for a model of the scenario. */
  readonly modelOf: (model: string) => string
  readonly take: (entry: Entry) => void
  /** Requests above this number in flight are not sent; they count as failed. */
  readonly inFlightMax: number
  /** No more than this many requests are sent. */
  readonly requestsMax: number
  /** Tells vLLM or llama.cpp to go on until `max_tokens`, so that answers have the scenario's lengths. */
  readonly ignoresEos: boolean
}

/** The length of each answer; a live server gets it as `max_tokens`. */
export class LoadScripts extends ClientScripts {
  readonly #wanted = new Map<string, number>()

  override expect(requestId: string, outputTokens: number): void {
    this.#wanted.set(requestId, outputTokens)
  }

  override forget(requestId: string): void {
    this.#wanted.delete(requestId)
  }

  outputTokensOf(requestId: string): number {
    return this.#wanted.get(requestId) ?? 1
  }
}

export class LoadServe {
  readonly #parts: LoadServeParts
  readonly #open = new Set<() => void>()
  #sentCount = 0
  #isClosed = false
  /** How late this process sent requests; part of every latency. */
  readonly lagUs = { sum: 0, max: 0, count: 0, over20Ms: 0 }

  constructor(parts: LoadServeParts) {
    this.#parts = parts
  }

  get inFlight(): number {
    return this.#open.size
  }

  get sentCount(): number {
    return this.#sentCount
  }

  /** No more requests will be sent. */
  get isDone(): boolean {
    return this.#isClosed || this.#sentCount >= this.#parts.requestsMax
  }

  /** Cancels the running requests; no more are sent. */
  close(): void {
    this.#isClosed = true
    for (const cancel of this.#open) cancel()
  }

  serve(request: Request, cancellation: Cancellation, sink: Sink): Promise<Settled> {
    const { clock, take, inFlightMax } = this.#parts
    // The run is over: a client that would come back now waits for ever, and is forgotten with the run.
    if (this.isDone) return new Promise(() => {})
    take({
      kind: 'arrived',
      at: request.arrivedAt,
      ticketId: request.id,
      tenantId: request.tenant.id,
      keyId: request.key.id,
      model: request.model,
      band: request.band,
      promptTokens: promptTokensOf(request),
      isStreamed: true,
    })
    const seen = new LoadSeen(clock, request)
    if (this.#open.size >= inFlightMax) {
      const because = `${inFlightMax} are in flight already`
      return Promise.resolve(this.#settle(seen, sink, { kind: 'failed', code: 'sender-full', because }))
    }
    this.#noteLag(clock.now() - request.arrivedAt)
    return new Promise((resolve) => {
      seen.onEnd = (ending) => {
        this.#open.delete(cancel)
        resolve(this.#settle(seen, sink, ending))
      }
      const cancel = this.#send(request, seen)
      if (seen.hasEnded) return
      this.#open.add(cancel)
      cancellation.onCancel(cancel)
    })
  }

  #send(request: Request, seen: LoadSeen): () => void {
    const { target, words, scripts, keyOf, modelOf, ignoresEos } = this.#parts
    this.#sentCount++
    const tokensMax = request.outputTokensMax ?? scripts.outputTokensOf(request.id)
    const body =
      `{"model":${JSON.stringify(modelOf(request.model))},"stream":true,"stream_options":{"include_usage":true},` +
      `"max_tokens":${tokensMax},${ignoresEos ? '"ignore_eos":true,' : ''}"messages":${words.messages(request)}}`
    return target.send(body, headersOf(request, keyOf(request.tenant.id)), seen)
  }

  #noteLag(lagUs: number): void {
    this.lagUs.count++
    this.lagUs.sum += lagUs
    this.lagUs.max = Math.max(this.lagUs.max, lagUs)
    if (lagUs > 20_000) this.lagUs.over20Ms++
  }

  #settle(seen: LoadSeen, sink: Sink, ending: LoadEnding): Settled {
    const settled = seen.settled(ending)
    this.#parts.take(settled)
    if (settled.refusal === undefined) sink.finish(settled.usage)
    else sink.fail(settled.refusal)
    return settled
  }
}

/** Spillway's options go as headers: other servers reject unknown fields in a body, and ignore unknown headers. */
function headersOf(request: Request, key: string | undefined): string[] {
  const deadlineMs = Math.max(1, Math.round((request.deadlineAt - request.arrivedAt) / 1_000))
  const headers = ['x-spillway-deadline-ms', String(deadlineMs), 'x-spillway-band', request.band]
  // Simulated clients take late answers whole and count which were late.
  if (request.isCutOff !== true) headers.push('x-spillway-cut-off', 'false')
  if (request.bid !== 0) headers.push('x-spillway-bid', String(request.bid))
  if (key !== undefined) headers.push('authorization', `Bearer ${key}`)
  return headers
}
