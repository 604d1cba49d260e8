import type { Dispatcher } from 'undici'
import type { Usage } from '../domain/delta.ts'
import type { Call, Ending } from '../lifecycle/ports.ts'
import { SseReader } from '../wire/sse.ts'
import { errorMessage, readUpstream } from '../wire/upstream.ts'
import { endingOf } from './http-ending.ts'

/**
 * Reads one answer off one connection and turns it into deltas: an undici handler that writes straight to the sink.
 *
 *   status ≥ 400 ─▶ collect (bounded) ─▶ refused or lost
 *   event-stream ─▶ frame by frame    ─▶ deltas … finished, or lost if it breaks off
 *   JSON         ─▶ collect (bounded) ─▶ one delta, finished
 *
 * It ends exactly once. When the sink says "slow reader", the connection is paused, the engine's socket fills, and
 * that is the backpressure.
 */

/** An answer that is sent whole may be this long; an explanation of an error needs far less. */
const ANSWER_BYTES_MAX = 16 << 20
const ERROR_BYTES_MAX = 64 << 10

export class AnswerReader implements Dispatcher.DispatchHandler {
  readonly #call: Call
  readonly #resolve: (ending: Ending) => void
  #controller: Dispatcher.DispatchController | undefined
  #status = 0
  #retryAfterS: number | undefined
  #sse: SseReader | undefined
  #parts: Buffer[] = []
  #size = 0
  #usage: Usage | undefined
  #hasFinishReason = false
  #hasEnded = false

  constructor(call: Call, resolve: (ending: Ending) => void) {
    this.#call = call
    this.#resolve = resolve
  }

  /** Called off: the connection is dropped, which makes the engine abort its sequence. */
  cancel(): void {
    this.#end({ kind: 'cancelled' })
    this.#controller?.abort(new Error('cancelled'))
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
    const retryAfter = Number(headers['retry-after'])
    if (Number.isFinite(retryAfter)) this.#retryAfterS = retryAfter
    const type = headers['content-type']
    if (status < 400 && typeof type === 'string' && type.startsWith('text/event-stream')) this.#sse = new SseReader()
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#hasEnded) return
    if (this.#sse === undefined) {
      this.#collect(controller, chunk)
      return
    }
    try {
      this.#sse.read(chunk, (data) => this.#readFrame(controller, data))
    } catch (error) {
      this.#end({ kind: 'lost', because: `the engine's stream is broken: ${String((error as Error).message)}` })
      controller.abort(new Error('broken stream'))
    }
  }

  onResponseEnd(): void {
    if (this.#hasEnded) return
    if (this.#sse !== undefined) {
      // Some engines close without [DONE]; a finish reason says that the answer is whole all the same.
      if (this.#hasFinishReason) this.#end({ kind: 'finished', usage: this.#usage })
      else this.#end({ kind: 'lost', because: 'the engine closed the stream before the answer was whole' })
      return
    }
    const text = Buffer.concat(this.#parts).toString('utf8')
    if (this.#status >= 400) this.#end(endingOf(this.#status, reasonIn(text), this.#retryAfterS))
    else this.#readWhole(text)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const code = (error as { code?: string }).code ?? error.name
    this.#end({ kind: 'lost', because: `the connection to the engine failed: ${code}` })
  }

  #collect(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#size += chunk.length
    if (this.#size <= (this.#status >= 400 ? ERROR_BYTES_MAX : ANSWER_BYTES_MAX)) {
      this.#parts.push(chunk)
      return
    }
    this.#end({ kind: 'lost', because: 'the engine sent an answer that is too long' })
    controller.abort(new Error('too long'))
  }

  #readFrame(controller: Dispatcher.DispatchController, data: string): void {
    if (this.#hasEnded) return
    if (data === '[DONE]') {
      this.#end({ kind: 'finished', usage: this.#usage })
      return
    }
    this.#relay(controller, JSON.parse(data))
  }

  #readWhole(text: string): void {
    try {
      this.#relay(undefined, JSON.parse(text))
    } catch {
      this.#end({ kind: 'lost', because: 'the engine sent something that is not JSON' })
      return
    }
    this.#end({ kind: 'finished', usage: this.#usage })
  }

  #relay(controller: Dispatcher.DispatchController | undefined, json: unknown): void {
    const answer = readUpstream(json)
    if (answer.error !== undefined) {
      this.#end({ kind: 'lost', because: `the engine broke off: ${answer.error}` })
      return
    }
    if (answer.usage !== undefined) this.#usage = answer.usage
    let tokens = 0
    let isEmpty = true
    for (const choice of answer.choices) {
      if (choice.finishReason !== null) this.#hasFinishReason = true
      if (choice.content || choice.extra !== undefined) tokens++
      if (choice.content || choice.extra !== undefined || choice.finishReason !== null) isEmpty = false
    }
    if (isEmpty) return
    // A whole answer brings all its tokens at once; in a stream each frame is about one.
    if (controller === undefined && answer.usage !== undefined) tokens = answer.usage.outputTokens
    const wait = this.#call.sink.write({ tokens, choices: answer.choices })
    if (wait === undefined || controller === undefined) return
    controller.pause()
    void wait.then(() => controller.resume())
  }

  #end(ending: Ending): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#parts = []
    this.#resolve(ending)
  }
}

/** The engine's own words, cut short: they go into our error body, so they must not be a page. */
function reasonIn(text: string): string {
  let reason = text
  try {
    reason = errorMessage(JSON.parse(text))
  } catch {
    // Not JSON: an HTML page of some proxy, perhaps.
  }
  return reason.replaceAll(/\s+/g, ' ').slice(0, 300)
}
