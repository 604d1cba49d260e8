import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { authorization } from '../support/start-platform.ts'
import { startTransit, type TransitWorld } from '../support/transit-platform.ts'

/** Clients that go while their form waits in its lane, because the engine has no room for it. */

/** Of the pool in `startTransit`. */
const ROOM = 8
const PATH = '/v1/audio/transcriptions'

let world: TransitWorld

beforeAll(async () => {
  world = await startTransit({ stalledReaderMs: 20_000 })
})
afterAll(() => world.close())

/** Takes all the room, until the returned function gives it back. */
async function fill(): Promise<() => Promise<void>> {
  const calls = world.engine.seen.length
  let letGo: () => void = () => {}
  const held = new Promise<void>((resolve) => {
    letGo = resolve
  })
  const answers = Array.from({ length: ROOM }, async () => {
    world.engine.next(async ({ res, readAll }) => {
      await readAll()
      await held
      res.writeHead(200, { 'content-type': 'text/plain' }).end('at last')
    })
    const body = new FormData()
    body.set('model', 'whisper-1')
    body.set('file', new File(['la'], 'a.wav'))
    const response = await fetch(world.url(PATH), { method: 'POST', headers: authorization(), body })
    return response.text()
  })
  await eventually('the engine is full', () => world.engine.seen.length === calls + ROOM || undefined)
  return async () => {
    letGo()
    expect(new Set(await Promise.all(answers))).toEqual(new Set(['at last']))
  }
}

const END = '\r\n--xyz--\r\n'
const HEAD = ['name="model"\r\n\r\nwhisper-1', 'name="file"; filename="a.wav"\r\n\r\n']
  .map((part) => `--xyz\r\ncontent-disposition: form-data; ${part}`)
  .join('\r\n')

/** A client that has handed over this much of its file, and waits for its turn. */
async function waiting(fileBytes: number, sentBytes: number): Promise<Socket> {
  const { port, hostname } = new URL(world.url(PATH))
  const client = connect(Number(port), hostname)
  client.on('error', () => {})
  const headers = {
    host: hostname,
    ...authorization(),
    'content-type': 'multipart/form-data; boundary=xyz',
    'content-length': HEAD.length + fileBytes + END.length,
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  client.write(`POST ${PATH} HTTP/1.1\r\n${lines.join('')}\r\n${HEAD}`)
  const rest = Buffer.concat([Buffer.alloc(sentBytes, 'la'), Buffer.from(sentBytes < fileBytes ? '' : END)])
  await new Promise<void>((resolve) => void client.write(rest, () => resolve()))
  await eventually('it waits', () => lane() === 1 || undefined)
  return client
}

const lane = (): number => world.platform.platform.turnstile.view().waiting
const goneCount = (): number =>
  world.platform.entries.filter((entry) => entry.kind === 'settled' && entry.because === 'client-gone').length

describe('a client that leaves while its form waits in its lane', () => {
  it.each([
    ['has sent all of a small form', 20_000, 20_000],
    ['is in the middle of a small form', 40_000, 20_000],
    ['is at the beginning of a large one', 8 << 20, 20_000],
  ])('and %s ends its ticket at once', async (_what, fileBytes, sentBytes) => {
    const empty = await fill()
    const [gone, calls] = [goneCount(), world.engine.seen.length]
    const client = await waiting(fileBytes, sentBytes)
    client.destroy()
    await eventually('its ticket has ended', () => goneCount() === gone + 1 || undefined)
    expect(lane()).toBe(0)
    await empty()
    await world.isFree()
    expect(world.engine.seen.length).toBe(calls)
  })

  it('and has sent more than is read before its turn ends with its turn, and holds no room', async () => {
    const empty = await fill()
    const gone = goneCount()
    const client = await waiting(8 << 20, 1 << 20)
    client.destroy()
    await empty()
    await eventually('its ticket has ended', () => goneCount() === gone + 1 || undefined)
    await world.isFree()
    expect(lane()).toBe(0)
  })
})
