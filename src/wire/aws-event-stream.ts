import { crc32 } from 'node:zlib'

/**
 * AWS's frames around a stream (`application/vnd.amazon.eventstream`), taken apart. Bytes come in any split; a message is
 * handed on when it is whole and both of its checksums are right.
 *
 *     length 4 │ length of headers 4 │ CRC 4 │ headers │ payload │ CRC 4        big-endian, CRC as in gzip
 */
export interface AwsMessage {
  /** Headers that are texts, which are all that we ask for: `:message-type`, `:event-type`, `:exception-type`. */
  readonly headers: ReadonlyMap<string, string>
  readonly payload: Buffer
}

/** The stream cannot be read on: the frames' borders are lost. */
export class AwsFrameFault extends Error {
  override readonly name = 'AwsFrameFault'
  readonly code: string

  constructor(code: 'CORRUPT_FRAME' | 'FRAME_TOO_LONG') {
    super(code)
    this.code = code
  }
}

const PRELUDE_BYTES = 12
const CRC_BYTES = 4
/** The longest payload of SageMaker (6 MiB) with its headers. */
export const AWS_FRAME_BYTES_MAX = (6 << 20) + (128 << 10)

/** Bytes of a header's value by its type; types 6 and 7 say their own length. */
const VALUE_BYTES = [0, 0, 1, 2, 4, 8, undefined, undefined, 8, 16] as const
const TEXT = 7

export class AwsEventStream {
  readonly #prelude = Buffer.alloc(PRELUDE_BYTES)
  #frame: Buffer | undefined
  #used = 0

  /** Nothing of a message is left over. */
  get isBetween(): boolean {
    return this.#frame === undefined && this.#used === 0
  }

  read(chunk: Buffer, onMessage: (message: AwsMessage) => void): void {
    for (let at = 0; at < chunk.length; ) {
      const into = this.#frame ?? this.#prelude
      const count = Math.min(into.length - this.#used, chunk.length - at)
      // A copy: the connection may read the next bytes into the same place.
      chunk.copy(into, this.#used, at, at + count)
      at += count
      this.#used += count
      if (this.#used < into.length) return
      if (this.#frame === undefined) this.#begin()
      else onMessage(this.#end(this.#frame))
    }
  }

  #begin(): void {
    const prelude = this.#prelude
    if (crc32(prelude.subarray(0, 8)) !== prelude.readUInt32BE(8)) throw new AwsFrameFault('CORRUPT_FRAME')
    const length = prelude.readUInt32BE(0)
    if (length > AWS_FRAME_BYTES_MAX) throw new AwsFrameFault('FRAME_TOO_LONG')
    if (length < PRELUDE_BYTES + CRC_BYTES + prelude.readUInt32BE(4)) throw new AwsFrameFault('CORRUPT_FRAME')
    this.#frame = Buffer.allocUnsafe(length)
    prelude.copy(this.#frame)
  }

  #end(frame: Buffer): AwsMessage {
    this.#frame = undefined
    this.#used = 0
    const end = frame.length - CRC_BYTES
    if (crc32(frame.subarray(0, end)) !== frame.readUInt32BE(end)) throw new AwsFrameFault('CORRUPT_FRAME')
    const payloadAt = PRELUDE_BYTES + frame.readUInt32BE(4)
    return { headers: headersIn(frame.subarray(PRELUDE_BYTES, payloadAt)), payload: frame.subarray(payloadAt, end) }
  }
}

function headersIn(bytes: Buffer): ReadonlyMap<string, string> {
  const headers = new Map<string, string>()
  let at = 0
  const take = (count: number): Buffer => {
    if (at + count > bytes.length) throw new AwsFrameFault('CORRUPT_FRAME')
    at += count
    return bytes.subarray(at - count, at)
  }
  while (at < bytes.length) {
    const name = take(take(1).readUInt8()).toString('utf8')
    const type = take(1).readUInt8()
    if (type >= VALUE_BYTES.length) throw new AwsFrameFault('CORRUPT_FRAME')
    const value = take(VALUE_BYTES[type] ?? take(2).readUInt16BE())
    if (type === TEXT) headers.set(name, value.toString('utf8'))
  }
  return headers
}
