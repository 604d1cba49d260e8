import type { Socket } from 'node:net'
import { type CancelTimer, type Clock, type Instant, msToUs, usToMs } from '../base/clock.ts'
import { HeadReader } from './http-fast-head.ts'
import { FastRequest } from './http-fast-request.ts'
import { FastResponse, type FastWay } from './http-fast-response.ts'
import type { HttpServer } from './http-server.ts'

/**
 * The fast path: requests that come whole and plain in one read go to the routes without `node:http`, which does
 * more than such a request needs. What that saves is in docs/adr/0027-fast-path.md.
 *
 *     read ─▶ plain and whole? ─yes▶ route ─▶ answer ─▶ next read
 *                   └─no─▶ node:http has the connection from here on, with these bytes
 *
 * The fast path never waits for the rest of a request, so slow and odd clients are Node's, with its time limits. What comes
 * while an answer is under way is held and read after it, up to a bound. Which connections are open, how many there may
 * be and how they are closed is the server's business, as for those of `node:http`.
 */
export interface FastPathOptions {
  readonly clock: Clock
  /** A connection without a request is closed after this long, and the client is told so. */
  readonly idleTimeoutMs: number
}

/** Idle connections stay open longer than we say, so that a request sent at the last moment finds one (Node's own value). */
const IDLE_GRACE_MS = 1_000
/** Time between two looks at idle connections. */
const IDLE_CHECK_MS = 500
/** What a client may send ahead of its answer; then it is not read until the answer has been sent. Node's own bound. */
const HELD_BYTES_MAX = 65_536

export class FastPath {
  readonly server: HttpServer
  readonly keepAliveLines: string
  readonly clock: Clock
  readonly #idleUs: number
  /** Bounded by the connections that may be open. */
  readonly #open = new Set<FastConnection>()
  #stopChecking: CancelTimer | undefined
  #date = ''
  #dateS = 0

  constructor(server: HttpServer, { clock, idleTimeoutMs }: FastPathOptions) {
    this.server = server
    this.clock = clock
    this.#idleUs = msToUs(idleTimeoutMs + IDLE_GRACE_MS)
    const seconds = Math.floor(idleTimeoutMs / 1_000)
    this.keepAliveLines = `Connection: keep-alive\r\nKeep-Alive: timeout=${seconds}\r\n`
  }

  /** A connection of HTTP/1 that nobody else reads, with the bytes that have been read from it. */
  enter(socket: Socket, seen: Buffer): void {
    const connection = new FastConnection(this, socket)
    this.#open.add(connection)
    if (this.#stopChecking === undefined) this.#checkLater()
    connection.take(seen)
  }

  leave(connection: FastConnection): void {
    this.#open.delete(connection)
    if (this.#open.size > 0) return
    this.#stopChecking?.()
    this.#stopChecking = undefined
  }

  /** The value of a Date header; made once a second. */
  date(): string {
    const second = Math.floor(usToMs(this.clock.now()) / 1_000)
    if (second !== this.#dateS) {
      this.#dateS = second
      this.#date = new Date(second * 1_000).toUTCString()
    }
    return this.#date
  }

  #checkLater(): void {
    const { clock } = this
    this.#stopChecking = clock.at(clock.now() + msToUs(IDLE_CHECK_MS), () => {
      const before = clock.now() - this.#idleUs
      this.#checkLater()
      for (const connection of this.#open) connection.closeIfIdleSince(before)
    })
  }
}

class FastConnection implements FastWay {
  readonly socket: Socket
  readonly #fast: FastPath
  readonly #heads = new HeadReader()
  #request: FastRequest | undefined
  #response: FastResponse | undefined
  /** What came while an answer was under way. */
  #held: Buffer | undefined
  #idleSince: Instant = 0
  readonly #take = (bytes: Buffer): void => this.take(bytes)
  readonly #drained = (): void => this.#response?.drained()
  /** As `node:http` does: who has said the last word does not get a new answer, and the rest of this one goes out. */
  readonly #end = (): void => {
    this.socket.end()
  }
  readonly #close = (): void => {
    const response = this.#response
    this.#release()
    this.#request?.leave()
    response?.leave()
  }

  constructor(fast: FastPath, socket: Socket) {
    this.#fast = fast
    this.socket = socket
    socket.on('data', this.#take)
    socket.on('drain', this.#drained)
    socket.on('end', this.#end)
    socket.on('error', ignore)
    socket.on('close', this.#close)
  }

  get keepAliveLines(): string {
    return this.#fast.keepAliveLines
  }

  date(): string {
    return this.#fast.date()
  }

  take(bytes: Buffer): void {
    if (this.#response !== undefined) {
      this.#hold(bytes)
      return
    }
    const post = this.#heads.read(bytes)
    if (post === undefined) {
      this.#handOver(bytes)
      return
    }
    const { socket } = this
    const { server } = this.#fast
    const request = new FastRequest(post, socket)
    const response = new FastResponse(this)
    this.#request = request
    this.#response = response
    server.open.note(socket, response)
    server.answer(request, response)
  }

  passed(response: FastResponse): void {
    if (response !== this.#response) return
    const { socket } = this
    this.#request = undefined
    this.#response = undefined
    if (!response.shouldKeepAlive) {
      socket.destroySoon()
      return
    }
    this.#idleSince = this.#fast.clock.now()
    const held = this.#held
    if (held === undefined || socket.destroyed || !socket.writable) return
    this.#held = undefined
    if (socket.isPaused()) socket.resume()
    this.take(held)
  }

  closeIfIdleSince(before: Instant): void {
    if (this.#response === undefined && this.#idleSince < before) this.socket.destroy()
  }

  #hold(bytes: Buffer): void {
    this.#held = this.#held === undefined ? bytes : Buffer.concat([this.#held, bytes])
    if (this.#held.length >= HELD_BYTES_MAX) this.socket.pause()
  }

  /** From here the connection is Node's for good, as if it had just come with these bytes. */
  #handOver(bytes: Buffer): void {
    const { socket } = this
    this.#release()
    this.#fast.server.open.expect(socket)
    this.#fast.server.readOne(socket)
    // The parser takes what is emitted as it takes what it reads; giving bytes back would take as long again.
    socket.emit('data', bytes)
  }

  #release(): void {
    const { socket } = this
    socket.off('data', this.#take)
    socket.off('drain', this.#drained)
    socket.off('end', this.#end)
    socket.off('error', ignore)
    socket.off('close', this.#close)
    this.#fast.leave(this)
  }
}

/** A client that breaks off is no fault of ours; 'close' follows. */
const ignore = (): void => {}
