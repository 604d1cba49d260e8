import { connect as connectTwo } from 'node:http2'
import { connect as connectPlain } from 'node:net'
import { connect as connectSecure } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { TestAuthority } from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import { missing } from '../support/installed.ts'
import { RawSocket } from '../support/raw-http.ts'
import { startPlatform, type TestPlatform, type Tree, testTree } from '../support/start-platform.ts'

/** A proxy that passes on bytes says whose they are; what is charged to an address shows whom the gateway believes. */
const why = missing('openssl')

const open: Array<{ close(): unknown }> = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

/** Six wrong keys a minute for each address. */
async function start(server: Tree): Promise<TestPlatform> {
  const platform = await startPlatform(testTree({ server: { ingress: { failedKeysPerMinute: 6 }, ...server } }))
  open.push(platform)
  return platform
}

const TRUSTED = { proxyProtocolFrom: ['127.0.0.0/8'] }
const v1 = (address: string): string => `PROXY TCP4 ${address} 10.0.0.1 50000 443\r\n`
const v2 = (address: string): string => {
  const bytes = [0x21, 0x11, 0, 12, ...address.split('.').map(Number), 10, 0, 0, 1, 0, 1, 0, 2]
  return `\r\n\r\n\0\r\nQUIT\n${String.fromCharCode(...bytes)}`
}
const REQUEST = 'GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-wrong\r\n\r\n'

/** The status that a wrong key gets on a connection that begins with these bytes. */
async function statusFor(address: string, header: string): Promise<number> {
  const socket = new RawSocket(address)
  open.push({ close: () => socket.destroy() })
  socket.socket.write(Buffer.from(header + REQUEST, 'latin1'))
  await socket.until('an answer', (received) => received.includes('\r\n\r\n'))
  socket.destroy()
  return Number(socket.received.split(' ')[1])
}

describe('the PROXY protocol', () => {
  it.each([
    ['version 1', v1],
    ['version 2', v2],
  ])('%s: each client is charged by itself, and not the proxy', async (_, header) => {
    const { address } = await start(TRUSTED)
    const noisy: number[] = []
    for (let i = 0; i < 10; i++) noisy.push(await statusFor(address, header('203.0.113.7')))
    expect(noisy.at(-1)).toBe(429)
    expect(await statusFor(address, header('203.0.113.8'))).toBe(401)
  })

  it('a header in single bytes is read; a connection of the proxy itself is the proxy', async () => {
    const { address } = await start(TRUSTED)
    const socket = new RawSocket(address)
    open.push({ close: () => socket.destroy() })
    for (const letter of v1('203.0.113.9') + REQUEST) {
      socket.send(letter)
      await new Promise(setImmediate)
    }
    await socket.until('an answer', (received) => received.startsWith('HTTP/1.1 401 '))
    expect(await statusFor(address, 'PROXY UNKNOWN\r\n')).toBe(401)
  })

  it('a proxy must send a header, and a good one', async () => {
    const { address } = await start(TRUSTED)
    for (const header of ['', 'PROXY TCP4 nobody 10.0.0.1 1 2\r\n', '\r\n\r\n\0\r\nQUIT\nxxxxxxxxxxxx', '\0\0\0\0']) {
      const socket = new RawSocket(address)
      open.push({ close: () => socket.destroy() })
      socket.socket.write(Buffer.from(header + REQUEST, 'latin1'))
      await socket.closed()
      expect(socket.received).toMatch(/^HTTP\/1\.1 400 .*PROXY header/s)
    }
  })

  it('a header of anybody else is not read', async () => {
    const { address } = await start({ proxyProtocolFrom: ['192.0.2.1'] })
    expect(await statusFor(address, v1('203.0.113.7'))).toBe(400)
    expect(await statusFor(address, '')).toBe(401)
  })

  it('a proxy that says nothing is given up', async () => {
    const { address } = await start({ ...TRUSTED, headersTimeoutMs: 200 })
    const socket = new RawSocket(address).send('PROXY TCP4 ')
    await socket.closed()
    expect(socket.received).toContain('request_too_slow')
  })

  it('HTTP/2 may follow', async () => {
    const { address } = await start(TRUSTED)
    const { hostname, port } = new URL(address)
    const session = connectTwo(address, {
      createConnection: () => {
        const socket = connectPlain({ host: hostname, port: Number(port) })
        socket.write(v1('203.0.113.7'))
        return socket
      },
    })
    open.push({ close: () => session.destroy() })
    const statuses: number[] = []
    for (let i = 0; i < 10; i++) {
      const stream = session.request({ ':path': '/v1/models', authorization: 'Bearer sk-wrong' })
      stream.on('response', (headers) => void statuses.push(headers[':status'] ?? 0)).resume()
      await eventually('an answer', () => stream.closed)
    }
    expect(statuses.at(-1)).toBe(429)
    expect(await statusFor(address, v1('203.0.113.8'))).toBe(401)
  })
})

describe.skipIf(why !== undefined)(`the PROXY protocol before TLS${why === undefined ? '' : ` (${why})`}`, () => {
  let authority: TestAuthority
  beforeAll(() => {
    authority = new TestAuthority()
  })
  afterAll(() => authority.close())

  it('the client inside is the one that the proxy named', async () => {
    const { address } = await start({ ...TRUSTED, tls: { certificates: [authority.issue('gateway', 'localhost')] } })
    const { hostname, port } = new URL(address)
    const statusOf = async (client: string): Promise<number> => {
      const plain = connectPlain({ host: hostname, port: Number(port) })
      plain.write(v1(client))
      const socket = connectSecure({ socket: plain, ca: authority.ca, checkServerIdentity: () => undefined })
      let text = ''
      socket.on('data', (part: Buffer) => {
        text += part.toString()
      })
      socket.write(REQUEST)
      await eventually('an answer', () => text.includes('\r\n\r\n'))
      socket.destroy()
      return Number(text.split(' ')[1])
    }
    const noisy: number[] = []
    for (let i = 0; i < 10; i++) noisy.push(await statusOf('203.0.113.7'))
    expect(noisy.at(-1)).toBe(429)
    expect(await statusOf('203.0.113.8')).toBe(401)
  })
})
