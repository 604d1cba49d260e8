import { execFile } from 'node:child_process'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { connect as connectTwo } from 'node:http2'
import { request } from 'node:https'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { TestAuthority } from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import { FakeUpstream } from '../support/fake-upstream.ts'
import { missing, pathOf } from '../support/installed.ts'
import { RawSocket } from '../support/raw-http.ts'
import {
  authorization,
  MODEL,
  startPlatform,
  type TestPlatform,
  type Tree,
  testTree,
  upstreamTree,
} from '../support/start-platform.ts'

/** TLS at the front door, with certificates of an authority of our own. */
const why = missing('openssl', 'curl')
const CHAT = '/v1/chat/completions'
const body = { model: MODEL, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 3 }
const run = promisify(execFile)

const open: Array<{ close(): unknown }> = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

const chunk = (content: string, finish_reason: string | null): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason }] })}\n\n`

describe.skipIf(why !== undefined)(`TLS${why === undefined ? '' : ` (${why})`}`, () => {
  let authority: TestAuthority
  beforeAll(() => {
    authority = new TestAuthority()
  })
  afterAll(() => authority.close())

  async function start(tls: Tree, tree: (overrides: Tree) => Tree = testTree): Promise<TestPlatform> {
    const platform = await startPlatform(tree({ server: { tls } }))
    open.push(platform)
    return platform
  }

  /** A secure connection, and the name of the certificate that was shown. */
  function secure(address: string, options: ConnectionOptions = {}): Promise<TLSSocket> {
    const { hostname, port } = new URL(address)
    return new Promise((resolve, reject) => {
      const socket = connect({
        host: hostname,
        port: Number(port),
        ca: authority.ca,
        checkServerIdentity: () => undefined,
        ...options,
      })
      open.push({ close: () => socket.destroy() })
      socket.on('error', reject)
      socket.once('secureConnect', () => resolve(socket))
    })
  }

  const shown = (socket: TLSSocket): unknown => socket.getPeerCertificate().subject.CN

  /** The text that comes back for this request of HTTP/1. */
  async function ask(socket: TLSSocket, path = '/health'): Promise<string> {
    let text = ''
    socket.on('data', (part: Buffer) => {
      text += part.toString()
    })
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-test-acme\r\n\r\n`)
    await eventually('an answer', () => socket.destroyed || (text.includes('\r\n\r\n') && text.endsWith('}')))
    if (text === '') throw new Error('closed without an answer')
    return text
  }

  it('serves HTTP/1 and HTTP/2, as the client asks, to curl too', async () => {
    const { certFile, keyFile } = authority.issue('gateway', 'localhost', '127.0.0.1')
    const platform = await start({ certificates: [{ certFile, keyFile }] })
    expect(platform.address).toMatch(/^https:/)
    const one = await new Promise<number>((resolve, reject) => {
      const sent = request(`${platform.address}/v1/models`, { ca: authority.ca, headers: authorization() }, (res) => {
        res.resume()
        resolve(res.statusCode ?? 0)
      })
      sent.on('error', reject).end()
    })
    expect(one).toBe(200)
    const post = [
      '-s',
      '-d',
      JSON.stringify(body),
      '-H',
      'content-type: application/json',
      '-H',
      `authorization: ${authorization()['authorization']}`,
    ]
    const written = [
      '-o',
      '/dev/null',
      '-w',
      '%{http_version} %{http_code} %{ssl_verify_result}',
      '--cacert',
      authority.caFile,
    ]
    for (const [flag, version] of [
      ['--http2', '2'],
      ['--http1.1', '1.1'],
    ] as const) {
      const { stdout } = await run(pathOf('curl'), [flag, ...written, ...post, platform.address + CHAT])
      expect(stdout).toBe(`${version} 200 0`)
    }
  })

  it('curl with prior knowledge gets HTTP/2 where there is no TLS', async () => {
    const platform = await startPlatform()
    open.push(platform)
    const { stdout } = await run(pathOf('curl'), [
      '-s',
      '--http2-prior-knowledge',
      '-w',
      ' %{http_version}',
      `${platform.address}/health`,
    ])
    expect(stdout).toMatch(/ 2$/)
  })

  it('shows the certificate for the name that is asked for, else the first', async () => {
    const certificates = [
      authority.issue('first', 'one.example'),
      authority.issue('second', 'two.example', '*.three.example'),
    ]
    const { address } = await start({ certificates })
    const names = ['one.example', 'two.example', 'a.three.example', 'four.example', undefined]
    const seen: unknown[] = []
    for (const servername of names)
      seen.push(shown(await secure(address, servername === undefined ? {} : { servername })))
    expect(seen).toEqual(['first', 'second', 'second', 'first', 'first'])
  })

  it('takes a new certificate without dropping a stream, and keeps the old one when the new one is wrong', async () => {
    const files = authority.issue('before', 'localhost')
    let end: () => void = () => {}
    const upstream = await FakeUpstream.start(({ res }) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write(chunk('Once', null))
      end = () => res.end(`${chunk('.', 'stop')}data: [DONE]\n\n`)
    })
    open.push(upstream)
    const certFile = `${authority.folder}/live.pem`
    const keyFile = `${authority.folder}/live.key`
    copyFileSync(files.certFile, certFile)
    copyFileSync(files.keyFile, keyFile)
    const platform = await start({ certificates: [{ certFile, keyFile }] }, (overrides) =>
      upstreamTree([upstream.url], overrides),
    )
    const session = connectTwo(platform.address, { ca: authority.ca, checkServerIdentity: () => undefined })
    open.push({ close: () => session.destroy() })
    const stream = session.request({
      ':path': CHAT,
      ':method': 'POST',
      'content-type': 'application/json',
      ...authorization(),
    })
    let text = ''
    stream.setEncoding('utf8').on('data', (part: string) => {
      text += part
    })
    stream.end(JSON.stringify({ ...body, stream: true }))
    await eventually('the stream begins', () => text.includes('Once'))
    writeFileSync(certFile, 'no certificate')
    await eventually('the mistake is told', () => platform.printed.includes('cannot be used'))
    expect(shown(await secure(platform.address))).toBe('before')
    const renewed = authority.issue('after', 'localhost')
    copyFileSync(renewed.keyFile, keyFile)
    copyFileSync(renewed.certFile, certFile)
    await eventually('the new certificate', async () => shown(await secure(platform.address)) === 'after')
    end()
    await eventually('the stream ends', () => text.endsWith('data: [DONE]\n\n'))
    expect(text).toContain('Once')
  }, 60_000)

  it('asks for client certificates where an authority is named', async () => {
    const certificates = [authority.issue('gateway', 'localhost')]
    const { address } = await start({ certificates, clientCaFile: authority.caFile })
    const client = authority.issue('client')
    const known = await secure(address, { cert: readFileSync(client.certFile), key: readFileSync(client.keyFile) })
    expect(await ask(known)).toMatch(/^HTTP\/1\.1 200 /)
    const stranger = new TestAuthority()
    open.push(stranger)
    const other = stranger.issue('client')
    for (const options of [{}, { cert: readFileSync(other.certFile), key: readFileSync(other.keyFile) }]) {
      const refused = secure(address, options).then(ask)
      await expect(refused).rejects.toThrow(/closed without an answer|certificate|alert/)
    }
  })

  it('resumes sessions with TLS 1.3, and speaks no older version than it is told', async () => {
    const { address } = await start({ certificates: [authority.issue('gateway', 'localhost')], minVersion: 'TLSv1.3' })
    const first = await secure(address)
    expect(first.getProtocol()).toBe('TLSv1.3')
    const ticket = new Promise<Buffer>((resolve) => first.once('session', resolve))
    await ask(first)
    const session = await ticket
    expect(first.isSessionReused()).toBe(false)
    const again = await secure(address, { session })
    expect(again.isSessionReused()).toBe(true)
    await expect(secure(address, { maxVersion: 'TLSv1.2' })).rejects.toThrow(/alert protocol version/)
  })

  it('a connection that never becomes secure is closed, and one that is no TLS hurts nobody', async () => {
    const { certFile, keyFile } = authority.issue('gateway', 'localhost')
    const server = { tls: { certificates: [{ certFile, keyFile }] }, headersTimeoutMs: 1_000 }
    const platform = await startPlatform(testTree({ server }))
    open.push(platform)
    const plain = platform.address.replace('https:', 'http:')
    const silent = new RawSocket(plain)
    const wrong = new RawSocket(plain).send('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    await silent.closed()
    await wrong.closed()
    expect(await ask(await secure(platform.address))).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('a file that cannot be read, or a key of another certificate, stops the start', async () => {
    const [one, two] = [authority.issue('one', 'localhost'), authority.issue('two', 'localhost')]
    await expect(start({ certificates: [{ certFile: '/nowhere.pem', keyFile: one.keyFile }] })).rejects.toThrow(
      'ENOENT',
    )
    await expect(start({ certificates: [{ certFile: one.certFile, keyFile: two.keyFile }] })).rejects.toThrow(
      'not that of',
    )
  })
})
