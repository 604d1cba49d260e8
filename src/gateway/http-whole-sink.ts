import type { Delta, EngineText, Result, Usage } from '../domain/delta.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { AnswerHead, Sink } from '../lifecycle/ports.ts'
import type { Exchange } from './exchange.ts'
import { cutOffUnread, spillwayHeaders } from './http-sinks.ts'

/** Sends an answer without streaming: one document, written when the ticket has ended. */
export interface WholeSinkOptions {
  readonly exchange: Exchange
  readonly rateLimits: () => string[]
  readonly stalledReaderUs: number
  /** `text`: the engine's own answer, where it may be passed on. */
  readonly encode: (result: Result, usage: Usage, head: AnswerHead, text?: EngineText) => string
  /** Headers about how the request was served; `spillwayHeaders` if absent. */
  readonly headersOf?: (head: AnswerHead) => string[]
}

export class WholeSink implements Sink {
  readonly #options: WholeSinkOptions
  #head: AnswerHead | undefined
  #result: Result | undefined
  #text: EngineText | undefined

  constructor(options: WholeSinkOptions) {
    this.#options = options
  }

  start(head: AnswerHead): void {
    this.#head = head
  }

  write({ result, frame }: Delta): undefined {
    this.#result = result ?? this.#result
    this.#text = frame ?? this.#text
    return undefined
  }

  finish(usage: Usage): void {
    const { exchange, rateLimits, encode, headersOf = spillwayHeaders } = this.#options
    if (this.#result === undefined || this.#head === undefined) throw new Error('a finished answer has a result')
    const body = encode(this.#result, usage, this.#head, this.#text)
    exchange.sendJson(200, body, [...rateLimits(), ...headersOf(this.#head)])
    cutOffUnread(this.#options)
  }

  fail(refusal: Refusal): void {
    this.#options.exchange.sendRefusal(refusal, this.#options.rateLimits())
  }
}
