import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { pause } from './eventually.ts'

/**
 * An OpenAI-compatible engine that does as it is told, well or badly. A behaviour answers one request; the upstream
 * counts what is open, so that tests can see when a connection was really given up.
 */
export interface UpstreamCall {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly body: Record<string, unknown>
  /** The gateway has gone. */
  readonly isGone: () => boolean
}

export type Behaviour = (call: UpstreamCall) => void | Promise<void>

export interface SeenRequest {
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Record<string, unknown>
  /** The body as it was written. */
  readonly text: string
}

export class FakeUpstream {
  readonly seen: SeenRequest[] = []
  /** Used for every request that `next` has nothing for, and for the gateway's own questions. */
  behaviour: Behaviour = answers()
  readonly #next: Behaviour[] = []
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer((req, res) => void this.#answer(req, res))
  #openAnswers = 0
  isHealthy = true
  /** Who may call: what it returns answers instead. */
  guard: (req: IncomingMessage, text: string) => Behaviour | undefined | Promise<Behaviour | undefined> = () =>
    undefined

  static async start(behaviour: Behaviour = answers(), at = { host: '127.0.0.1', port: 0 }): Promise<FakeUpstream> {
    const upstream = new FakeUpstream()
    upstream.behaviour = behaviour
    upstream.#server.on('connection', (socket) => {
      upstream.#sockets.add(socket)
      socket.on('close', () => upstream.#sockets.delete(socket))
    })
    await new Promise<void>((resolve) => {
      upstream.#server.listen(at.port, at.host, resolve)
    })
    return upstream
  }

  get url(): string {
    const { address, port } = this.#server.address() as AddressInfo
    return `http://${address}:${port}/v1`
  }

  /** Answers that have begun and whose connection is still there. */
  get openAnswers(): number {
    return this.#openAnswers
  }

  /** What the operating system took off our hands, over all connections. */
  get bytesWritten(): number {
    let bytes = 0
    for (const socket of this.#sockets) bytes += socket.bytesWritten - socket.writableLength
    return bytes
  }

  next(...behaviours: Behaviour[]): void {
    this.#next.push(...behaviours)
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => {
      this.#server.close(resolve)
    })
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    res.on('error', () => {})
    if (req.method === 'GET') {
      const refused = await this.guard(req, '')
      if (refused !== undefined) return void refused({ req, res, body: {}, isGone: () => res.closed })
      res.writeHead(req.url === '/health' && this.isHealthy ? 200 : 404).end()
      return
    }
    let isGone = false
    this.#openAnswers++
    res.on('close', () => {
      isGone = true
      this.#openAnswers--
    })
    let text = ''
    try {
      for await (const part of req) text += String(part)
    } catch {
      return
    }
    const body = JSON.parse(text) as Record<string, unknown>
    this.seen.push({ path: req.url ?? '', headers: req.headers, body, text })
    const refused = await this.guard(req, text)
    const next = isQuestion(body) ? undefined : this.#next.shift()
    await (refused ?? next ?? this.behaviour)({ req, res, body, isGone: () => isGone })
  }
}

/** A gateway asks an engine that it suspects for one token. */
export const isQuestion = ({ messages, max_tokens }: Record<string, unknown>): boolean =>
  max_tokens === 1 && JSON.stringify(messages) === '[{"role":"user","content":"."}]'

export interface Answer {
  readonly words?: readonly string[]
  readonly finishReason?: string | null
  /** Whether it says how many tokens it used. */
  readonly hasUsage?: boolean
  readonly hasDone?: boolean
  readonly everyMs?: number
  readonly lineEnd?: '\n' | '\r\n' | '\r'
  readonly hasComments?: boolean
  /** Sends its bytes in pieces of this size, across frames and characters. */
  readonly pieceBytes?: number
  /** Breaks the connection off after so many words. */
  readonly breaksAfter?: number
}

export const WORDS = ['The ', 'weir ', 'holds ', 'the ', 'wäter ', 'lëvel 🌊.']

/** Answers as asked: streamed or whole, chat or completion, n choices with the same words. */
export function answers(answer: Answer = {}): Behaviour {
  return (call) => (call.body['stream'] === true ? stream(call, answer) : whole(call, answer))
}

/** Answers, but none before the gate is opened: a test that needs one under way does not hurry. */
export function gated(): { readonly behaviour: Behaviour; readonly openGate: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  const behaviour: Behaviour = async (call) => {
    await promise
    await answers()(call)
  }
  return { behaviour, openGate: resolve }
}

