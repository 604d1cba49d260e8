import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { makeWriteBatch } from '../base/live-turn-batch.ts'
import type { HttpResponse } from './http-message.ts'
import { STATUS_CODES, validateHeaderName, validateHeaderValue } from './http-node.ts'

/**
 * A response of the fast path. It sends what Node's `ServerResponse` would send, byte by byte (its test compares
 * them), and takes fewer steps: a whole answer is one write, and so is everything that is written to a stream
 * until the code that runs now has ended.
 */
export interface FastWay {
  readonly socket: Socket
  /** The value of the Date header. */
  date(): string
  /** Lines of the head that keep the connection open. */
  readonly keepAliveLines: string
  /** The response is through, and the kernel has all of it. */
  passed(response: FastResponse): void
}

/** What is written to streams in one turn of the event loop goes out together. */
const streams = makeWriteBatch()

const CLOSE_LINE = 'Connection: close\r\n'
/** What a header's value may not have: Node's own rule. */
const BAD_VALUE = /[^\t\x20-\x7e\x80-\xff]/
const PLAIN_NAME = /^[\w-]+$/

export class FastResponse extends EventEmitter implements HttpResponse {
  shouldKeepAlive = true
  destroyed = false
  headersSent = false
  writableEnded = false
  writableFinished = false
  readonly #way: FastWay
  #set: string[] | undefined
  /** The head while it waits for the first bytes of the body. */
  #head = ''
  #isChunked = false
  #hasBody = true
  /** What is written to the stream before this turn is over, with its bytes. */
  #gathered = ''
  #gatheredBytes = 0
  #isFlushDue = false
  #needsDrain = false
  #taken: Array<() => void> = []
  #onTimeout: (() => void) | undefined

  constructor(way: FastWay) {
    super()
    this.#way = way
  }

  get writableLength(): number {
    return this.#way.socket.writableLength + this.#head.length + this.#gatheredBytes
  }

  setHeader(name: string, value: string): void {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    this.#set = [...without(this.#set ?? [], [name]), name, value]
  }

