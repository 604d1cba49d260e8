import {
  constants,
  createServer,
  type Http2Server,
  type Http2ServerRequest,
  Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2'
import { type Clock, msToUs, secondsToUs } from '../base/clock.ts'
import { invalidRequest, type WireFault } from '../wire/openai-error.ts'
import { Exchange } from './exchange.ts'
import type { HttpRequest, HttpResponse } from './http-message.ts'
import type { HttpServer } from './http-server.ts'

/**
 * HTTP/2 for the same routes. Node's compatibility layer makes a stream look like a request and a response of HTTP/1;
 * this file adds what the layer lacks, and bounds what a connection may do. The server here does not listen: the front
 * door hands it connections.
 *
 * Bounded by Node or nghttp2 (a connection that goes beyond is closed with GOAWAY, a stream with RST_STREAM):
 *
 *     streams at once            `streamsMax`
 *     resets of the client       a burst of `RESETS_BURST`, then `RESETS_PER_S` (rapid reset, CVE-2023-44487)
 *     headers of a request       `HEADER_PAIRS_MAX`, and 64 kB (we answer 431 above `HEADER_BYTES_MAX`); CONTINUATION frames: 8 for each HEADERS (nghttp2)
 *     acknowledgements unsent    1,000 for PING and SETTINGS together (nghttp2)
 *     memory of a connection     `memoryMbMax`
 *
 * Bounded here: pings and settings that are answered (`CONTROL_FRAMES_PER_MINUTE`), and the times of `HttpTwoOptions`.
 */
export interface HttpTwoOptions {
  readonly clock: Clock
  /** Streams that one connection may have open at once. */
  readonly streamsMax: number
  /** Bytes that may wait for one slow reader. */
  readonly aheadBytesMax: number
  /** From the connection to its first request. */
  readonly headersTimeoutMs: number
  /** From the headers of a request to the end of its body. */
  readonly requestTimeoutMs: number
  readonly idleTimeoutMs: number
  readonly makeRequestId: () => string
}

/** A page that is left cancels all of its streams at once; more than that is an attack. */
const RESETS_BURST = 1_000
const RESETS_PER_S = 33
/** Browsers and SDKs send about thirty. */
const HEADER_PAIRS_MAX = 100
/** As many bytes as HTTP/1 takes (Node's `maxHeaderSize`). */
const HEADER_BYTES_MAX = 16 * 1_024
/** A client that measures the way sends a ping every few seconds. */
export const CONTROL_FRAMES_PER_MINUTE = 600
/** Frames that break the protocol, and streams beyond the bound, that one connection may send. */
const INVALID_FRAMES_MAX = 100
/** Request bodies on their way to us, over all streams of a connection. */
const CONNECTION_WINDOW_BYTES = 1_048_576
/** What a session holds beside answers: header tables and bodies on their way. */
const OTHER_MEMORY_MB = 16

export function makeHttpTwo(server: HttpServer, options: HttpTwoOptions): Http2Server {
  const { clock, streamsMax, aheadBytesMax } = options
  const two = createServer({
    maxSessionMemory: OTHER_MEMORY_MB + Math.ceil((streamsMax * aheadBytesMax) / 1_000_000),
    maxHeaderListPairs: HEADER_PAIRS_MAX,
    maxSessionInvalidFrames: INVALID_FRAMES_MAX,
    maxSessionRejectedStreams: INVALID_FRAMES_MAX,
    streamResetBurst: RESETS_BURST,
    streamResetRate: RESETS_PER_S,
    settings: { maxConcurrentStreams: streamsMax, maxHeaderListSize: HEADER_BYTES_MAX, enablePush: false },
    Http2ServerResponse: TwoResponse,
  })
  const { sessions } = server.open
  two.on('session', (session) => {
    sessions.add(session)
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES)
    const stop = clock.at(clock.now() + msToUs(options.headersTimeoutMs), () => session.destroy())
    session.once('stream', stop)
    session.once('close', stop)
    // A connection is idle when it has no stream, however long the answers on it take.
    session.setTimeout(options.idleTimeoutMs, () => {
      if (sessions.answersOn(session) === 0) session.close()
    })
    boundControlFrames(session, clock)
  })
  // A broken connection ends its streams, and they are told by 'close'.
  two.on('sessionError', () => {})
  two.on('request', (req, res) => {
    const { session } = req.stream
    if (session !== undefined) sessions.note(session as ServerHttp2Session, res)
    if (headerBytes(req.rawHeaders) > HEADER_BYTES_MAX) {
      const fault = invalidRequest('The request headers are too long.', null, 'headers-too-large')
      refuse(req, res, server, options, fault)
      return
    }
    if (!req.stream.endAfterHeaders) awaitBody(req, res, server, options)
    server.answer(req, res)
  })
  return two
}

/** What HTTP/1's response has and the layer's has not. */
class TwoResponse extends Http2ServerResponse<Http2ServerRequest> {
  /** Node's class has it, Node's types have not. */
  declare readonly flushHeaders: () => void

  /** HTTP/1 closes a connection whose request is not read to its end; here only the stream is closed. */
  set shouldKeepAlive(isReadToEnd: boolean) {
    if (!isReadToEnd) this.stream.once('finish', () => this.stream.close(constants.NGHTTP2_NO_ERROR))
  }
}

Object.defineProperties(TwoResponse.prototype, {
  // Declared by Node's types and absent from Node's class.
  destroyed: {
    get(this: TwoResponse): boolean {
      return this.stream.destroyed
    },
  },
  // The layer ends the writing side of a stream that the client has reset, and would call that a finished answer.
  writableFinished: {
    get(this: TwoResponse): boolean {
      return this.stream.writableFinished && !this.stream.aborted
    },
  },
})

function headerBytes(raw: readonly string[]): number {
  let bytes = 0
  for (const part of raw) bytes += part.length
  return bytes
}

/** Answers in the usual shape, and reads nothing more of the stream. */
function refuse(
  req: HttpRequest,
  res: HttpResponse,
  { errors }: HttpServer,
  { makeRequestId }: HttpTwoOptions,
  fault: WireFault,
): void {
  res.shouldKeepAlive = false
  new Exchange(req, res, makeRequestId(), errors).sendFault(fault)
}

/** Node has no timer for the bodies of HTTP/2. */
function awaitBody(req: HttpRequest, res: HttpResponse, server: HttpServer, options: HttpTwoOptions): void {
  const { clock, requestTimeoutMs } = options
  const stop = clock.at(clock.now() + msToUs(requestTimeoutMs), () => {
    const fault = invalidRequest('The request was not sent in time.', null, 'request-too-slow')
    if (!req.complete) refuse(req, res, server, options, fault)
  })
  req.on('end', stop)
  res.on('close', stop)
}

function boundControlFrames(session: ServerHttp2Session, clock: Clock): void {
  let since = clock.now()
  let count = 0
  const take = (): void => {
    const now = clock.now()
    if (now - since > secondsToUs(60)) {
      since = now
      count = 0
    }
    count += 1
    if (count > CONTROL_FRAMES_PER_MINUTE) session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM)
  }
  session.on('ping', take)
  session.on('remoteSettings', take)
}
