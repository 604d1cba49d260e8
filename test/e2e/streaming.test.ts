import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, describe, expect, it } from 'vitest'
import type { Settled } from '../../src/domain/entry.ts'
import { eventually, pause } from '../support/eventually.ts'
import { answers, type Behaviour, drained, FakeUpstream, hangs } from '../support/fake-upstream.ts'
import { RawSocket } from '../support/raw-http.ts'
import { dechunked } from '../support/sse-frames.ts'
import {
  authorization,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  type Tree,
  testTree,
  upstreamTree,
} from '../support/start-platform.ts'

/** Live sockets: what a slow reader can hold, and how soon a client that is gone holds nothing. */

const CHAT = '/v1/chat/completions'
/** Answers here are longer than any socket's buffers, and an engine is cut at the bound that was sent to it. */
const chat = {
  model: MODEL,
  messages: [{ role: 'user', content: 'Tell me everything. And more.' }],
  max_tokens: 1_000_000,
}
const models = [{ name: MODEL, contextTokensMax: 4_000_000 }]

const open: Array<{ close(): Promise<void> }> = []
const sockets: RawSocket[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const one of open.splice(0).toReversed()) await one.close()
})

async function start(behaviour: Behaviour, overrides: Tree = {}, concurrencyMax = 64) {
  const upstream = await FakeUpstream.start(behaviour)
  open.push(upstream)
  const platform = await startPlatform(upstreamTree([upstream.url], { models, ...overrides }, concurrencyMax))
  open.push(platform)
  return { upstream, platform }
}

function connect(platform: TestPlatform): RawSocket {
  const socket = new RawSocket(platform.address)
  sockets.push(socket)
  return socket
}

