import { connect, type Socket } from 'node:net'
import { eventually } from './eventually.ts'

/** HTTP/2 frame by frame, for what no client library would send. */
export const FRAME = {
  data: 0,
  headers: 1,
  rstStream: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
}
export const END_STREAM = 1
export const ACK = 1
export const END_HEADERS = 4
export const PREFACE_TEXT = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'

export function frame(type: number, flags: number, streamId: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(streamId, 5)
  return Buffer.concat([head, payload])
}

/** HPACK without its tables: every name and value as it is, each under 127 bytes unless `long`. */
export function headerBlock(headers: Record<string, string>): Buffer {
  const parts = Object.entries(headers).flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)])
  return Buffer.concat(parts)
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes])
  const length: number[] = [127]
  let rest = bytes.length - 127
  for (; rest >= 128; rest >>= 7) length.push((rest & 127) | 128)
  return Buffer.concat([Buffer.from([...length, rest]), bytes])
}

export const GET_HEALTH = headerBlock({ ':method': 'GET', ':scheme': 'http', ':path': '/health', ':authority': 'x' })

/** A connection that has begun HTTP/2 and counts the frames that come back. */
export class RawTwo {
  readonly socket: Socket
  readonly counts = new Map<number, number>()
  /** Streams that the server reset, with their error codes. */
  readonly resets: Array<readonly [streamId: number, code: number]> = []
  isClosed = false
  #rest: Buffer = Buffer.alloc(0)

  constructor(address: string, begins = true) {
    const { hostname, port } = new URL(address)
    this.socket = connect({ host: hostname, port: Number(port) })
    this.socket.on('error', () => {})
    this.socket.on('close', () => {
      this.isClosed = true
    })
    this.socket.on('data', (bytes: Buffer) => this.#take(bytes))
    if (begins) this.send(Buffer.from(PREFACE_TEXT), frame(FRAME.settings, 0, 0))
  }

  send(...parts: readonly Buffer[]): this {
    this.socket.write(Buffer.concat(parts))
    return this
  }

  count(type: number): number {
    return this.counts.get(type) ?? 0
  }

  async closed(): Promise<void> {
    await eventually('the connection closes', () => this.isClosed)
  }

  #take(bytes: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, bytes])
    for (;;) {
      if (this.#rest.length < 9) return
      const length = this.#rest.readUIntBE(0, 3)
      if (this.#rest.length < 9 + length) return
      const type = this.#rest.readUInt8(3)
      this.counts.set(type, this.count(type) + 1)
      if (type === FRAME.rstStream) this.resets.push([this.#rest.readUInt32BE(5), this.#rest.readUInt32BE(9)])
      this.#rest = this.#rest.subarray(9 + length)
    }
  }
}
