import { connect, type Socket } from 'node:net'
import type { Dispatcher } from 'undici'
import { makeWriteBatch, TurnBatch } from '../base/live-turn-batch.ts'
import { type ResponseEvents, ResponseFault, ResponseParser } from '../wire/response-parser.ts'

/**
 * Kept-alive connections to one server behind a plain `http:` URL, for the calls that make up nearly all traffic: POST
 * with a complete body, answer by answer, no pipelining. Callers use undici's handler interface; TLS, probes and
 * everything else go through undici.
 *
 * Why not undici for these calls too: undici took a fifth of a busy gateway's time (its parser in WebAssembly, a stream
 * and a request object between socket and handler, a turn of the event loop for every use of an idle connection), and
 * most of the memory of 5,000 open streams. Here bytes go from one shared read buffer through the parser to the handler.
 *
 *     dispatch ─▶ idle line, else a new one, else wait ─▶ write ─▶ read ─▶ resting ─(next turn of the loop)─▶ idle
 *
 * A line that has just ended an answer rests until the event loop has looked at its socket again. A close or stray bytes
 * from the server are then seen before the next request goes out on the line, and the line is dropped.
 */
export interface PlainPoolOptions {
  readonly host: string
  readonly port: number
  /** Host and port of the URL, for the Host header. */
  readonly authority: string
  readonly connectTimeoutMs: number
  /** Longest silence: until the head, and between two pieces of the body. */
  readonly silenceMsMax: number
  readonly connectionsMax: number
  readonly keepAliveMs: number
}

export interface PlainAsk {
  readonly path: string
  readonly headers: readonly string[]
  readonly body: string
}

type Handler = Dispatcher.DispatchHandler

/** Answers that ended in one turn of the event loop are handled together. */
const endings = new TurnBatch()
/** Requests of one turn go out together. */
const sends = makeWriteBatch()

/** One buffer for all connections: a read is handled before the next one begins. */
const READ_BYTES = 64 << 10
const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES)

/** Interval of one timer for all lines, instead of a timer each. Silence is therefore noticed up to a tick late. */
const TICK_MS = 250
/** A server that closes idle connections after N seconds may close early: the line is dropped a second before. */
const HINT_MARGIN_MS = 1_000

/** Why a connection failed, with a code for the journal; the server's own words do not go there. */
class LineError extends Error {
  override readonly name = 'LineError'
  readonly code: string

  constructor(code: string) {
    super(code)
    this.code = code
  }
}

export class PlainPool {
  readonly options: PlainPoolOptions
  readonly #lines = new Set<Line>()
  readonly #idle: Line[] = []
  /** Lines that ended an answer in this turn of the event loop. */
  #resting: Line[] = []
  /** Requests that wait for a line: those above `connectionsMax`, and those of one turn of the event loop. */
  #waiting: Turn[] = []
  #isClosed = false
  #ticking: NodeJS.Timeout | undefined
  /** Ticks so far: the clock of the lines. */
  now = 0

  constructor(options: PlainPoolOptions) {
    this.options = options
  }

  get lineCount(): number {
    return this.#lines.size
  }