/** Numbered frames of this size for ever, as fast as they are taken. */
function floods(frameBytes: number): Behaviour {
  const padding = 'x'.repeat(frameBytes)
  return async ({ res, isGone }) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    for (let number = 0; !isGone(); number++) {
      const content = `${number} ${padding}|`
      const frame = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`
      if (!res.write(frame)) await drained(res)
      if (number % 16 === 0) await new Promise(setImmediate)
    }
  }
}

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Bytes that are held, without what waits to be collected: streams make megabytes of that a second. */
function heapKept(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

describe('backpressure', () => {
  const READERS = 4

  it('four readers that do not read hold a bounded number of bytes, and lose none', async () => {
    const { upstream, platform } = await start(floods(8_000))
    const heapBefore = heapKept()
    const readers = Array.from({ length: READERS }, () => connect(platform).stopReading())
    for (const reader of readers) reader.post(CHAT, { ...chat, stream: true }, authorization())
    await eventually('all have begun', () => upstream.openAnswers === READERS)

    // Without backpressure an endless upstream never comes to rest.
    let sent = -1
    await eventually(
      'the upstream is held back',
      async () => {
        const before = sent
        await pause(150)
        sent = upstream.bytesWritten
        if (sent > READERS * 40_000_000) throw new Error(`the upstream could send ${sent} bytes`)
        return sent === before
      },
      30_000,
    )
    // What is under way is in the kernel's socket buffers (up to 10 MB a connection when it is generous), not with us.
    expect(sent / READERS).toBeLessThan(16_000_000)
    expect(heapKept() - heapBefore).toBeLessThan(READERS * 2_000_000)

    const [first] = readers
    first!.socket.resume()
    await first!.until('two more megabytes', (received) => received.length > sent / READERS + 2_000_000)
    first!.stopReading()
    const numbers = [...dechunked(first!.received).matchAll(/"(\d+) x+\|"/g)].map((match) => Number(match[1]))
    expect(numbers.length).toBeGreaterThan(200)
    expect(numbers).toEqual(numbers.map((_, i) => i))
  })

  it('a reader that stops is cut off after the configured time, and its lease returns', async () => {
    const { upstream, platform } = await start(floods(8_000), { server: { stalledReaderMs: 300 } })
    const reader = connect(platform).post(CHAT, { ...chat, stream: true }, authorization())
    await reader.until('it has begun', (received) => received.length > 100_000)
    expect(platform.platform.turnstile.view().inFlight).toBe(1)
    reader.stopReading()
    const stoppedAt = performance.now()
    await eventually('the lease returns', () => platform.platform.turnstile.view().inFlight === 0)
    expect(performance.now() - stoppedAt).toBeGreaterThan(250)
    await eventually('the engine is let go', () => upstream.openAnswers === 0)
    platform.journal.drain()
    expect(platform.entries.findLast((entry) => entry.kind === 'settled')).toMatchObject({
      outcome: 'cancelled',
      because: 'reader-stalled',
    })
  })

  it('a reader that is slow but goes on reading is not cut off', async () => {
    // On a busy machine the pauses below last up to a second; the server's patience is several times that.
    const stalledReaderMs = 3_000
    const { platform } = await start(floods(2_000), { server: { stalledReaderMs } })
    const reader = connect(platform).post(CHAT, { ...chat, stream: true }, authorization())
    await reader.until('it has begun', (received) => received.length > 100_000)
    reader.stopReading()
    let taken = 0
    const until = performance.now() + 1.3 * stalledReaderMs
    while (performance.now() < until) {
      await pause(20)
      taken += String(reader.socket.read() ?? '').length
    }
    expect(taken).toBeGreaterThan(100_000)
    expect(platform.platform.turnstile.view().inFlight).toBe(1)
  })

  it('a reader that never takes the rest of a whole answer is cut off too', async () => {
    const words = ['x'.repeat(14_000_000)]
    const { platform } = await start(answers({ words }), { server: { stalledReaderMs: 200, connectionsMax: 1 } })
    const reader = connect(platform).stopReading()
    reader.post(CHAT, chat, authorization())
    await eventually('it is settled', () => platform.platform.liveCount === 0 && platform.entries.length > 4)
    const isAnswered = () =>
      fetch(`${platform.address}/health`).then(
        ({ ok }) => ok,
        () => false,
      )
    await eventually('there is room for another connection', isAnswered)
    // It comes back too late: the connection is gone, and with it the megabytes that were kept for it.
    reader.socket.resume()
    await reader.closed()
    expect(reader.received.length).toBeLessThan(14_000_000)
  })

  it('a short answer is settled although nobody reads it: it fits into the socket', async () => {
    const platform = await startPlatform(testTree({ server: { stalledReaderMs: 300 } }))
    open.push(platform)
    const reader = connect(platform).stopReading()
    reader.post(CHAT, { ...chat, stream: true, max_tokens: 20 }, authorization())
    await eventually('it is settled', () => platform.platform.liveCount === 0 && platform.entries.length > 4)
    expect(platform.entries.findLast((entry) => entry.kind === 'settled')).toMatchObject({ outcome: 'completed' })
  })
})

describe('a client that disconnects', () => {
  const isFree = (platform: TestPlatform): boolean => {
    const { waiting, inFlight } = platform.platform.turnstile.view()
    return platform.platform.liveCount === 0 && waiting === 0 && inFlight === 0
  }
  const settledIn = (platform: TestPlatform) => {
    platform.journal.drain()
    return platform.entries.filter((entry): entry is Settled => entry.kind === 'settled')
  }

  it('while it sends its body: nothing was taken, and nothing is our fault', async () => {
    const { upstream, platform } = await start(answers())
    const client = connect(platform)
    const head = `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nauthorization: ${authorization()['authorization']}\r\n`
    client.send(`${head}content-length: 1000\r\nexpect: 100-continue\r\n\r\n`)
    await client.until('the server waits for the body', (received) => received.startsWith('HTTP/1.1 100'))
    client.send('{"model":')
    client.destroy()
    expect((await postJson(platform.baseURL + CHAT.slice(3), chat)).status).toBe(200)
    expect(isFree(platform)).toBe(true)
    expect(upstream.seen).toHaveLength(1)
    expect(settledIn(platform)).toHaveLength(1)
    expect(platform.entries.filter((entry) => entry.kind === 'fault-seen')).toEqual([])
  })

  it.each([true, false])('while it is queued (streamed: %s)', async (stream) => {
    const { upstream, platform } = await start(hangs, {}, 1)
    const first = connect(platform).post(CHAT, { ...chat, stream }, authorization())
    await eventually('the first runs', () => upstream.openAnswers === 1)
    const second = connect(platform).post(CHAT, { ...chat, stream }, authorization())
    await eventually('the second waits', () => platform.platform.turnstile.view().waiting === 1)
    second.destroy()
    await eventually('its place is free', () => platform.platform.turnstile.view().waiting === 0)
    await eventually('it is settled', () => settledIn(platform).length === 1)
    expect(settledIn(platform)[0]).toMatchObject({ outcome: 'cancelled', attempts: 0, because: 'client-gone' })
    first.destroy()
    await eventually('all is free', () => isFree(platform) && upstream.openAnswers === 0)
  })

  it.each([true, false])('before the first token (streamed: %s)', async (stream) => {
    const { upstream, platform } = await start(hangs)
    const client = connect(platform).post(CHAT, { ...chat, stream }, authorization())
    await eventually('it runs', () => upstream.openAnswers === 1)
    client.destroy()
    await eventually('all is free', () => isFree(platform) && upstream.openAnswers === 0)
    expect(settledIn(platform)).toMatchObject([{ outcome: 'cancelled', usage: { outputTokens: 0 } }])
  })

  it('in the middle of a stream: with the tokens that it got', async () => {
    const words = Array.from({ length: 500 }, (_, i) => `word${i} `)
    const { upstream, platform } = await start(answers({ words, everyMs: 2 }))
    const client = connect(platform).post(CHAT, { ...chat, stream: true }, authorization())
    await client.until('ten words', (received) => received.includes('word10'))
    client.destroy()
    await eventually('all is free', () => isFree(platform) && upstream.openAnswers === 0)
    const [settled] = settledIn(platform)
    expect(settled).toMatchObject({ outcome: 'cancelled', because: 'client-gone' })
    expect(settled!.usage.outputTokens).toBeGreaterThan(10)
    expect(settled!.usage.outputTokens).toBeLessThan(300)
  })

  it('while its reader is slow', async () => {
    const { upstream, platform } = await start(floods(8_000))
    const client = connect(platform).stopReading()
    client.post(CHAT, { ...chat, stream: true }, authorization())
    let sent = -1
    await eventually('the upstream is held back', async () => {
      const before = sent
      await pause(50)
      sent = upstream.bytesWritten
      return sent > 0 && sent === before
    })
    client.destroy()
    await eventually('all is free', () => isFree(platform) && upstream.openAnswers === 0)
    expect(settledIn(platform)).toMatchObject([{ outcome: 'cancelled', because: 'client-gone' }])
  })

  it.each([1, 3])('while a simulated engine works on its %i choices: the sequences are gone', async (n) => {
    const platform = await startPlatform()
    open.push(platform)
    const client = connect(platform).post(
      CHAT,
      // Half a minute of tokens: whatever is free sooner was let go.
      { ...chat, n, stream: true, seed: 11, max_tokens: 4_000, ignore_eos: true },
      authorization(),
    )
    await client.until('some tokens', (received) => received.split('data: ').length > 5)
    expect((await platform.engine()).runningCount).toBe(n)
    client.destroy()
    const isIdle = async () => {
      const { runningCount, waitingCount, kvUsageRatio } = await platform.engine()
      return runningCount === 0 && waitingCount === 0 && kvUsageRatio === 0 && isFree(platform)
    }
    await eventually('the engine is idle', isIdle)
  })
})

it('a kept-alive connection carries one answer after another', async () => {
  const { platform } = await start(answers())
  const client = connect(platform)
  for (let i = 1; i <= 3; i++) {
    client.post(CHAT, { ...chat, stream: i % 2 === 1 }, authorization())
    await client.until(`answer ${i}`, (received) => received.split('HTTP/1.1 200').length === i + 1)
    await eventually('it is over', () => platform.platform.liveCount === 0)
  }
  expect(client.isClosed).toBe(false)
})

it('a hundred streams at once each get their own words, in order', async () => {
  const upstream = await FakeUpstream.start(async (call) => {
    const [{ content }] = call.body['messages'] as [{ content: string }]
    const words = Array.from({ length: 10 }, (_, i) => `${content}.${i} `)
    await answers({ words, everyMs: 1 })(call)
  })
  open.push(upstream)
  const platform = await startPlatform(upstreamTree([upstream.url]))
  open.push(platform)
  const texts = await Promise.all(
    Array.from({ length: 100 }, async (_, i) => {
      const body = { model: MODEL, stream: true, messages: [{ role: 'user', content: `s${i}` }] }
      const text = await (await postJson(platform.baseURL + CHAT.slice(3), body)).text()
      return [...text.matchAll(/"content":"([^"]*)"/g)].map((match) => match[1]).join('')
    }),
  )
  texts.forEach((text, i) => {
    expect(text).toBe(Array.from({ length: 10 }, (_, j) => `s${i}.${j} `).join(''))
  })
})
