import type { Clock } from './clock.ts'
import { withinTime } from './within-time.ts'

/**
 * Calls between two processes over a channel of messages, in both directions: each end asks, and answers what the other
 * end asks. Nothing here knows what the channel is; a test joins two lines directly.
 *
 * Bounds: `inFlightMax` calls that wait for an answer, each for its own time limit. A call beyond, a call whose time is
 * over and a call on a closed line reject with `LineAway`; an answer that comes later is thrown away. What the other end
 * threw arrives as `CallFault`, with the name, the code and the detail that it had there.
 */
export interface CallLineOptions {
  readonly clock: Clock
  /** Hands a message to the channel; may throw when the channel is closed. */
  readonly send: (message: LineMessage) => void
  readonly inFlightMax?: number
}

export type LineMessage =
  | { readonly kind: 'ask'; readonly id: number; readonly what: string; readonly value: unknown }
  | { readonly kind: 'say'; readonly what: string; readonly value: unknown }
  | { readonly kind: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'fault'; readonly id: number; readonly fault: ToldFault }

interface ToldFault {
  readonly name: string
  readonly message: string
  readonly code: string | undefined
  readonly detail: string | undefined
}

/** A listener for one kind of call; what it returns or throws is the answer. */
export type LineHandler = (value: never) => unknown

/** There is no answer: the other end is gone, slow, or has too many calls already. */
export class LineAway extends Error {
  override readonly name = 'LineAway'
}

/** The other end threw. */
export class CallFault extends Error {
  readonly code: string | undefined
  readonly detail: string | undefined

  constructor({ name, message, code, detail }: ToldFault) {
    super(message)
    this.name = name
    this.code = code
    this.detail = detail
  }
}

/** The calls of a process that is busy with its start or with many tenants; more means that the other end hangs. */
const IN_FLIGHT_MAX = 1_000

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

export class CallLine {
  readonly #options: CallLineOptions
  readonly #handlers = new Map<string, LineHandler>()
  readonly #waiting = new Map<number, Waiting>()
  #lastId = 0
  #closedBecause: string | undefined

  constructor(options: CallLineOptions) {
    this.#options = options
  }

  get isClosed(): boolean {
    return this.#closedBecause !== undefined
  }

  get inFlightCount(): number {
    return this.#waiting.size
  }

  /** Answers calls of this kind; a kind has one handler. */
  on(what: string, handler: LineHandler): void {
    this.#handlers.set(what, handler)
  }

  /** Asks the other end and waits for `usMax` at most. */
  async ask(what: string, value: unknown, usMax: number): Promise<unknown> {
    const { clock, inFlightMax = IN_FLIGHT_MAX } = this.#options
    if (this.#closedBecause !== undefined) throw new LineAway(this.#closedBecause)
    if (this.#waiting.size >= inFlightMax) throw new LineAway(`${inFlightMax} calls to the other process wait already`)
    const id = ++this.#lastId
    const answered = new Promise<unknown>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#send({ kind: 'ask', id, what, value })
    })
    const waited = await withinTime(clock, clock.now() + usMax, answered)
    this.#waiting.delete(id)
    if (waited.kind === 'done') return waited.value
    if (waited.kind === 'failed') throw waited.error
    throw new LineAway(`the other process has not answered ${what} in time`)
  }

  /** Tells the other end something that needs no answer; lost where the line is closed. */
  say(what: string, value: unknown): void {
    if (this.#closedBecause === undefined) this.#send({ kind: 'say', what, value })
  }

  /** A message has come from the channel. What is no message of a line is ignored. */
  take(message: LineMessage): void {
    if (message.kind === 'answer') this.#waiting.get(message.id)?.resolve(message.value)
    else if (message.kind === 'fault') this.#waiting.get(message.id)?.reject(new CallFault(message.fault))
    else if (message.kind === 'ask') void this.#answer(message)
    else if (message.kind === 'say') this.#hear(message)
  }

  /** The channel is gone: whoever waits is told. */
  close(because: string): void {
    this.#closedBecause ??= because
    for (const { reject } of this.#waiting.values()) reject(new LineAway(because))
    this.#waiting.clear()
  }

  #hear({ what, value }: Extract<LineMessage, { kind: 'say' }>): void {
    try {
      const heard = this.#handlers.get(what)?.(value as never)
      if (heard instanceof Promise) heard.catch(() => {})
    } catch {
      // Nobody waits for an answer, and a handler tells its own problems.
    }
  }

  async #answer({ id, what, value }: Extract<LineMessage, { kind: 'ask' }>): Promise<void> {
    try {
      const handler = this.#handlers.get(what)
      if (handler === undefined) throw new LineAway(`the other process does not know ${what}`)
      const answer = await handler(value as never)
      this.#send({ kind: 'answer', id, value: answer })
    } catch (error) {
      this.#send({ kind: 'fault', id, fault: faultOf(error) })
    }
  }

  #send(message: LineMessage): void {
    if (this.#closedBecause !== undefined) return
    try {
      this.#options.send(message)
    } catch (error) {
      this.close(error instanceof Error ? error.message : String(error))
    }
  }
}

function faultOf(error: unknown): ToldFault {
  const { name, message, code, detail } = error as Partial<Record<keyof ToldFault, unknown>>
  return {
    name: textOf(name) ?? 'Error',
    message: textOf(message) ?? String(error),
    code: textOf(code),
    detail: textOf(detail),
  }
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
