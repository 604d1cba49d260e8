import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { VirtualClock } from '../base/virtual-clock.ts'
import type { OpenBody } from '../domain/transit.ts'
import { FormHead } from '../wire/form-head.ts'
import type { Exchange } from './exchange.ts'
import { UPLOAD_HEAD_BYTES_MAX, Upload, type UploadBreak } from './http-upload.ts'

const SECOND_US = 1_000_000
const TYPE = 'multipart/form-data; boundary=xyz'
const part = (name: string, content: string): string =>
  `--xyz\r\ncontent-disposition: form-data; ${name}\r\n\r\n${content}\r\n`
const MODEL = part('name="model"', 'ours')
const FILE = 'name="file"; filename="a"'
const END = '--xyz--\r\n'
/** A field ends where the next part begins. */
const HEAD = `${MODEL}${part(FILE, 'la').slice(0, -2)}`
const REST = ` la\r\n${END}`

/** An upload whose client is this test. */
function start(length?: number, bytesMax = 64 << 20) {
  const req = new PassThrough()
  Object.assign(req, { headers: length === undefined ? {} : { 'content-length': String(length) } })
  const memory = { buffered: 0, released: 0, passed: 0 }
  const visit = {
    buffer(bytes: number): undefined {
      memory.buffered += bytes
    },
    passMore(bytes: number): void {
      memory.passed += bytes
    },
    release(): void {
      memory.released++
    },
  }
  const clock = new VirtualClock()
  const form = new FormHead(TYPE)
  const exchange = { req: req as unknown as IncomingMessage, res: {}, visit } as unknown as Exchange
  const upload = new Upload(exchange, form, { clock, patienceUs: 10 * SECOND_US, bytesMax })
  const breaks: UploadBreak[] = []
  upload.onBroken = (because) => breaks.push(because)
  return { req, upload, form, clock, memory, breaks }
}

async function textOf({ pieces }: OpenBody): Promise<string> {
  let text = ''
  for await (const piece of pieces) text += Buffer.from(piece).toString()
  return text
}

describe('an upload', () => {
  it('is read until its model is known, and no further', async () => {
    const { req, upload, form } = start()
    req.write(HEAD)
    expect(await upload.readHead()).toBe('ok')
    expect(form.fields.get('model')?.value).toBe('ours')
    expect(upload.canOpen).toBe(true)
  })

  it('can be opened again until bytes behind its head have gone', async () => {
    const { req, upload, memory } = start(1_000)
    req.write(HEAD)
    await upload.readHead()
    const first = upload.open('theirs')
    expect(first.length).toBe(1_002)
    const pieces = first.pieces[Symbol.asyncIterator]()
    await pieces.next()
    first.close()
    expect(upload.canOpen).toBe(true)
    req.end(REST)
    expect(await textOf(upload.open('x'))).toBe(HEAD.replace('ours', 'x') + REST)
    expect(upload.canOpen).toBe(false)
    expect(memory).toMatchObject({ buffered: HEAD.length, released: 1, passed: 0 })
  })

  it('that is whole in its head can be opened as often as one likes', async () => {
    const { req, upload, form } = start()
    req.end(MODEL + END)
    await upload.readHead()
    expect(form.isWhole).toBe(true)
    for (const model of ['a', 'b', 'ours'])
      expect(await textOf(upload.open(model))).toBe(MODEL.replace('ours', model) + END)
    expect(upload.canOpen).toBe(true)
  })

  it('without a name for its model gets one in front', async () => {
    const { req, upload } = start()
    const rest = part(FILE, 'la') + END
    req.end(rest)
    await upload.readHead()
    expect(await textOf(upload.open('theirs'))).toBe(part('name="model"', 'theirs') + rest)
  })

  it('holds a bounded head, whatever comes first', async () => {
    const { req, upload, form } = start()
    const piece = Buffer.alloc(64 << 10)
    req.write(part(FILE, '').slice(0, -2))
    const sending = setInterval(() => req.write(piece), 0)
    expect(await upload.readHead()).toBe('ok')
    clearInterval(sending)
    expect(form.bytes.length).toBeGreaterThanOrEqual(UPLOAD_HEAD_BYTES_MAX)
    expect(form.bytes.length).toBeLessThan(2 * UPLOAD_HEAD_BYTES_MAX)
  })

  it('that stands still breaks when its engine has waited long enough', async () => {
    const { req, upload, clock, breaks } = start()
    req.write(HEAD)
    await upload.readHead()
    const read = textOf(upload.open('x'))
    const settled = read.catch((error: unknown) => String(error))
    await clock.run(9 * SECOND_US)
    expect(breaks).toEqual([])
    await clock.run(11 * SECOND_US)
    expect(await settled).toBe('UploadBroken: sender-stalled')
    expect(breaks).toEqual(['sender-stalled'])
  })

  it('that trickles breaks too', async () => {
    const { req, upload, clock, breaks } = start()
    req.write(HEAD)
    await upload.readHead()
    const read = textOf(upload.open('x')).catch((error: unknown) => String(error))
    for (let second = 1; second < 30 && breaks.length === 0; second++) {
      await clock.run(second * SECOND_US)
      req.write('x')
      await new Promise(setImmediate)
    }
    expect(await read).toBe('UploadBroken: sender-stalled')
    expect(clock.now()).toBeLessThan(13 * SECOND_US)
  })

  it('that is larger than it may be breaks, and counts its bytes where it did not say', async () => {
    const { req, upload, breaks, memory } = start(undefined, 200)
    req.write(HEAD)
    await upload.readHead()
    req.end('x'.repeat(500))
    await expect(textOf(upload.open('x'))).rejects.toThrow('upload-too-large')
    expect(breaks).toEqual(['upload-too-large'])
    expect(memory.passed).toBe(HEAD.length + 500)
  })

  it('whose client has gone breaks', async () => {
    const { req, upload, breaks } = start()
    req.write(HEAD)
    await upload.readHead()
    const read = textOf(upload.open('x'))
    req.destroy()
    await expect(read).rejects.toThrow('client-gone')
    expect(breaks).toEqual(['client-gone'])
  })

  it('gives back what it held when it ends', async () => {
    const { req, upload, memory } = start()
    req.write(HEAD)
    await upload.readHead()
    upload.end()
    expect(upload.canOpen).toBe(false)
    expect(memory.released).toBe(1)
  })
})
