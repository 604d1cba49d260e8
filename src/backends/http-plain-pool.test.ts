import type { AddressInfo } from 'node:net'
import { createServer, type Server, type Socket } from 'node:net'
import type { Dispatcher } from 'undici'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { PlainPool, type PlainPoolOptions } from './http-plain-pool.ts'

const servers: Server[] = []
const pools: PlainPool[] = []
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close()
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve))
})

/** A server that calls `onRequest` for every whole request it has read; returns how many connections it has had. */
async function serve(onRequest: (socket: Socket, request: string, connection: number) => void) {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    const connection = sockets.push(socket)
    let text = ''
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      text += bytes.toString('utf8')
      const head = text.indexOf('\r\n\r\n')
      const length = Number(/content-length: (\d+)/.exec(text)?.[1] ?? Number.NaN)
      if (head < 0 || Buffer.byteLength(text.slice(head + 4)) < length) return
      const request = text
      text = ''
      onRequest(socket, request, connection)
    })
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { sockets, port: (server.address() as AddressInfo).port }
}

function makePool(port: number, options: Partial<PlainPoolOptions> = {}): PlainPool {
  const pool = new PlainPool({
    host: '127.0.0.1',
    port,
    authority: `127.0.0.1:${port}`,
    connectTimeoutMs: 5_000,
    silenceMsMax: 60_000,
    connectionsMax: 100,
    keepAliveMs: 60_000,
    ...options,
  })
  pools.push(pool)
  return pool
}

interface Answer {
  status: number
  body: string
  error: string | undefined
}

function ask(pool: PlainPool, body = '{}', watch: Dispatcher.DispatchHandler = {}): Promise<Answer> {
  return new Promise((resolve) => {
    const answer: Answer = { status: 0, body: '', error: undefined }
    pool.dispatch(
      { path: '/v1/x', headers: ['content-type', 'application/json'], body },
      {
        onRequestStart: (controller) => watch.onRequestStart?.(controller, null),
        onResponseStart: (_controller, status) => {
          answer.status = status
        },
        onResponseData: (controller, chunk) => {
          answer.body += chunk.toString('utf8')
          watch.onResponseData?.(controller, chunk)
        },
        onResponseEnd: () => resolve(answer),
        onResponseError: (_controller, error) => {
          resolve({ ...answer, error: (error as { code?: string }).code })
        },
      },
    )
  })
}

