import type { Clock } from '../base/clock.ts'
import type { OpenBody, TransitBody } from '../domain/transit.ts'
import type { FormHead } from '../wire/form-head.ts'
import type { ToldRefusal } from './error-table.ts'
import type { Exchange } from './exchange.ts'
import { allowSlowBody } from './http-connections.ts'
import type { HttpRequest } from './http-message.ts'

/**
 * A form with files on its way from a client to an engine. Its head is held: as many bytes as it takes to know the
 * model. Everything behind the head is taken from the client when the engine asks for it, piece by piece, and is not
 * kept: memory does not grow with the file, and a client is as slow as its engine.
 *
 *     client ─▶ socket ─▶ head (held until bytes behind it have gone) ─▶ engine
 *                  └────▶ pieces (one at a time) ─────────────────────▶ engine
 *
 * A client that keeps an engine waiting has a bounded time for that: it holds a turn meanwhile.
 *
 * While nobody asks for pieces, Node reads as much as its own buffer takes (64 KiB) and then no more. A client that goes
 * after that is seen when reading goes on: the end of its connection stands behind its bytes. Asking it by a 1xx answer
 * would be seen earlier, and breaks clients: undici takes a 100 that it did not ask for as an error, Python's
 * http.client takes a 102 as the answer.
 */
export interface UploadOptions {
  readonly clock: Clock
  /** Time for which an engine may wait for the next piece. */
  readonly patienceUs: number
  readonly bytesMax: number
}

export type UploadBreak = 'client-gone' | 'sender-stalled' | 'upload-too-large'

/** A file in front of `model` may be this large: a minute of speech at 128 kbit/s. */
export const UPLOAD_HEAD_BYTES_MAX = 1 << 20
/** Microseconds of waiting that each byte is worth: a client that sends less than 16 KiB a second runs out of them. */
const PATIENCE_US_PER_BYTE = 1_000_000 / (16 << 10)
/** Bytes of an upload that are read after its answer, and dropped: most clients look for an answer at the end only. */
const DROPPED_BYTES_MAX = 64 << 20

class UploadBroken extends Error {
  override readonly name = 'UploadBroken'
}

/** One reader of the upload at a time. */
interface Reading {
  isClosed: boolean
}

export class Upload implements TransitBody {
  readonly isUpload = true
  /** Told once, before the reader sees the error. */
  onBroken: (because: UploadBreak) => void = () => {}
  readonly #exchange: Exchange
  readonly #options: UploadOptions
  readonly #form: FormHead
  readonly #declaredBytes: number | undefined
  #receivedBytes = 0
  #waitedUs = 0
  #broken: UploadBreak | undefined
  /** Bytes behind the head have gone. */
  #isRestTaken = false
  #head: Buffer | undefined
  #wake: () => void = () => {}
  readonly #onEvent = (): void => this.#wake()

