import type { Dispatcher } from 'undici'
import type { ChoiceDelta } from '../domain/delta.ts'
import { FrameTokens } from '../wire/frame-tokens.ts'
import { SseReader } from '../wire/sse.ts'
import type { TokenLengths } from '../wire/token-length.ts'
import { errorMessage, readUpstream } from '../wire/upstream.ts'

/**
 * Reads one answer as a measuring client: the time of each token, and how the answer ended. Thousands of readers share
 * one core, so a frame with text only is recognised without parsing it. A frame may have several tokens, and is counted
 * as the gateway counts those of its engines.
 */
export interface LoadWatcher {
  /** The answer's headers have come. */
  begin(head: LoadHead): void
  /** A frame with so many tokens has come. */
  tokens(count: number): void
  end(ending: LoadEnding): void
}

export interface LoadHead {
  readonly status: number
  readonly rung: string | undefined
  readonly model: string | undefined
}

export type LoadEnding =
  | {
      readonly kind: 'finished'
      readonly usage: { promptTokens: number; cachedTokens: number; outputTokens: number } | undefined
    }
  | {
      readonly kind: 'refused'
      readonly status: number
      readonly code: string
      readonly because: string
      readonly retryAfterMs: number | undefined
      readonly mayRetry: boolean
    }
  /** The answer was interrupted, or never came; `code` has few values, for counting. */
  | { readonly kind: 'failed'; readonly code: string; readonly because: string }
  | { readonly kind: 'cancelled' }

const ERROR_BYTES_MAX = 64 << 10
/** Text that is not empty, in any field where servers put it. */
const BRINGS_TEXT = /"(?:content|text|reasoning|reasoning_content)":\s?"((?:[^"\\]|\\.)+)"/
/** Frames with more than text, which are parsed. */
const SAYS_MORE = /"usage":\s?\{|"error":|"tool_calls":|"finish_reason":\s?"/

export class LoadReader implements Dispatcher.DispatchHandler {
  readonly #watcher: LoadWatcher
  readonly #tokenLengths: TokenLengths
  #frames: FrameTokens | undefined
  #controller: Dispatcher.DispatchController | undefined
  #status = 0
  #retry = { afterMs: undefined as number | undefined, may: true }
  #sse: SseReader | undefined
  #parts: Buffer[] = []
  #size = 0
  #usage: ReturnType<typeof readUpstream>['usage']
  #isWhole = false
  #hasEnded = false

  constructor(watcher: LoadWatcher, tokenLengths: TokenLengths) {
    this.#watcher = watcher
    this.#tokenLengths = tokenLengths
  }

  /** Cancels the request: the connection is dropped. */
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
    if (status < 200 || this.#hasEnded) return
    this.#status = status
    this.#retry = { afterMs: retryAfterMs(headers), may: headers['x-should-retry'] !== 'false' }
    if (status >= 400) return
    if (String(headers['content-type']).startsWith('text/event-stream')) this.#sse = new SseReader()
    const model = textOf(headers['x-spillway-model'])
    const tokensMax = Number.POSITIVE_INFINITY
    this.#frames = new FrameTokens(this.#tokenLengths.of(model ?? ''), { tokensMax, choiceCount: 1 })
    this.#watcher.begin({ status, rung: textOf(headers['x-spillway-rung']), model })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#hasEnded) return
    if (this.#sse === undefined) {
      this.#size += chunk.length
      if (this.#status < 400 || this.#size <= ERROR_BYTES_MAX) this.#parts.push(chunk)
      return
    }
    try {
      this.#sse.read(chunk, (data) => this.#frame(data))
    } catch (error) {
      this.#end({ kind: 'failed', code: 'broken-stream', because: String((error as Error).message) })
      controller.abort(new Error('broken stream'))
    }
  }

  onResponseEnd(): void {
    if (this.#hasEnded) return
    if (this.#sse !== undefined) {
      if (this.#isWhole) this.#finish()
      else this.#end({ kind: 'failed', code: 'cut-short', because: 'the stream ended before the answer was whole' })
      return
    }
    const text = Buffer.concat(this.#parts).toString('utf8')
    if (this.#status >= 400) this.#refused(text)
    else this.#whole(text)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const code = (error as { code?: string }).code ?? error.name
    this.#end({ kind: 'failed', code: 'connection', because: code })
  }

  #frame(data: string): void {
    if (this.#hasEnded) return
    if (data === '[DONE]') {
      this.#finish()
      return
    }
    if (!SAYS_MORE.test(data)) {
      const content = BRINGS_TEXT.exec(data)?.[1]
      if (content !== undefined) this.#count([{ index: 0, content, finishReason: null }])
      return
    }
    const json: unknown = JSON.parse(data)
    const answer = readUpstream(json)
    if (answer.error !== undefined) {
      const { code, message } = errorOf(json)
      this.#end({ kind: 'failed', code: code ?? 'error-frame', because: message })
      return
    }
    if (answer.usage !== undefined) this.#usage = answer.usage
    for (const choice of answer.choices) {
      if (choice.finishReason !== null) this.#isWhole = true
    }
    this.#count(answer.choices, answer.usage?.outputTokens)
  }

  #count(choices: readonly ChoiceDelta[], running?: number): void {
    const tokens = this.#frames?.count(choices, { running }) ?? 0
    if (tokens > 0) this.#watcher.tokens(tokens)
  }

  #finish(): void {
    if (this.#usage !== undefined) this.#frames?.end({ tokens: this.#usage.outputTokens })
    this.#end({ kind: 'finished', usage: this.#usage })
  }

  #whole(text: string): void {
    try {
      const answer = readUpstream(JSON.parse(text))
      this.#watcher.tokens(1)
      this.#end({ kind: 'finished', usage: answer.usage })
    } catch {
      this.#end({ kind: 'failed', code: 'not-json', because: 'the answer is not JSON' })
    }
  }

  #refused(text: string): void {
    let error: { code: string | undefined; message: string } = { code: undefined, message: text.slice(0, 300) }
    try {
      error = errorOf(JSON.parse(text))
    } catch {
      // An HTML page of a proxy: the status is enough.
    }
    const code = (error.code ?? `http-${this.#status}`).replaceAll('_', '-')
    this.#end({
      kind: 'refused',
      status: this.#status,
      code,
      because: error.message.replaceAll(/\s+/g, ' ').slice(0, 300),
      retryAfterMs: this.#retry.afterMs,
      mayRetry: this.#retry.may,
    })
  }

  #end(ending: LoadEnding): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#parts = []
    this.#watcher.end(ending)
  }
}

const textOf = (value: string | string[] | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined

function errorOf(json: unknown): { code: string | undefined; message: string } {
  const { error } = (json ?? {}) as { error?: { code?: unknown } | null }
  const code = error?.code
  return {
    code: typeof code === 'string' && code !== '' ? code : undefined,
    message: errorMessage(json) ?? 'no reason given',
  }
}

/** `retry-after-ms` if present, else `retry-after` in seconds; dates are rare and ignored. */
function retryAfterMs(headers: Record<string, string | string[] | undefined>): number | undefined {
  const ms = Number(headers['retry-after-ms'])
  if (headers['retry-after-ms'] !== undefined && Number.isFinite(ms)) return ms
  const seconds = Number(headers['retry-after'])
  return headers['retry-after'] !== undefined && Number.isFinite(seconds) ? seconds * 1_000 : undefined
}
