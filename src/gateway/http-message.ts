import type { IncomingHttpHeaders } from 'node:http'

/**
 * A request and its response as routes see them, whoever read the request: Node's HTTP/1, Node's HTTP/2, or the fast
 * path. The members are those of Node's own objects that routes use, with Node's names and meanings, so that Node's
 * objects are used as they are.
 */
export interface HttpRequest {
  readonly method?: string | undefined
  url?: string | undefined
  /** Not to be written to: requests of one connection may share it. */
  readonly headers: Readonly<IncomingHttpHeaders>
  readonly httpVersionMinor: number
  /** The other end of the connection. */
  readonly socket: { readonly remoteAddress?: string | undefined }
  /** Gives the body, once, where all of it came together with the head; if absent, the body is read from the stream. */
  takeWhole?(): Buffer | undefined
  readonly complete: boolean
  readonly readableEnded: boolean
  readonly destroyed: boolean
  read(): unknown
  pause(): unknown
  destroy(): unknown
  on(event: 'data', listener: (part: Buffer) => void): unknown
  on(event: 'readable' | 'end' | 'close' | 'error', listener: () => void): unknown
  off(event: 'data', listener: (part: Buffer) => void): unknown
  off(event: 'readable' | 'end' | 'close' | 'error', listener: () => void): unknown
}

export interface HttpResponse {
  /** False: the connection closes after this response. */
  shouldKeepAlive: boolean
  /** The head has been given; it leaves with the first bytes of the body. */
  readonly headersSent: boolean
  /** The connection is gone, or the response is through. */
  readonly destroyed: boolean
  readonly writableEnded: boolean
  /** The kernel has all of it. */
  readonly writableFinished: boolean
  /** Bytes that wait in this process for the reader. */
  readonly writableLength: number
  setHeader(name: string, value: string): unknown
  /** Names and values in turn. */
  writeHead(status: number, headers: string[]): unknown
  /** Sends the head without waiting for the first bytes of the body. */
  flushHeaders(): void
  /** False: as much waits as should; 'drain' says when it has gone. `taken` is called when the kernel has the bytes. */
  write(part: string | Uint8Array, taken?: () => void): boolean
  end(): unknown
  end(last: string): unknown
  end(last: string, encoding: 'latin1' | 'utf8'): unknown
  destroy(): unknown
  /** Calls `fn` when no byte has moved for this long. */
  setTimeout(ms: number, fn: () => void): unknown
  /** 'finish': the kernel has all of it. 'close': finished, or the connection is gone. 'drain': see `write`. */
  on(event: 'finish' | 'close' | 'drain', listener: () => void): unknown
  off(event: 'finish' | 'close' | 'drain', listener: () => void): unknown
}