  constructor(exchange: Exchange, form: FormHead, options: UploadOptions) {
    this.#exchange = exchange
    this.#form = form
    this.#options = options
    this.#declaredBytes = declaredBytesOf(exchange.req)
    const { req, res } = exchange
    allowSlowBody(res)
    for (const event of EVENTS) req.on(event, this.#onEvent)
  }

  /** Reads until the model is known, the form ends, or the head is full; then `FormHead` has what there is. */
  async readHead(): Promise<'ok' | UploadBreak | ToldRefusal> {
    const form = this.#form
    const { visit } = this.#exchange
    const reading: Reading = { isClosed: false }
    try {
      while (!isKnown(form)) {
        const piece = await this.#pull(reading)
        if (piece === undefined) break
        const refusal = visit?.buffer(piece.length)
        if (refusal !== undefined) return refusal
        form.take(piece)
      }
    } catch (error) {
      if (error instanceof UploadBroken && this.#broken !== undefined) return this.#broken
      throw error
    }
    this.#head = form.bytes
    return 'ok'
  }

  /** Whether the body has ended within its head. */
  get isAllHeld(): boolean {
    return this.#exchange.req.readableEnded && !this.#isRestTaken
  }

  get canOpen(): boolean {
    return this.#head !== undefined && !this.#isRestTaken && this.#broken === undefined
  }

  open(model: string): OpenBody {
    const head = this.#form.namedIn(this.#head ?? Buffer.alloc(0), model)
    const held = head.reduce((sum, { length }) => sum + length, 0)
    const grownBytes = held - (this.#head?.length ?? 0)
    const reading: Reading = { isClosed: false }
    return {
      length: this.#declaredBytes === undefined ? undefined : this.#declaredBytes + grownBytes,
      pieces: this.#pieces(head, reading),
      close: () => {
        reading.isClosed = true
        this.#wake()
      },
    }
  }

  /** The request is over: what has not been read is dropped, within bounds. */
  end(): void {
    const { req, visit } = this.#exchange
    for (const event of EVENTS) req.off(event, this.#onEvent)
    this.#head = undefined
    visit?.release()
    dropRest(this.#exchange, this.#options)
  }

  async *#pieces(head: readonly Buffer[], reading: Reading): AsyncGenerator<Uint8Array> {
    yield* head
    for (;;) {
      const piece = await this.#pull(reading)
      if (piece === undefined) return
      this.#letHeadGo()
      yield piece
    }
  }

  /** The head is only good for another attempt, and there is none once bytes behind it have gone. */
  #letHeadGo(): void {
    if (this.#isRestTaken) return
    this.#isRestTaken = true
    this.#head = undefined
    this.#exchange.visit?.release()
  }

  /** The next piece; undefined at the end, and for a reader that has closed. */
  async #pull(reading: Reading): Promise<Buffer | undefined> {
    const { req } = this.#exchange
    for (;;) {
      if (this.#broken !== undefined) throw new UploadBroken(this.#broken)
      if (reading.isClosed) return undefined
      const piece = req.read() as Buffer | null
      if (piece !== null) {
        this.#count(piece.length)
        if (this.#broken === undefined) return piece
      } else if (req.readableEnded) return undefined
      else if (req.destroyed) this.#break('client-gone')
      else await this.#more()
    }
  }

  #count(bytes: number): void {
    const { visit } = this.#exchange
    this.#receivedBytes += bytes
    if (this.#declaredBytes === undefined) visit?.passMore(bytes)
    if (this.#receivedBytes > this.#options.bytesMax) this.#break('upload-too-large')
  }

  async #more(): Promise<void> {
    const { clock, patienceUs } = this.#options
    const from = clock.now()
    const earnedUs = patienceUs + this.#receivedBytes * PATIENCE_US_PER_BYTE
    const leftUs = Math.min(patienceUs, earnedUs - this.#waitedUs)
    await new Promise<void>((resolve) => {
      const forget = clock.at(from + Math.ceil(Math.max(0, leftUs)), () => {
        this.#break('sender-stalled')
        this.#wake()
      })
      this.#wake = () => {
        forget()
        resolve()
      }
    })
    this.#wake = () => {}
    this.#waitedUs += clock.now() - from
  }

  #break(because: UploadBreak): void {
    if (this.#broken !== undefined) return
    this.#broken = because
    this.onBroken(because)
  }
}

const EVENTS = ['readable', 'end', 'close', 'error'] as const

const isKnown = (form: FormHead): boolean =>
  form.isWhole || form.problem !== undefined || form.fields.has('model') || form.bytes.length >= UPLOAD_HEAD_BYTES_MAX

export function declaredBytesOf({ headers }: HttpRequest): number | undefined {
  const declared = Number(headers['content-length'] ?? Number.NaN)
  return Number.isNaN(declared) ? undefined : declared
}

/**
 * Reads on and throws away, so that a client which is still sending gets its answer and not a reset. A client that
 * sends far more than that, or far longer, is disconnected.
 */
export function dropRest({ req }: Exchange, { clock, patienceUs }: Pick<UploadOptions, 'clock' | 'patienceUs'>): void {
  if (req.readableEnded || req.destroyed) return
  const until = clock.now() + patienceUs
  let dropped = 0
  const drop = (): void => {
    for (let piece = req.read() as Buffer | null; piece !== null; piece = req.read() as Buffer | null) {
      dropped += piece.length
      if (dropped > DROPPED_BYTES_MAX) req.destroy()
    }
  }
  const forget = clock.at(until, () => req.destroy())
  req.on('readable', drop)
  req.on('end', forget)
  req.on('close', forget)
  drop()
}
