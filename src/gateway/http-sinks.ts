import type { Cancellation } from '../base/cancellation.ts'
import { type Clock, usToMs } from '../base/clock.ts'
import type { ChoiceDelta, Delta, Usage } from '../domain/delta.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { AnswerHead, Sink } from '../lifecycle/ports.ts'
import type { AnswerIdentity, StreamWriter, WholeWriter, Wording } from '../wire/dialect.ts'
import { wireRetrieved } from '../wire/passage-text.ts'
import type { Exchange } from './exchange.ts'
import { untilTaken } from './http-slow-reader.ts'

/** Sinks that send an answer over HTTP: event by event, or as one document. */
export interface SinkOptions {
  readonly exchange: Exchange
  readonly identity: AnswerIdentity
  readonly wording: Pick<Wording, 'stream' | 'whole'>
  readonly clock: Clock
  readonly cancellation: Cancellation
  /** Headers with what is left of the caller's budgets. */
  readonly rateLimits: () => string[]
  /** A reader that takes nothing for this long is disconnected. */
  readonly stalledReaderUs: number
  /** Bytes of a stream that may wait here for a slow reader; then the engine waits. Node's own bound if absent. */
  readonly aheadBytesMax?: number
  /** After this long without a token, send the headers, then a keep-alive comment at this interval. */
  readonly keepAliveUs: number
  /** Headers about how the request was served; `spillwayHeaders` if absent. */
  readonly headersOf?: (head: AnswerHead) => string[]
  /** Headers that do not depend on how it is served: a stream that begins with a keep-alive comment has them, too. */
  readonly knownHeaders?: readonly string[] | undefined
  /** The usage up to the delta that is being written, for a client that asked for it in every frame. */
  readonly runningUsage?: () => Usage
  /** The client wants the passages listed in the answer. */
  readonly listsPassages: boolean
}

export function spillwayHeaders(head: AnswerHead): string[] {
  const headers = ['x-spillway-model', head.model]
  if (head.releaseId !== undefined) headers.push('x-spillway-release', head.releaseId)
  if (head.rung !== 'full') headers.push('x-spillway-rung', head.rung, 'x-spillway-degraded', 'true')
  if (head.cached !== undefined) headers.push('x-spillway-cache', 'hit')
  if (head.dropped !== undefined) headers.push('x-spillway-dropped', head.dropped.join(', '))
  if (head.unscreened !== undefined) headers.push('x-spillway-unscreened', head.unscreened.join(', '))
  if (head.retrieved !== undefined) {
    const { outcome, passages } = head.retrieved
    headers.push('x-spillway-passages', String(passages.length), 'x-spillway-retrieval', outcome)
  }
  if (head.screened !== undefined) {
    const { flagged, isPartial } = head.screened
    if (flagged.length > 0) headers.push('x-spillway-flagged', flagged.join(', '))
    if (isPartial) headers.push('x-spillway-screened', 'partial')
  }
  return headers
}

/** The saved work, as measured for the cached answer; `usage` itself is zero, because no engine ran. */
function wireCached({ similarity, saved }: NonNullable<AnswerHead['cached']>): object {
  const { promptTokens, outputTokens } = saved
  return {
    hit: true,
    similarity: Math.round(similarity * 1_000) / 1_000,
    saved: { prompt_tokens: promptTokens, completion_tokens: outputTokens },
  }
}

/**
 * The answer has left us, but perhaps not the socket. A client that reads nothing of the rest for that long is cut off:
 * otherwise it could ask for one answer after another, leave them unread, and fill our memory. Node's own timer is used
 * because it sees bytes move inside one large write.
 */
export function cutOffUnread({
  exchange: { res },
  stalledReaderUs,
}: Pick<SinkOptions, 'exchange' | 'stalledReaderUs'>): void {
  if (res.writableLength > 0) res.setTimeout(usToMs(stalledReaderUs), () => res.destroy())
}

const isBare = ({ content, extra, finishReason }: ChoiceDelta): boolean =>
  !content && extra === undefined && finishReason === null

export class SseSink implements Sink {
  readonly #options: SinkOptions
  readonly #writer: StreamWriter
  #stopKeepAlive: () => void = () => {}

  constructor(options: SinkOptions) {
    this.#options = options
    this.#writer = options.wording.stream(options.identity)
    this.#keepAliveLater()
  }

  start(head: AnswerHead): void {
    const { exchange, headersOf = spillwayHeaders } = this.#options
    this.#stopKeepAlive()
    this.#writer.noteRung(head.rung)
    if (exchange.isOpen) this.#sendHead(headersOf(head))
    if (this.#options.listsPassages && head.retrieved !== undefined) {
      exchange.res.write(this.#writer.aside({ spillway: { retrieval: wireRetrieved(head.retrieved, true) } }))
    }
  }

  #sendHead(headers: readonly string[]): void {
    const { exchange, rateLimits, knownHeaders = [] } = this.#options
    exchange.res.writeHead(200, [
      'content-type',
      'text/event-stream; charset=utf-8',
      'cache-control',
      'no-cache',
      // Proxies in front of us (nginx) would otherwise buffer tokens.
      'x-accel-buffering',
      'no',
      ...exchange.idHeaders,
      ...rateLimits(),
      ...headers,
      ...knownHeaders,
    ])
  }