  writeHead(status: number, given: string[]): void {
    if (this.headersSent) throw new Error('the head has been written already')
    const headers = this.#set === undefined ? given : [...without(this.#set, given), ...given]
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n`
    let hasLength = false
    let hasDate = false
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i] as string
      const value = headers[i + 1] as string
      if (!PLAIN_NAME.test(name)) validateHeaderName(name)
      if (BAD_VALUE.test(value)) validateHeaderValue(name, value)
      head += `${name}: ${value}\r\n`
      if (name.length === 14) hasLength ||= name.toLowerCase() === 'content-length'
      else if (name.length === 4) hasDate ||= name.toLowerCase() === 'date'
    }
    this.#hasBody = !(status === 204 || status === 304)
    this.#isChunked = this.#hasBody && !hasLength
    if (!hasDate) head += `Date: ${this.#way.date()}\r\n`
    head += this.shouldKeepAlive ? this.#way.keepAliveLines : CLOSE_LINE
    this.#head = this.#isChunked ? `${head}Transfer-Encoding: chunked\r\n\r\n` : `${head}\r\n`
    this.headersSent = true
  }

  flushHeaders(): void {
    if (this.#head === '' || this.destroyed) return
    this.#way.socket.write(this.#head, 'latin1')
    this.#head = ''
  }

  write(part: string | Uint8Array, taken?: () => void): boolean {
    if (this.destroyed || this.writableEnded || !this.#hasBody || part.length === 0) {
      // Nothing will be sent, so there is nothing to wait for.
      if (taken !== undefined) queueMicrotask(taken)
      return !this.destroyed
    }
    if (!this.headersSent) this.writeHead(200, [])
    if (taken !== undefined) this.#taken.push(taken)
    if (typeof part === 'string') {
      this.#gathered += part
      this.#gatheredBytes += Buffer.byteLength(part)
      this.#flushLater()
    } else {
      this.#flush()
      this.#sendBytes(part)
    }
    const { socket } = this.#way
    const hasRoom = this.writableLength < socket.writableHighWaterMark
    if (!hasRoom) this.#needsDrain = true
    return hasRoom
  }

  end(last = '', encoding: 'latin1' | 'utf8' = 'utf8'): void {
    if (this.writableEnded || this.destroyed) return
    if (!this.headersSent) this.writeHead(200, [])
    this.writableEnded = true
    if (!this.#isChunked && this.#gatheredBytes === 0) {
      const text = this.#hasBody ? this.#head + last : this.#head
      this.#head = ''
      this.#way.socket.write(text, encoding, this.#pass)
      return
    }
    if (last !== '') {
      this.#gathered += last
      this.#gatheredBytes += Buffer.byteLength(last)
    }
    this.#send(this.#isChunked ? '0\r\n\r\n' : '', this.#pass)
  }

  destroy(): void {
    this.destroyed = true
    this.#way.socket.destroy()
  }

  setTimeout(ms: number, fn: () => void): void {
    this.#forgetTimeout()
    this.#onTimeout = fn
    this.#way.socket.setTimeout(ms, fn)
  }

  /** The socket has sent what it had. */
  drained(): void {
    if (!this.#needsDrain || this.writableLength > 0) return
    this.#needsDrain = false
    this.emit('drain')
  }

  /** The connection is gone. */
  leave(): void {
    if (this.writableFinished) return
    this.destroyed = true
    for (const taken of this.#taken.splice(0)) taken()
    this.emit('close')
  }

  readonly #pass = (error?: Error | null): void => {
    // 'close' of the connection follows.
    if (error !== undefined && error !== null) return
    this.#forgetTimeout()
    this.writableFinished = true
    this.destroyed = true
    this.emit('finish')
    this.emit('close')
    this.#way.passed(this)
  }

  #forgetTimeout(): void {
    if (this.#onTimeout === undefined) return
    const { socket } = this.#way
    socket.setTimeout(0)
    socket.off('timeout', this.#onTimeout)
    this.#onTimeout = undefined
  }

  #flushLater(): void {
    if (this.#isFlushDue) return
    this.#isFlushDue = true
    streams.add(this.#flushNow)
  }

  readonly #flushNow = (): void => {
    this.#isFlushDue = false
    this.#flush()
  }

  #flush(): void {
    if (this.#gatheredBytes === 0 || this.destroyed) return
    if (this.#taken.length === 0) this.#send('')
    else {
      const taken = this.#taken
      this.#taken = []
      this.#send('', () => {
        for (const one of taken) one()
      })
    }
    // The socket counts characters where we count bytes: it may have room where we saw none, and then says no 'drain'.
    if (!this.#needsDrain || this.#way.socket.writableNeedDrain) return
    this.#needsDrain = false
    this.emit('drain')
  }

  /** One write: the head if it waits, what has been gathered, and `tail`. */
  #send(tail: string, sent?: (error?: Error | null) => void): void {
    const bytes = this.#gatheredBytes
    const encoding = bytes === this.#gathered.length ? 'latin1' : 'utf8'
    const body = this.#isChunked && bytes > 0 ? `${bytes.toString(16)}\r\n${this.#gathered}\r\n` : this.#gathered
    const text = this.#head + body + tail
    this.#head = ''
    this.#gathered = ''
    this.#gatheredBytes = 0
    if (sent === undefined) this.#way.socket.write(text, encoding)
    else this.#way.socket.write(text, encoding, sent)
  }

  #sendBytes(bytes: Uint8Array): void {
    const { socket } = this.#way
    const taken = this.#taken
    this.#taken = []
    const sent = (): void => {
      for (const one of taken) one()
    }
    socket.cork()
    this.flushHeaders()
    if (this.#isChunked) socket.write(`${bytes.length.toString(16)}\r\n`, 'latin1')
    socket.write(bytes, sent)
    if (this.#isChunked) socket.write('\r\n', 'latin1')
    socket.uncork()
  }
}

/** These headers without those that `given` names, too: the latter replace them. */
function without(headers: readonly string[], given: readonly string[]): string[] {
  const replaced = new Set<string>()
  for (let i = 0; i < given.length; i += 2) replaced.add((given[i] as string).toLowerCase())
  const rest: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string
    if (!replaced.has(name.toLowerCase())) rest.push(name, headers[i + 1] as string)
  }
  return rest
}
