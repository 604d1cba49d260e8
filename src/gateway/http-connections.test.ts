import { type ClientHttp2Session, connect as connectTwo } from 'node:http2'
import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../../test/support/eventually.ts'
import { closeAll, type Started, startFastPath, textOf } from '../../test/support/fast-path-server.ts'
import type { RawSocket } from '../../test/support/raw-http.ts'
import { closeServer } from './http-listen.ts'

/** A server that leaves, with connections in every state, several of each at once: every client is asked to go elsewhere. */
afterEach(closeAll)

const EACH = 4
const CLOSE = /\r\nconnection: close\r\n/gi
const never = new Promise<void>(() => {})

const countOf = (text: string, what: RegExp): number => text.match(what)?.length ?? 0
const post = (path: string): string => textOf(path, '{"a":1}')
const halves = (text: string, at: number): [string, string] => [text.slice(0, at), text.slice(at)]
const [HEAD_HALF, HEAD_REST] = halves(post('/json'), 20)
const [BODY_HALF, BODY_REST] = halves(post('/json'), post('/json').length - 3)

interface Crowd {
  /** Connected, and nothing more. */
  readonly fresh: readonly RawSocket[]
  /** Answered once. */
  readonly idle: readonly RawSocket[]
  readonly halfHead: readonly RawSocket[]
  /** Answered once, and then half a head. */
  readonly halfHeadAgain: readonly RawSocket[]
  readonly halfBody: readonly RawSocket[]
  /** Whole requests without an answer. */
  readonly waiting: readonly RawSocket[]
  /** Answers that have begun. */
  readonly streaming: readonly RawSocket[]
}

async function crowdAt({ connect, seen, server }: Started): Promise<Crowd> {
  const some = (): RawSocket[] => Array.from({ length: EACH }, connect)
  const answered = async (): Promise<RawSocket[]> => {
    const sockets = some()
    for (const socket of sockets) socket.send(post('/json'))
    for (const socket of sockets) await socket.until('the answer', (received) => received.endsWith('{"a":1}'))
    return sockets
  }
  const [fresh, halfHead, waiting, streaming] = [some(), some(), some(), some()]
  const [idle, halfHeadAgain, halfBody] = [await answered(), await answered(), some()]
  for (const socket of [...halfHead, ...halfHeadAgain]) socket.send(HEAD_HALF)
  for (const socket of halfBody) socket.send(BODY_HALF)
  for (const socket of waiting) socket.send(post('/silent'))
  for (const socket of streaming) socket.send(post('/held'))
  for (const socket of streaming) await socket.until('it begins', (received) => received.includes('begun'))
  await eventually('all requests are there', () => seen.exchanges.length === EACH * 5)
  // What has been sent has been read when later bytes of this process have been: the kernel keeps their order.
  const connections = await new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)))
  expect(connections).toBe(EACH * 7)
  return { fresh, idle, halfHead, halfHeadAgain, halfBody, waiting, streaming }
}

/** Ends the answers of `/silent` and `/held`. */
function answerAll({ seen }: Started): void {
  for (const exchange of seen.exchanges) {
    const { res } = exchange
    if (res.headersSent && !res.writableEnded) res.end('over')
    else if (exchange.req.url === '/silent') exchange.sendJson(200, '{"late":true}')
  }
}

async function allClosed(sockets: readonly RawSocket[]): Promise<void> {
  for (const socket of sockets) await socket.closed()
}

