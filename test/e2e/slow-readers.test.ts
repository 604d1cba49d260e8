import { readFileSync } from 'node:fs'
import { connect as connectTwo } from 'node:http2'
import { connect as connectPlain, type Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { connect as connectSecure } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Cancellation } from '../../src/base/cancellation.ts'
import { LiveClock } from '../../src/base/live-clock.ts'
import { openFrontDoor } from '../../src/gateway/http-front-door.ts'
import { closeServer, listen } from '../../src/gateway/http-listen.ts'
import { makeHttpServer, type Route } from '../../src/gateway/http-server.ts'
import { SseSink } from '../../src/gateway/http-sinks.ts'
import { IN_OPENAI_WORDS } from '../../src/wire/openai-dialects.ts'
import { TestAuthority } from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import { missing } from '../support/installed.ts'

/**
 * A reader that takes nothing holds its engine back: what waits for it in the gateway is bounded, by every way in. What
 * the kernel holds comes on top (bench/micro/reader-ahead.ts measures it), so the answer here is longer than that.
 */
const why = missing('openssl')
const FRAMES = 9_000
const PADDING = 'x'.repeat(1_000)

const open: Array<() => unknown> = []
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
})

interface Seen {
  waits: number
  longest: number
  frames: number
}

/** A route whose engine writes as fast as it may, and notes how much of it waits for the reader. */
function floodRoute(seen: Seen, aheadBytesMax: number): Route {
  const clock = new LiveClock()
  return {
    method: 'GET',
    path: '/flood',
    async handle(exchange) {
      const sink = new SseSink({
        exchange,
        identity: { kind: 'chat', id: 'chatcmpl-1', createdAtS: 1, includesUsage: false, model: 'sim' },
        wording: IN_OPENAI_WORDS,
        clock,
        cancellation: new Cancellation(),
        rateLimits: () => [],
        stalledReaderUs: 60_000_000,
        keepAliveUs: 60_000_000,
        aheadBytesMax,
        listsPassages: false,
      })
      sink.start({ model: 'sim', rung: 'full' })
      for (; seen.frames < FRAMES && !exchange.res.destroyed; seen.frames++) {
        const content = `<${seen.frames}>${PADDING}`
        const wait = sink.write({ tokens: 1, choices: [{ index: 0, content, finishReason: null }] })
        seen.longest = Math.max(seen.longest, exchange.res.writableLength)
        if (wait === undefined) {
          if (seen.frames % 16 === 0) await new Promise(setImmediate)
          continue
        }
        seen.waits += 1
        await wait
      }
      exchange.res.end()
    },
  }
}

type Way = 'HTTP/1' | 'HTTP/2' | 'HTTP/1 in TLS' | 'HTTP/2 in TLS'

describe.skipIf(why !== undefined)(`slow readers${why === undefined ? '' : ` (${why})`}`, () => {
  let authority: TestAuthority
  beforeAll(() => {
    authority = new TestAuthority()
  })
  afterAll(() => authority.close())

  async function start(way: Way, seen: Seen, aheadBytesMax: number): Promise<string> {
    const limits = { headersTimeoutMs: 10_000, requestTimeoutMs: 10_000, idleTimeoutMs: 10_000 }
    const makeRequestId = (): string => 'req_1'
    const onFault = (where: string, error: unknown): void => expect.unreachable(`${where}: ${String(error)}`)
    const options = { ...limits, basePath: '', connectionsMax: 10, makeRequestId, onFault }
    const server = makeHttpServer([floodRoute(seen, aheadBytesMax)], options)
    const { certFile, keyFile } = authority.issue('gateway', 'localhost')
    const identity = { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
    const material = { identities: [identity] }
    const tls = way.endsWith('TLS') ? ({ material, minVersion: 'TLSv1.3' } as const) : undefined
    openFrontDoor(server, { ...options, clock: new LiveClock(), http2: true, streamsMax: 100, aheadBytesMax, tls })
    const now = Promise.resolve()
    open.push(() => closeServer(server, { answersEnded: now, patienceEnded: now }))
    return listen(server, { host: '127.0.0.1', port: 0, scheme: tls === undefined ? 'http' : 'https' })
  }

  function ask(way: Way, address: string): Readable {
    const trust = { ca: authority.ca, checkServerIdentity: () => undefined }
    const port = Number(new URL(address).port)
    if (way.startsWith('HTTP/2')) {
      const session = connectTwo(address, trust)
      session.on('error', () => {})
      open.push(() => session.destroy())
      return session.request({ ':path': '/flood' }).pause()
    }
    const socket: Socket = way.endsWith('TLS')
      ? connectSecure({ port, host: '127.0.0.1', ...trust })
      : connectPlain({ port, host: '127.0.0.1' })
    open.push(() => socket.destroy())
    socket.pause()
    socket.write('GET /flood HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
    return socket
  }

  const ways: readonly Way[] = ['HTTP/1', 'HTTP/2', 'HTTP/1 in TLS', 'HTTP/2 in TLS']
  it.each(ways.flatMap((way) => [4_096, 65_536].map((aheadBytesMax) => [way, aheadBytesMax] as const)))(
    '%s: no more than %i bytes and a frame wait in the gateway, and all of it arrives when it is read',
    async (way, aheadBytesMax) => {
      const seen: Seen = { waits: 0, longest: 0, frames: 0 }
      const reader = ask(way, await start(way, seen, aheadBytesMax))
      await eventually('the engine is held back', () => seen.waits > 0)
      let before = -1
      await eventually('it stands still', () => {
        const isSame = before === seen.frames
        before = seen.frames
        return isSame && seen.frames > 0
      })
      expect(seen.frames).toBeLessThan(FRAMES)
      const numbers: number[] = []
      let rest = ''
      reader.on('data', (part: Buffer) => {
        rest += part.toString('latin1')
        const found = [...rest.matchAll(/<(\d+)>/g)]
        numbers.push(...found.map(([, number]) => Number(number)))
        const last = found.at(-1)
        rest = rest.slice(last === undefined ? -20 : last.index + last[0].length).slice(-2_000)
      })
      reader.resume()
      await eventually('all of it is read', () => numbers.length === FRAMES, 30_000)
      expect(numbers).toEqual(Array.from({ length: FRAMES }, (_, i) => i))
      expect(seen.longest).toBeLessThan(aheadBytesMax + 1_500)
    },
    60_000,
  )
})