/** A server with one path for everything tells by the body. */
const isChat = ({ req, body }: UpstreamCall): boolean =>
  req.url?.endsWith('/chat/completions') === true || (req.url?.includes('/invocations') === true && 'messages' in body)

const usageOf = (call: UpstreamCall, words: readonly string[]) => ({
  prompt_tokens: 11,
  completion_tokens: words.length * Number(call.body['n'] ?? 1),
  total_tokens: 11 + words.length * Number(call.body['n'] ?? 1),
  prompt_tokens_details: { cached_tokens: 4 },
})

async function whole(call: UpstreamCall, answer: Answer): Promise<void> {
  const { words = WORDS, finishReason = 'stop', hasUsage = true, everyMs = 0 } = answer
  await pause(everyMs * words.length)
  const text = words.join('')
  const choices = Array.from({ length: Number(call.body['n'] ?? 1) }, (_, index) =>
    isChat(call)
      ? {
          index,
          message: { role: 'assistant', content: text, refusal: null },
          logprobs: null,
          finish_reason: finishReason,
        }
      : { index, text, logprobs: null, finish_reason: finishReason },
  )
  const body = JSON.stringify({ id: 'up-1', choices, ...(hasUsage ? { usage: usageOf(call, words) } : {}) })
  call.res.writeHead(200, { 'content-type': 'application/json' }).end(body)
}

async function stream(call: UpstreamCall, answer: Answer): Promise<void> {
  const { words = WORDS, everyMs = 0, breaksAfter = Number.POSITIVE_INFINITY, pieceBytes } = answer
  const frames = framesOf(call, answer)
  const { res } = call
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  if (breaksAfter <= words.length) frames.length = breaksAfter
  for (const frame of pieceBytes === undefined ? frames : piecesOf(frames.join(''), pieceBytes)) {
    if (call.isGone()) return
    const isTaken = res.write(frame)
    if (everyMs > 0) await pause(everyMs)
    else if (pieceBytes !== undefined) await new Promise(setImmediate)
    if (!isTaken && !call.isGone()) await drained(res)
  }
  if (breaksAfter <= words.length) res.destroy()
  else res.end()
}

function framesOf(call: UpstreamCall, answer: Answer): string[] {
  const { words = WORDS, finishReason = 'stop', hasUsage = true, hasDone = true, lineEnd = '\n' } = answer
  const frame = (data: string): string => `data: ${data}${lineEnd}${lineEnd}`
  const comment = answer.hasComments === true ? `: still here${lineEnd}${lineEnd}` : ''
  const indexes = Array.from({ length: Number(call.body['n'] ?? 1) }, (_, index) => index)
  const said = (index: number, content: string) =>
    isChat(call) ? { index, delta: { content } } : { index, text: content, logprobs: null }
  const chunk = (choice: object, finish_reason: string | null): string =>
    comment + frame(JSON.stringify({ id: 'up-1', choices: [{ ...choice, finish_reason }] }))
  const frames = words.flatMap((word) => indexes.map((index) => chunk(said(index, word), null)))
  if (finishReason !== null) {
    for (const index of indexes) frames.push(chunk(isChat(call) ? { index, delta: {} } : said(index, ''), finishReason))
  }
  if (hasUsage) frames.push(frame(JSON.stringify({ id: 'up-1', choices: [], usage: usageOf(call, words) })))
  if (hasDone) frames.push(frame('[DONE]'))
  return frames
}

function piecesOf(text: string, bytes: number): Buffer[] {
  const all = Buffer.from(text)
  return Array.from({ length: Math.ceil(all.length / bytes) }, (_, i) => all.subarray(i * bytes, (i + 1) * bytes))
}

/** The other side has taken what was written, or has gone. */
export function drained(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      res.off('drain', done)
      res.off('close', done)
      resolve()
    }
    res.on('drain', done)
    res.on('close', done)
  })
}

/** Refuses or breaks, with whatever body engines and proxies send then. */
export function fails(status: number, body: unknown, headers: Record<string, string> = {}): Behaviour {
  return ({ res }) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text)
  }
}

/** Takes the request and says nothing until the other side gives up. */
export const hangs: Behaviour = () => {}

/** Takes the request and closes the connection without a word. */
export const dropsConnection: Behaviour = ({ res }) => {
  res.destroy()
}

/** Sends exactly these pieces as the body of a stream. */
export function sends(...pieces: string[]): Behaviour {
  return ({ res }) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const piece of pieces) res.write(piece)
    res.end()
  }
}
