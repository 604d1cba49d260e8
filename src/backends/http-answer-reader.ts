import type { Dispatcher } from 'undici'
import type { Usage } from '../domain/delta.ts'
import type { Call, Ending } from '../lifecycle/ports.ts'
import { FrameTokens } from '../wire/frame-tokens.ts'
import { SseOverflow, SseReader } from '../wire/sse.ts'
import { TokenLength } from '../wire/token-length.ts'
import type { UpstreamAnswer } from '../wire/upstream.ts'
import { AnswerBound } from './answer-bound.ts'
import { EngineTexts, type RelayTerms, type Said } from './engine-texts.ts'
import { endingOf, isUnreachable, retryAfterSeconds, whyLost } from './http-ending.ts'

/**
 * Reads one answer off one connection and turns it into deltas: an undici handler that writes straight to the sink.
 *
 *   status ≥ 400 ─▶ collect (bounded) ─▶ refused or lost
 *   event-stream ─▶ frame by frame    ─▶ deltas … finished, or lost if it breaks off
 *   JSON         ─▶ collect (bounded) ─▶ one delta, finished
 *
 * An answer ends exactly once, at the latest where `AnswerBound` says that the engine has written what it was asked for.
 * When the sink reports a slow reader, the connection is paused and the engine's socket fills, which is the backpressure;
 * frames of the same read are held until the reader has caught up. The tokens of a frame are counted by `FrameTokens`;
 * `EngineTexts` says which of the engine's own texts go with them.
 *
 * An engine's own words never go into journalled reasons: they may quote the prompt or the answer.
 */

export interface AnswerFormat {
  /** Parses one frame, or a whole answer. */
  readonly read: (json: unknown) => UpstreamAnswer
  /** For streams that end by closing without a finish reason: the reason to report. */
  readonly closingReason?: () => string
  readonly redact: (text: string) => string
  /** How long the tokens of this engine are; learned from its answers. None for models without tokens. */
  readonly tokenLength?: TokenLength
  /** The engine speaks OpenAI's words, which may be passed on. */
  readonly relays?: RelayTerms
}

/** Most bytes of an error that are read. */
const ERROR_BYTES_MAX = 64 << 10

export class AnswerReader implements Dispatcher.DispatchHandler {
  readonly #call: Call
  readonly #format: AnswerFormat
  readonly #bound: AnswerBound
  readonly #texts: EngineTexts
  /** Made with the first text. */
  #tokens: FrameTokens | undefined
  readonly #resolve: (ending: Ending) => void
  readonly #reject: (error: unknown) => void
  #controller: Dispatcher.DispatchController | undefined
  #status = 0
  #retryAfterS: number | undefined
  #sse: SseReader | undefined
  #parts: Buffer[] = []
  #size = 0
  /** Frames of the last read that wait for a slow reader: at most one read from the socket. */
  #held: string[] = []
  #isBlocked = false
  #usage: Usage | undefined
  #reasoningTokens = 0
  #isOutputUncounted = false
  #hasChoices = false
  /** Choices that have finished. Made with the first: an answer in one piece does not need the set. */
  #finishedChoices: Set<number> | undefined
  #forgetFirst: (() => void) | undefined
  #forgetSecond: (() => void) | undefined
  #isSniffing = false
  #hasEnded = false

  constructor(call: Call, format: AnswerFormat, resolve: (ending: Ending) => void, reject: (error: unknown) => void) {
    this.#call = call
    this.#format = format
    this.#bound = AnswerBound.of(call.request, call.plan, format.tokenLength)
    if (format.relays?.dialect !== undefined) this.#bound.allowRepeated(call.request.text?.native?.raw.length ?? 0)
    this.#texts = new EngineTexts(call, format.relays)
    this.#resolve = resolve
    this.#reject = reject
  }

  /** Cancels: drops the connection, which makes the engine abort its sequence. */
  cancel(): void {
    this.#end({ kind: 'cancelled' })
    this.#controller?.abort(new Error('cancelled'))
  }

