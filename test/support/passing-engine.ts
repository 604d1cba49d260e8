import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * An engine with endpoints that are passed through. It keeps nothing of what it reads but its first bytes, its size and
 * its hash, so that a test may send more than memory holds. A behaviour answers one request, when it likes.
 */
export interface PassedCall {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly path: string
  /** Reads to the end. Rejects when the gateway goes. */
  readonly readAll: () => Promise<PassedBody>
}

export interface PassedBody {
  readonly bytes: number
  readonly hash: string
  /** The first 64 KiB, one byte to a character. */
  readonly begin: string
}

export type Passing = (call: PassedCall) => void | Promise<void>

export class PassingEngine {
  readonly seen: Array<{ readonly path: string; readonly headers: IncomingMessage['headers']; body?: PassedBody }> = []
  readonly #server = createServer((req, res) => void this.#answer(req, res))
  readonly #next: Passing[] = []
  behaviour: Passing
  openCount = 0
  /** Bytes of bodies that have come so far, over all calls. */
  receivedBytes = 0

  private constructor(behaviour: Passing) {
    this.behaviour = behaviour
  }

  static async start(behaviour: Passing): Promise<PassingEngine> {
    const engine = new PassingEngine(behaviour)
    await new Promise<void>((resolve) => engine.#server.listen(0, '127.0.0.1', resolve))
    return engine
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`
  }

  next(...behaviours: Passing[]): void {
    this.#next.push(...behaviours)
  }

  close(): Promise<void> {
    this.#server.closeAllConnections()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    res.on('error', () => {})
    req.on('error', () => {})
    if (req.method === 'GET') {
      res.writeHead(req.url === '/health' ? 200 : 404).end()
      return
    }
    this.openCount++
    res.on('close', () => {
      this.openCount--
    })
    const path = req.url ?? ''
    const seen: (typeof this.seen)[number] = { path, headers: req.headers }
    this.seen.push(seen)
    const readAll = async (): Promise<PassedBody> => {
      seen.body = await readBody(req, (bytes) => {
        this.receivedBytes += bytes
      })
      return seen.body
    }
    try {
      await (this.#next.shift() ?? this.behaviour)({ req, res, path, readAll })
    } catch {
      // The gateway has gone in the middle.
    }
  }
}

async function readBody(req: IncomingMessage, onBytes: (bytes: number) => void): Promise<PassedBody> {
  const hash = createHash('sha256')
  let bytes = 0
  let begin = ''
  for await (const piece of req as AsyncIterable<Buffer>) {
    hash.update(piece)
    bytes += piece.length
    onBytes(piece.length)
    if (begin.length < 65_536) begin += piece.toString('latin1')
  }
  return { bytes, hash: hash.digest('hex'), begin }
}

/** Reads everything, then answers in JSON. */
export const takes =
  (answer: unknown = { text: 'a weir' }, status = 200): Passing =>
  async ({ res, readAll }) => {
    await readAll()
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  }