  /** The first keep-alive comment sends the status: a refusal after it is an error frame. */
  #keepAliveLater(): void {
    const { clock, keepAliveUs, exchange } = this.#options
    this.#stopKeepAlive = clock.at(clock.now() + keepAliveUs, () => {
      if (exchange.res.destroyed || exchange.res.writableEnded) return
      if (exchange.isOpen) this.#sendHead([])
      exchange.res.write(this.#writer.keepAlive)
      this.#keepAliveLater()
    })
  }

  write(delta: Delta): Promise<void> | undefined {
    const { res } = this.#options.exchange
    if (delta.choices === undefined || res.destroyed) return undefined
    let text = ''
    for (const { choices, frame } of delta.ahead ?? []) {
      if (frame.dialect === this.#writer.relays) text += this.#writer.relay?.(frame, choices) ?? ''
    }
    text += this.#textOf(delta, delta.choices)
    if (text === '') return undefined
    const { aheadBytesMax = Number.POSITIVE_INFINITY } = this.#options
    if (res.writableLength + text.length >= aheadBytesMax) return untilTaken(this.#options, text)
    return res.write(text) ? undefined : untilTaken(this.#options)
  }

  #textOf({ tokens, frame, beside }: Delta, choices: readonly ChoiceDelta[]): string {
    const writer = this.#writer
    if (frame !== undefined && writer.relay !== undefined && frame.dialect === writer.relays)
      return writer.relay(frame, choices)
    // A frame that has something only for clients of the engine's own dialect.
    if (frame !== undefined && tokens === 0 && choices.every(isBare)) return ''
    return writer.chunk(choices, this.#options.runningUsage?.(), beside)
  }

  finish(usage: Usage, flagged: readonly string[] = []): void {
    this.#stopKeepAlive()
    const late = flagged.length === 0 ? '' : this.#writer.aside({ spillway: { flagged } })
    this.#options.exchange.res.end(late + this.#writer.end(usage))
    cutOffUnread(this.#options)
  }

  fail(refusal: Refusal): void {
    const { exchange } = this.#options
    this.#stopKeepAlive()
    if (exchange.isOpen) exchange.sendRefusal(refusal, this.#options.rateLimits())
    else if (!exchange.res.writableEnded) {
      exchange.res.end(this.#writer.fail(exchange.errors.ofRefusal(refusal, exchange.id).body))
      cutOffUnread(this.#options)
    }
  }
}

export class JsonSink implements Sink {
  readonly #options: SinkOptions
  readonly #answer: WholeWriter
  #head: AnswerHead | undefined

  constructor(options: SinkOptions) {
    this.#options = options
    this.#answer = options.wording.whole(options.identity)
  }

  start(head: AnswerHead): void {
    this.#head = head
  }

  /** Bounded by the plan's `outputTokensMax`, so collecting the answer needs no backpressure. */
  write({ choices, frame, beside }: Delta): undefined {
    const answer = this.#answer
    if (frame !== undefined && answer.relay !== undefined && frame.dialect === answer.relays) answer.relay(frame)
    else if (choices !== undefined) answer.add(choices, beside)
    return undefined
  }

  finish(usage: Usage): void {
    const { exchange, identity, rateLimits, headersOf = spillwayHeaders, knownHeaders = [] } = this.#options
    const head = this.#head ?? { model: identity.model, rung: 'full' }
    const body = this.#answer.encode(usage, this.#ours(head))
    const headers = rateLimits()
    for (const part of headersOf(head)) headers.push(part)
    for (const part of knownHeaders) headers.push(part)
    exchange.sendAnswer(body, headers, () => cutOffUnread(this.#options))
  }

  /** Fields added to a degraded, retrieved or cached answer; most answers need none. */
  #ours(head: AnswerHead): Readonly<Record<string, unknown>> | undefined {
    if (head.rung === 'full' && head.retrieved === undefined && head.cached === undefined) return undefined
    return {
      ...(head.rung !== 'full' && { rung: head.rung, served_model: head.model }),
      ...(head.cached !== undefined && { cache: wireCached(head.cached) }),
      ...(head.retrieved !== undefined && { retrieval: wireRetrieved(head.retrieved, this.#options.listsPassages) }),
    }
  }

  fail(refusal: Refusal): void {
    this.#options.exchange.sendRefusal(refusal, this.#options.rateLimits())
  }
}