  dispatch(ask: PlainAsk, handler: Handler): void {
    const turn = new Turn(ask, handler)
    handler.onRequestStart?.(turn, null)
    if (turn.aborted) return
    if (this.#isClosed) turn.fail(new LineError('CLOSED'))
    else if (!isSendable(ask)) turn.fail(new LineError('INVALID_HEADER'))
    else this.#place(turn)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#ticking)
    for (const turn of this.#waiting.splice(0)) turn.fail(new LineError('CLOSED'))
    for (const line of this.#lines) line.drop(new LineError('CLOSED'))
  }

  #place(turn: Turn): void {
    const line = this.#popIdle()
    if (line !== undefined) line.start(turn)
    else if (this.#resting.length > this.#waiting.length || this.#lines.size >= this.options.connectionsMax)
      this.#waiting.push(turn)
    else this.#open().start(turn)
  }

  /** A line whose time is over is destroyed by a tick, but is told of its close only later in that turn of the loop. */
  #popIdle(): Line | undefined {
    for (;;) {
      const line = this.#idle.pop()
      if (line === undefined || line.isOpen) return line
    }
  }

  #open(): Line {
    const line = new Line(this)
    this.#lines.add(line)
    this.#ticking ??= setInterval(() => this.#tick(), TICK_MS).unref()
    return line
  }

  /** The line's answer has ended; the line may be used again after a rest. */
  rest(line: Line): void {
    if (this.#resting.length === 0) setImmediate(() => this.#wake())
    this.#resting.push(line)
  }

  #wake(): void {
    const rested = this.#resting
    this.#resting = []
    for (const line of rested) if (line.isOpen) this.#idle.push(line)
    const waiting = this.#waiting
    this.#waiting = []
    for (const turn of waiting) if (!turn.aborted) this.#place(turn)
  }

  /** The line is closed and is not used again. */
  forget(line: Line): void {
    this.#lines.delete(line)
    const index = this.#idle.indexOf(line)
    if (index >= 0) this.#idle.splice(index, 1)
    const next = this.#waiting.shift()
    if (next !== undefined && !next.aborted) this.#place(next)
    if (this.#lines.size > 0) return
    clearInterval(this.#ticking)
    this.#ticking = undefined
  }

  #tick(): void {
    this.now++
    for (const line of this.#lines) line.tick()
  }
}

const TARGET = /^[\x21-\x7e]+$/
/** Characters allowed in a header's name or value: none that could begin another header. */
const HEADER_TEXT = /^[\t\x20-\x7e\x80-\xff]*$/

function isSendable({ path, headers }: PlainAsk): boolean {
  if (!TARGET.test(path)) return false
  for (let i = 0; i < headers.length; i++) if (!HEADER_TEXT.test(headers[i] as string)) return false
  return true
}

/** One request on its way: the handler's only access to the line, which ends with the answer. */
class Turn implements Dispatcher.DispatchController {
  readonly ask: PlainAsk
  readonly handler: Handler
  aborted = false
  paused = false
  reason: Error | null = null
  line: Line | undefined

  constructor(ask: PlainAsk, handler: Handler) {
    this.ask = ask
    this.handler = handler
  }

  abort(reason: Error): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    this.line?.abandon()
  }

  pause(): void {
    this.paused = true
    this.line?.pause()
  }

  resume(): void {
    this.paused = false
    this.line?.resume()
  }

  fail(error: Error): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = error
    this.handler.onResponseError?.(this, error)
  }
}

/** One connection. */
class Line implements ResponseEvents {
  readonly #pool: PlainPool
  readonly #socket: Socket
  readonly #parser = new ResponseParser(this)
  #turn: Turn | undefined
  /** The answer has ended, but its reader is behind: it is told when it has caught up. */
  #isEndHeld = false
  /** Tick of the last byte, or of the last answer's end. */
  #activeAt: number
  #isConnected = false
  #keepAliveMs: number
  #error: Error | undefined