  /** Registers a function to call when the attempt ends; two at most. */
  forgetAtEnd(forget: () => void): void {
    if (this.#hasEnded) forget()
    else if (this.#forgetFirst === undefined) this.#forgetFirst = forget
    else this.#forgetSecond = forget
  }

  /** Whether any part of the answer has come. */
  get hasBegun(): boolean {
    return this.#hasChoices
  }

  /** Ends the attempt because its time is up. */
  giveUp(because: string): void {
    this.#lose(because)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#hasEnded) controller.abort(new Error('cancelled'))
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200) return
    this.#status = status
    const type = headers['content-type']
    if (status >= 300) {
      this.#retryAfterS = retryAfterSeconds(headers, Date.now())
      return
    }
    if (type === 'application/json') return
    if (typeof type === 'string' && /^text\/event-stream\b/i.test(type)) this.#sse = new SseReader()
    // Some proxies lose the content type; then the first byte tells a stream from a document.
    else this.#isSniffing = this.#call.request.isStreamed && !(typeof type === 'string' && /json/i.test(type))
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#hasEnded) return
    if (this.#isSniffing) this.#sniff(chunk)
    if (this.#sse === undefined) {
      this.#collect(chunk)
      return
    }
    if (!this.#bound.takesBytes(chunk.length)) {
      this.#endFlood()
      return
    }
    try {
      this.#sse.read(chunk, (data) => this.#takeFrame(controller, data))
    } catch (error) {
      if (error instanceof SseOverflow) this.#lose('the engine sent a frame that is too long')
      else this.#fail(error)
    }
  }

  onResponseEnd(): void {
    if (this.#hasEnded) return
    if (this.#sse !== undefined) {
      if (this.#hasChoices) this.#addClosingReason()
      this.#closed('the engine closed the stream before the answer was whole')
      return
    }
    const [first] = this.#parts
    const whole = this.#parts.length === 1 && first !== undefined ? first : Buffer.concat(this.#parts)
    const text = whole.toString('utf8')
    const json = parsed(text)
    if (this.#status >= 300) this.#refuse(this.#status, json)
    else this.#readWhole({ text, json, isFrame: false })
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#closed(whyLost(error), isUnreachable(error))
  }

  /** Some engines close without [DONE], or reset; the finish reasons then show that the answer is complete. */
  #closed(because: string, isUnreached = false): void {
    if (this.#isWhole) this.#finish()
    else this.#end({ kind: 'lost', because, ...(isUnreached && { isUnreachable: true }) })
  }

  #addClosingReason(): void {
    const finishReason = this.#format.closingReason?.()
    if (finishReason === undefined || this.#finishedChoices?.has(0) === true) return
    void this.#relay({ choices: [{ index: 0, content: '', finishReason }], usage: undefined, error: undefined }, 0)
  }

  #refuse(status: number, json: unknown): void {
    const { redact } = this.#format
    this.#end(endingOf({ status, json, retryAfterS: this.#retryAfterS, redact }))
  }

  #sniff(chunk: Buffer): void {
    const first = /\S/.exec(chunk.toString('latin1'))?.[0]
    if (first === undefined) return
    this.#isSniffing = false
    if (first !== '{') this.#sse = new SseReader()
  }

  #collect(chunk: Buffer): void {
    this.#size += chunk.length
    if (this.#size <= (this.#status >= 400 ? ERROR_BYTES_MAX : this.#bound.wholeBytesMax)) {
      // A copy: the connection may read the next bytes into the same place.
      this.#parts.push(Buffer.from(chunk))
      return
    }
    this.#lose('the engine sent an answer that is too long')
  }

  #takeFrame(controller: Dispatcher.DispatchController, data: string): void {
    if (this.#isBlocked) this.#held.push(data)
    else this.#readFrame(controller, data)
  }

  #readFrame(controller: Dispatcher.DispatchController, data: string): void {
    if (this.#hasEnded) return
    const text = data.trim()
    // An empty frame only keeps the connection alive.
    if (text === '') return
    if (text === '[DONE]') {
      if (this.#hasChoices) this.#finish()
      else this.#lose('the engine ended its answer before it began')
      return
    }
    const json = parsed(text)
    if (json === undefined) {
      this.#lose('the engine sent a frame that is not JSON')
      return
    }
    const wait = this.#relay(this.#format.read(json), undefined, { text, json, isFrame: true })
    if (wait === undefined) return
    this.#isBlocked = true
    controller.pause()
    wait.then(
      () => this.#unblock(controller),
      (error: unknown) => this.#fail(error),
    )
  }

  #unblock(controller: Dispatcher.DispatchController): void {
    this.#isBlocked = false
    while (!this.#isBlocked && this.#held.length > 0) this.#readFrame(controller, this.#held.shift()!)
    if (!this.#isBlocked && !controller.aborted) controller.resume()
  }

  #readWhole(said: Said): void {
    if (said.json === undefined) {
      this.#lose('the engine sent something that is not JSON')
      return
    }
    const answer = this.#format.read(said.json)
    // An answer in one piece has all its tokens at once.
    void this.#relay(answer, answer.isOutputUncounted === true ? undefined : answer.usage?.outputTokens, said)
    if (this.#hasEnded) return
    if (this.#hasChoices) this.#finish()
    else this.#lose('the engine sent an answer without choices')
  }

  #relay(answer: UpstreamAnswer, allTokens: number | undefined, said?: Said): Promise<void> | undefined {
    const { error, result } = answer
    if (error !== undefined) {
      // Before the first token, an error under a 200 is treated by its own status.
      if (error.status !== undefined && !this.#hasChoices) this.#refuse(error.status, error.json)
      this.#lose('the engine reported an error in the middle of its answer')
      return undefined
    }
    if (answer.usage !== undefined) this.#noteUsage(answer, answer.usage, said)
    const choices =
      this.#sse === undefined
        ? this.#bound.ofWhole(answer.choices, answer.usage?.outputTokens)
        : this.#bound.ofFrame(answer.choices)
    if (result !== undefined) this.#hasChoices = true
    let isEmpty = result === undefined
    for (const choice of choices) {
      this.#hasChoices = true
      if (choice.finishReason !== null) this.#noteFinished(choice.index)
      if (choice.content || choice.extra !== undefined || choice.finishReason !== null) isEmpty = false
    }
    const text = choices === answer.choices ? this.#texts.of(answer, said) : undefined
    if (isEmpty) return text === undefined ? undefined : this.#texts.pass(choices, text)
    try {
      if (result !== undefined) return this.#texts.writeResult(result, said)
      const wait = this.#texts.write(this.#count(choices, answer, allTokens), choices, text, said)
      if (this.#bound.hasCut && this.#isWhole) this.#endCut()
      return wait
    } catch (error) {
      this.#fail(error)
      return undefined
    }
  }

  #noteUsage(answer: UpstreamAnswer, usage: Usage, said: Said | undefined): void {
    const { reasoningTokens = 0, isOutputUncounted = false } = answer
    this.#usage = usage
    this.#texts.noteUsage(answer, said)
    this.#reasoningTokens = reasoningTokens
    this.#isOutputUncounted = isOutputUncounted
    this.#bound.noteReported(usage.outputTokens)
  }

  #count(choices: UpstreamAnswer['choices'], answer: UpstreamAnswer, allTokens: number | undefined): number {
    this.#tokens ??= this.#makeTokens()
    return this.#tokens.count(choices, { tokens: allTokens ?? answer.tokens, running: answer.usage?.outputTokens })
  }

  #makeTokens(): FrameTokens {
    const { choiceCount, text } = this.#call.request
    const isEchoed = text?.body['echo'] === true
    const { tokensMax } = this.#bound
    return new FrameTokens(this.#format.tokenLength ?? new TokenLength(), { tokensMax, choiceCount, isEchoed })
  }

  /** The answer is whole: how many tokens did the engine count? */
  #finish(): void {
    this.#texts.writeAhead()
    const tokens = this.#tokens
    const usage = this.#texts.toldUsage(this.#usage)
    if (tokens === undefined || usage === undefined || this.#bound.hasCut) this.#end({ kind: 'finished', usage })
    else if (this.#isOutputUncounted) {
      this.#end({ kind: 'finished', usage: { ...usage, outputTokens: tokens.counted } })
    } else {
      const streamedTokens = tokens.end({
        tokens: usage.outputTokens,
        reasoningTokens: this.#reasoningTokens,
        isOnePiece: this.#sse === undefined,
      })
      this.#end({ kind: 'finished', usage, ...(streamedTokens !== undefined && { streamedTokens }) })
    }
  }

  /** The engine goes on beyond its bound: the client has its answer, and the engine's sequence is aborted. */
  #endCut(): void {
    this.#finish()
    this.#controller?.abort(new Error('the engine went on beyond its bound'))
  }

  /** More bytes than any answer within the bound has. */
  #endFlood(): void {
    if (!this.#hasChoices) {
      this.#lose('the engine sent more than any answer of this length has')
      return
    }
    void this.#relay({ choices: this.#bound.ends(this.#finishedChoices), usage: undefined, error: undefined }, 0)
    if (!this.#hasEnded) this.#endCut()
  }

  get #isWhole(): boolean {
    return (this.#finishedChoices?.size ?? 0) === this.#call.request.choiceCount
  }

  #noteFinished(index: number): void {
    this.#finishedChoices ??= new Set()
    this.#finishedChoices.add(index)
  }

  /** Drops the connection too: a faulty engine need not finish an answer without a reader. */
  #lose(because: string): void {
    this.#end({ kind: 'lost', because })
    this.#controller?.abort(new Error(because))
  }

  /** The sink failed, not the engine. */
  #fail(error: unknown): void {
    if (!this.#hasEnded) this.#reject(error)
    this.#lose('the answer could not be passed on')
  }

  #end(ending: Ending): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#parts = []
    this.#held = []
    this.#forgetFirst?.()
    this.#forgetSecond?.()
    this.#resolve(ending)
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    // Not JSON: an HTML page of a proxy, perhaps.
    return undefined
  }
}