describe.each([
  ['the fast path', true],
  ['node:http', false],
])('connections of %s', (_name, fastPath) => {
  const start = (): Promise<Started> => startFastPath(fastPath, { connectionsMax: 100 })

  it.each(['leave', 'retire'] as const)(
    '%s: the next answer on each closes it, whenever its request began',
    async (how) => {
      const started = await start()
      const { streaming, ...others } = await crowdAt(started)
      const { fresh, idle, halfHead, halfHeadAgain, halfBody, waiting } = others
      const gone = started.server.open[how]()
      for (const socket of [...fresh, ...idle]) socket.send(post('/json'))
      for (const socket of [...halfHead, ...halfHeadAgain]) socket.send(HEAD_REST)
      for (const socket of halfBody) socket.send(BODY_REST)
      answerAll(started)
      for (const sockets of Object.values(others)) await allClosed(sockets)
      for (const socket of [...fresh, ...halfHead, ...halfBody]) expect(socket.received).toMatch(/\{"a":1\}$/)
      for (const socket of [...idle, ...halfHeadAgain]) expect(countOf(socket.received, /\{"a":1\}/g)).toBe(2)
      for (const socket of waiting) expect(socket.received).toMatch(/\{"late":true\}$/)
      for (const socket of Object.values(others).flat()) expect(countOf(socket.received, CLOSE)).toBe(1)
      // These were told to stay before anything was known; their next answer closes them.
      for (const socket of streaming) await socket.until('the end', (received) => received.endsWith('0\r\n\r\n'))
      for (const socket of streaming) socket.send(post('/json'))
      await allClosed(streaming)
      for (const socket of streaming) expect(countOf(socket.received, CLOSE)).toBe(1)
      await gone
      if (how === 'retire') return
      const late = started.connect().send(post('/json'))
      await late.closed()
      expect(countOf(late.received, CLOSE)).toBe(1)
    },
  )

  it('close: what is idle closes at once, what has begun is answered first, and then nothing is left', async () => {
    const started = await start()
    const { fresh, idle, halfHead, halfHeadAgain, halfBody, waiting, streaming } = await crowdAt(started)
    let end = (): void => {}
    const answersEnded = new Promise<void>((resolve) => {
      end = resolve
    })
    const closed = closeServer(started.server, { answersEnded, patienceEnded: never })
    await allClosed(idle)
    for (const socket of [...fresh, ...halfHead, ...halfHeadAgain, ...halfBody, ...waiting, ...streaming])
      expect(socket.isClosed).toBe(false)
    for (const socket of [...halfHead, ...halfHeadAgain]) socket.send(HEAD_REST)
    for (const socket of halfBody) socket.send(BODY_REST)
    answerAll(started)
    const begun = [...halfHead, ...halfHeadAgain, ...halfBody, ...waiting]
    await allClosed([...begun, ...streaming])
    for (const socket of begun) expect(countOf(socket.received, CLOSE)).toBe(1)
    for (const socket of streaming) expect(socket.received).toMatch(/over\r\n0\r\n\r\n$/)
    end()
    await closed
    await allClosed(fresh)
  })

  it('closeWaiting: requests that are there are answered, and nobody waits for those that are not', async () => {
    const started = await start()
    const { fresh, idle, halfHead, halfHeadAgain, halfBody, waiting, streaming } = await crowdAt(started)
    const closed = closeServer(started.server, { answersEnded: Promise.resolve(), patienceEnded: never })
    await allClosed([...fresh, ...idle, ...halfHead, ...halfHeadAgain])
    for (const socket of halfBody) socket.send(BODY_REST)
    answerAll(started)
    await closed
    await allClosed([...halfBody, ...waiting, ...streaming])
    for (const socket of halfBody) expect(socket.received).toMatch(/\{"a":1\}$/)
    for (const socket of waiting) expect(socket.received).toMatch(/\{"late":true\}$/)
    for (const socket of streaming) expect(socket.received).toMatch(/over\r\n0\r\n\r\n$/)
  })

  it('closeWaiting: an answer without an end is not waited for', async () => {
    const { connect, server } = await start()
    const feed = connect().send(post('/feed'))
    await feed.until('it begins', (received) => received.includes('begun'))
    let end = (): void => {}
    const answersEnded = new Promise<void>((resolve) => {
      end = resolve
    })
    const closed = closeServer(server, { answersEnded, patienceEnded: never })
    expect(feed.isClosed).toBe(false)
    end()
    await closed
    await feed.closed()
  })
})

describe('connections of HTTP/2', () => {
  class Client {
    readonly session: ClientHttp2Session
    /** The last stream that each GOAWAY named. */
    readonly told: number[] = []

    constructor(address: string) {
      this.session = connectTwo(address)
      this.session.on('error', () => {})
      this.session.on('goaway', (_code, last) => this.told.push(last))
    }

    /** The text of the answer, or why there is none. */
    post(path: string): Promise<string> {
      const stream = this.session.request({ ':path': path, ':method': 'POST', 'content-type': 'application/json' })
      stream.setEncoding('utf8').end('{"a":1}')
      let text = ''
      stream.on('data', (part: string) => {
        text += part
      })
      return new Promise((resolve) => {
        stream.on('error', ({ message }) => resolve(message))
        stream.on('end', () => resolve(text))
      })
    }
  }

  it('leave: answers end, clients are told, and every connection closes', async () => {
    const started = await startFastPath(true, { connectionsMax: 100 })
    const [idle, busy, fresh] = [0, 1, 2].map(() => new Client(started.address)) as [Client, Client, Client]
    expect(await idle.post('/json')).toBe('{"a":1}')
    await eventually('it is connected', () => !fresh.session.connecting)
    const running = [busy.post('/silent'), busy.post('/held')]
    await eventually('both run', () => started.seen.exchanges.length === 3)
    started.server.open.leave()
    await eventually('the idle one is told', () => idle.session.closed)
    // A stream that crosses the GOAWAY is refused at once, in the words that say: send it again.
    expect(await busy.post('/json')).toMatch(/REFUSED_STREAM|GOAWAY/)
    expect(busy.told.length).toBeGreaterThan(0)
    answerAll(started)
    expect(await Promise.all(running)).toEqual(['{"late":true}', 'begunover'])
    await eventually('it closes with its last answer', () => busy.session.destroyed)
    for (const client of [fresh, new Client(started.address)]) {
      // What comes together is answered.
      expect(await Promise.all([client.post('/json'), client.post('/json')])).toEqual(['{"a":1}', '{"a":1}'])
      await eventually('it is told when it is idle', () => client.session.closed)
    }
    await closeServer(started.server, { answersEnded: Promise.resolve(), patienceEnded: never })
  })

  it('closeWaiting: a request that is there is answered', async () => {
    const started = await startFastPath(true, { connectionsMax: 100 })
    const [silent, held] = [new Client(started.address), new Client(started.address)]
    const running = [silent.post('/silent'), held.post('/held')]
    await eventually('both run', () => started.seen.exchanges.length === 2)
    const closed = closeServer(started.server, { answersEnded: Promise.resolve(), patienceEnded: never })
    await Promise.resolve()
    answerAll(started)
    expect(await Promise.all(running)).toEqual(['{"late":true}', 'begunover'])
    await closed
  })
})