const ok = (body: string, more = ''): string =>
  `HTTP/1.1 200 OK\r\n${more}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

describe('PlainPool', () => {
  it('sends what was asked, byte for byte, and uses its connection again', async () => {
    const seen: string[] = []
    const { sockets, port } = await serve((socket, request) => {
      seen.push(request)
      socket.write(ok('[1]'))
    })
    const pool = makePool(port)
    for (const body of ['{"a":"plain"}', '{"a":"grün 😀"}']) {
      expect(await ask(pool, body)).toEqual({ status: 200, body: '[1]', error: undefined })
    }
    expect(seen[1]).toBe(
      `POST /v1/x HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nconnection: keep-alive\r\n` +
        'content-type: application/json\r\ncontent-length: 18\r\n\r\n{"a":"grün 😀"}',
    )
    expect(sockets.length).toBe(1)
  })

  it('opens as many connections as it may, and lets the others wait', async () => {
    let open = 0
    let openMost = 0
    const { sockets, port } = await serve((socket) => {
      openMost = Math.max(openMost, ++open)
      setImmediate(() => {
        open--
        socket.write(ok('x'))
      })
    })
    const pool = makePool(port, { connectionsMax: 3 })
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(pool)))
    expect(answers.every(({ body }) => body === 'x')).toBe(true)
    expect(sockets.length).toBe(3)
    expect(openMost).toBeLessThanOrEqual(3)
  })

  it('drops a connection that says something unasked, and never takes that for an answer', async () => {
    const { sockets, port } = await serve((socket, _request, connection) => {
      socket.write(ok(`answer on ${connection}`))
      if (connection === 1) setImmediate(() => socket.write(ok('unasked')))
    })
    const pool = makePool(port)
    expect((await ask(pool)).body).toBe('answer on 1')
    await vi.waitFor(() => expect(pool.lineCount).toBe(0))
    expect((await ask(pool)).body).toBe('answer on 2')
    expect(sockets.length).toBe(2)
  })

  it('sends no header that could begin another', async () => {
    const { sockets, port } = await serve((socket) => void socket.write(ok('x')))
    const pool = makePool(port)
    for (const value of ['a\r\nx-b: c', 'a\nb', 'snow ☃']) {
      const error = await new Promise((resolve) => {
        const handler = { onResponseError: (_: unknown, failed: Error) => resolve((failed as { code?: string }).code) }
        pool.dispatch({ path: '/x', headers: ['x-a', value], body: '{}' }, handler)
      })
      expect(error).toBe('INVALID_HEADER')
    }
    expect(sockets.length).toBe(0)
  })

  it('says with a code what went wrong', async () => {
    const { port } = await serve((socket, request) => {
      if (request.includes('garbage')) socket.write('garbage\r\n\r\n')
      else if (request.includes('early')) socket.end(ok('half of it').slice(0, -3))
    })
    const pool = makePool(port, { silenceMsMax: 300 })
    expect((await ask(pool, 'garbage')).error).toBe('INVALID_RESPONSE')
    expect(await ask(pool, 'early')).toMatchObject({ body: 'half of', error: 'CLOSED_EARLY' })
    expect((await ask(pool, 'silence')).error).toBe('SILENCE_TIMEOUT')
    await pool.close()
    expect((await ask(pool)).error).toBe('CLOSED')
    expect((await ask(makePool(1))).error).toBe('ECONNREFUSED')
    await vi.waitFor(() => expect(pool.lineCount).toBe(0))
  })

  it('forgets idle connections when their time is over, and at once when the server says so', async () => {
    const { sockets, port } = await serve((socket, request) => {
      socket.write(ok('x', request.includes('brief') ? 'keep-alive: timeout=1\r\n' : ''))
    })
    const pool = makePool(port, { keepAliveMs: 300 })
    await ask(pool)
    expect(pool.lineCount).toBe(1)
    await vi.waitFor(() => expect(pool.lineCount).toBe(0), { timeout: 5_000 })
    await ask(pool, 'brief')
    await vi.waitFor(() => expect(pool.lineCount).toBe(0))
    expect(sockets.length).toBe(2)
  })

  it('sends no request on a connection whose time has just ended', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    try {
      const { sockets, port } = await serve((socket, _request, connection) => {
        socket.write(ok(`answer on ${connection}`))
      })
      const pool = makePool(port, { keepAliveMs: 300 })
      await ask(pool)
      await new Promise((resolve) => setImmediate(resolve))
      // The tick destroys the connection; its close is told later in this turn of the loop.
      vi.advanceTimersByTime(1_000)
      expect(await ask(pool)).toMatchObject({ body: 'answer on 2', error: undefined })
      expect(sockets.length).toBe(2)
    } finally {
      vi.useRealTimers()
    }
  })

  it('holds back a server whose reader is slow, and tells the end only when that one has caught up', async () => {
    const { port } = await serve((socket) => void socket.write(ok('x'.repeat(5_000_000))))
    const pool = makePool(port)
    let paused: Dispatcher.DispatchController | undefined
    let whilePaused = 0
    let isOver = false
    const answer = ask(pool, '{}', {
      onResponseData: (controller, chunk) => {
        if (paused !== undefined) whilePaused += chunk.length
        else {
          paused = controller
          controller.pause()
        }
      },
    }).then((done) => {
      isOver = true
      return done
    })
    await vi.waitFor(() => expect(paused).toBeDefined())
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
    expect(whilePaused).toBeLessThanOrEqual(64 << 10)
    expect(isOver).toBe(false)
    paused!.resume()
    expect((await answer).body.length).toBe(5_000_000)
  })

  it('sends nothing of a request that is called off in the turn in which it came', async () => {
    const requests: string[] = []
    const { port } = await serve((socket, request) => {
      requests.push(request.slice(request.indexOf('\r\n\r\n') + 4))
      socket.write(ok('x'))
    })
    const pool = makePool(port)
    await ask(pool, 'first')
    await new Promise((resolve) => setImmediate(resolve))
    let controller: Dispatcher.DispatchController | undefined
    const onRequestStart = (started: Dispatcher.DispatchController): void => {
      controller = started
    }
    pool.dispatch({ path: '/', headers: [], body: 'second' }, { onRequestStart })
    controller?.abort(new Error('called off'))
    expect((await ask(pool, 'third')).body).toBe('x')
    expect(requests).toEqual(['first', 'third'])
  })

  it('tells no end while the reader of a short answer is paused', async () => {
    const { sockets, port } = await serve((socket) => void socket.end(ok('short')))
    const pool = makePool(port)
    let paused: Dispatcher.DispatchController | undefined
    let isOver = false
    const answer = ask(pool, '{}', {
      onResponseData: (controller) => {
        paused = controller
        controller.pause()
      },
    }).then((done) => {
      isOver = true
      return done
    })
    await vi.waitFor(() => expect(sockets[0]?.destroyed).toBe(false))
    await vi.waitFor(() => expect(paused).toBeDefined())
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
    expect(isOver).toBe(false)
    paused!.resume()
    expect((await answer).body).toBe('short')
  })

  it('hangs up when nobody wants the rest, also before the connection is there', async () => {
    const { sockets, port } = await serve((socket) => void socket.write(ok('x'.repeat(100)).slice(0, -1)))
    const pool = makePool(port)
    let heard = ''
    void ask(pool, '{}', {
      onResponseData: (controller, chunk) => {
        heard += chunk.toString()
        controller.abort(new Error('enough'))
      },
    })
    await vi.waitFor(() => expect(heard.length).toBeGreaterThan(0))
    await vi.waitFor(() => expect(sockets[0]?.destroyed).toBe(true))
    void ask(pool, '{}', { onRequestStart: (controller) => controller.abort(new Error('never')) })
    let starting: Dispatcher.DispatchController | undefined
    void ask(pool, '{}', {
      onRequestStart: (controller) => {
        starting = controller
      },
    })
    starting!.abort(new Error('at once'))
    await vi.waitFor(() => expect(pool.lineCount).toBe(0))
  })
})
