import { createSocket, type Socket } from 'node:dgram'

/**
 * A name server on loopback that answers A questions from a table, byte by byte as RFC 1035 has them; AAAA finds no
 * data. `undefined` in the table is "no such name"; `mute` answers nothing, as a server that is down.
 */
export class FakeDns {
  readonly #socket: Socket
  readonly table = new Map<string, readonly string[]>()
  isMute = false
  isBroken = false
  askedCount = 0

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('message', (question, from) => {
      this.askedCount++
      if (!this.isMute) socket.send(this.#answer(question), from.port, from.address)
    })
  }

  static async start(): Promise<FakeDns> {
    const socket = createSocket('udp4')
    await new Promise<void>((resolve) => {
      socket.bind(0, '127.0.0.1', resolve)
    })
    return new FakeDns(socket)
  }

  get address(): string {
    return `127.0.0.1:${this.#socket.address().port}`
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#socket.close(resolve)
    })
  }

  #answer(question: Buffer): Buffer {
    const { name, end } = readName(question, 12)
    const type = question.readUInt16BE(end)
    const addresses = this.table.get(name)
    const answers = type === A_RECORD ? (addresses ?? []).map(aRecord) : []
    const head = Buffer.alloc(12)
    question.copy(head, 0, 0, 2)
    const code = this.isBroken ? SERVER_FAILURE : addresses === undefined ? NO_SUCH_NAME : 0
    head.writeUInt16BE(RESPONSE | code, 2)
    head.writeUInt16BE(1, 4)
    head.writeUInt16BE(this.isBroken ? 0 : answers.length, 6)
    return Buffer.concat([head, question.subarray(12, end + 4), ...(this.isBroken ? [] : answers)])
  }
}

const A_RECORD = 1
/** A response, recursion desired and available. */
const RESPONSE = 0x8180
const SERVER_FAILURE = 2
const NO_SUCH_NAME = 3

function readName(message: Buffer, from: number): { name: string; end: number } {
  const labels: string[] = []
  let at = from
  for (let length = message[at] as number; length > 0; length = message[at] as number) {
    labels.push(message.toString('ascii', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 }
}

/** Named by a pointer to the question; kept for no time at all. */
function aRecord(address: string): Buffer {
  const record = Buffer.alloc(16)
  record.writeUInt16BE(0xc00c, 0)
  record.writeUInt16BE(A_RECORD, 2)
  record.writeUInt16BE(1, 4)
  record.writeUInt32BE(0, 6)
  record.writeUInt16BE(4, 10)
  for (const [i, part] of address.split('.').entries()) record.writeUInt8(Number(part), 12 + i)
  return record
}