  constructor(pool: PlainPool) {
    this.#pool = pool
    this.#activeAt = pool.now
    const { host, port, keepAliveMs } = pool.options
    this.#keepAliveMs = keepAliveMs
    const callback = (count: number): boolean => {
      this.#read(readBuffer.subarray(0, count))
      return true
    }
    this.#socket = connect({ host, port, noDelay: true, onread: { buffer: readBuffer, callback } })
    this.#socket.on('connect', () => {
      this.#isConnected = true
      this.#activeAt = pool.now
    })
    this.#socket.on('error', (error) => {
      this.#error = error
    })
    this.#socket.on('close', () => this.#closed())
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  start(turn: Turn): void {
    this.#turn = turn
    turn.line = this
    this.#activeAt = this.#pool.now
    this.#parser.begin()
    const { path, headers, body } = turn.ask
    const length = Buffer.byteLength(body)
    let head = `POST ${path} HTTP/1.1\r\nhost: ${this.#pool.options.authority}\r\nconnection: keep-alive\r\n`
    for (let i = 0; i + 1 < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`
    const text = `${head}content-length: ${length}\r\n\r\n${body}`
    sends.add(() => {
      // ASCII needs no encoding; Node takes it as it is.
      if (this.#turn === turn) this.#socket.write(text, length === body.length ? 'latin1' : 'utf8')
    })
  }

  /** The rest of the answer is not wanted: drops the connection, which makes the engine abort its sequence. */
  abandon(): void {
    this.#turn = undefined
    this.#socket.destroy()
  }

  drop(error: Error): void {
    const turn = this.#turn
    this.abandon()
    turn?.fail(error)
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#activeAt = this.#pool.now
    if (this.#isEndHeld) this.#finish()
    else this.#socket.resume()
  }

  tick(): void {
    const { connectTimeoutMs, silenceMsMax } = this.#pool.options
    const silentMs = (this.#pool.now - this.#activeAt - 1) * TICK_MS
    if (this.#turn === undefined) {
      if (silentMs >= this.#keepAliveMs) this.#socket.destroy()
    } else if (!this.#isConnected) {
      if (silentMs >= connectTimeoutMs) this.drop(new LineError('CONNECT_TIMEOUT'))
    } else if (!this.#turn.paused && silentMs >= silenceMsMax) this.drop(new LineError('SILENCE_TIMEOUT'))
  }

  // ── events of the parser ──

  onHead(status: number, headers: Readonly<Record<string, string>>): void {
    const hint = /timeout=(\d+)/i.exec(headers['keep-alive'] ?? '')?.[1]
    if (hint !== undefined) {
      this.#keepAliveMs = Math.min(this.#pool.options.keepAliveMs, Number(hint) * 1_000 - HINT_MARGIN_MS)
    }
    const turn = this.#turn
    turn?.handler.onResponseStart?.(turn, status, headers)
  }

  onData(bytes: Buffer): void {
    const turn = this.#turn
    turn?.handler.onResponseData?.(turn, bytes)
  }

  onEnd(): void {
    if (this.#turn?.paused === true) this.#isEndHeld = true
    else this.#tellEnd()
  }

  // ── events of the socket ──

  #read(bytes: Buffer): void {
    this.#activeAt = this.#pool.now
    try {
      this.#parser.read(bytes)
    } catch (error) {
      // Bytes that belong to no answer; an answer that was complete before them stays complete.
      if (error instanceof ResponseFault) {
        this.drop(error)
        return
      }
      throw error
    }
    if (this.#turn === undefined && !this.#socket.destroyed) this.#reuse()
  }

  #tellEnd(): void {
    const turn = this.#turn
    this.#turn = undefined
    if (turn === undefined) return
    turn.line = undefined
    endings.add(() => {
      if (!turn.aborted) turn.handler.onResponseEnd?.(turn, {})
    })
  }

  /** The reader has caught up with an answer that had ended. */
  #finish(): void {
    this.#isEndHeld = false
    this.#tellEnd()
    this.#reuse()
  }

  #reuse(): void {
    if (!this.#parser.mayReuse || this.#keepAliveMs <= 0 || !this.isOpen) {
      this.#socket.destroy()
      return
    }
    // A pause by the last reader must not outlive it.
    if (this.#socket.isPaused()) this.#socket.resume()
    this.#pool.rest(this)
  }

  #closed(): void {
    this.#pool.forget(this)
    const turn = this.#turn
    if (turn === undefined) return
    // The close completes the answer, or confirms it: a reader that is behind still gets its end.
    if (this.#error === undefined && this.#parser.close()) {
      if (this.#isEndHeld && !turn.paused) this.#finish()
      return
    }
    this.#turn = undefined
    turn.line = undefined
    turn.fail(this.#error ?? new LineError('CLOSED_EARLY'))
  }
}
