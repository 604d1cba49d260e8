import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../../test/support/eventually.ts'
import { closeAll, exchangeOf, startFastPath, textOf, turn } from '../../test/support/fast-path-server.ts'
import type { RawSocket } from '../../test/support/raw-http.ts'
import type { CancelTimer, Clock, Instant } from '../base/clock.ts'
import { Timers } from '../base/timers.ts'
import type { Exchange } from './exchange.ts'
import { FastRequest } from './http-fast-request.ts'
import { closeServer } from './http-listen.ts'
import type { HttpResponse } from './http-message.ts'
import { cutOffUnread } from './http-sinks.ts'

afterEach(closeAll)

/** Time that passes when the test says so. */
class HandClock implements Clock {
  readonly #timers = new Timers()
  #now: Instant = 1_700_000_000_000_000

  now(): Instant {
    return this.#now
  }

  at(instant: Instant, fn: () => void): CancelTimer {
    return this.#timers.add(instant, fn)
  }

  sleep(durationUs: number): Promise<void> {
    return new Promise((resolve) => this.at(this.#now + durationUs, resolve))
  }

  advance(us: number): void {
    const until = this.#now + us
    for (let at = this.#timers.nextAt(); at !== undefined && at <= until; at = this.#timers.nextAt()) {
      this.#now = at
      this.#timers.takeDue(at)?.()
    }
    this.#now = until
  }
}

describe('a connection', () => {
  it('needs no HTTP/2 beside it', async () => {
    const { seen, connect } = await startFastPath(true, { http2: false })
    const socket = connect().send(textOf('/json', '{"a":1}'))
    await socket.until('the answer', (received) => received.endsWith('{"a":1}'))
    expect(seen.byFastPath).toEqual([true])
  })

  it('is handed to node:http with a request that comes in parts, and stays there', async () => {
    const { seen, connect } = await startFastPath(true)
    const socket = connect().send(textOf('/json', '{"a":1}'))
    await socket.until('the first answer', (received) => received.endsWith('{"a":1}'))
    const second = textOf('/json', '{"a":2}')
    socket.send(second.slice(0, -3))
    await eventually('Node has the head', () => seen.byFastPath.length === 2)
    socket.send(second.slice(-3))
    await socket.until('the second answer', (received) => received.endsWith('{"a":2}'))
    socket.send(textOf('/json', '{"a":3}'))
    await socket.until('the third answer', (received) => received.endsWith('{"a":3}'))
    expect(seen.byFastPath).toEqual([true, false, false])
  })

  it('with two requests in one read is read by node:http', async () => {
    const { seen, connect } = await startFastPath(true)
    const socket = connect().send(textOf('/json', '{"a":1}') + textOf('/json', '{"a":2}'))
    await socket.until('both answers', (received) => received.endsWith('{"a":2}'))
    expect(socket.received.indexOf('{"a":1}')).toBeGreaterThan(0)
    expect(seen.byFastPath).toEqual([false, false])
  })

  it('answers in order what was sent during an answer', async () => {
    const { seen, connect } = await startFastPath(true)
    const socket = connect().send(textOf('/held', '{}'))
    await socket.until('the first answer begins', (received) => received.includes('begun'))
    const { res } = exchangeOf(seen)
    socket.send(textOf('/json', '{"a":2}'))
    await turn()
    expect(seen.byFastPath).toEqual([true])
    res.end('ended')
    await socket.until('both answers', (received) => received.endsWith('{"a":2}'))
    expect(socket.received.indexOf('ended')).toBeLessThan(socket.received.indexOf('{"a":2}'))
    expect(seen.byFastPath[0]).toBe(true)
  })

  it('is read no further than the bound during an answer', async () => {
    const { seen, connect } = await startFastPath(true)
    const socket = connect().send(textOf('/held', '{}'))
    await socket.until('the first answer begins', (received) => received.includes('begun'))
    const { req, res } = exchangeOf(seen)
    const many = 4_000
    socket.send(textOf('/json', `{"a":"${'x'.repeat(80)}"}`).repeat(many))
    if (!(req instanceof FastRequest)) throw new Error('not by the path')
    await eventually('the path stops reading', () => req.socket.isPaused())
    // The bound, and one read beyond it.
    expect(req.socket.bytesRead).toBeLessThan(3 * 65_536)
    res.end()
    await eventually('all have been answered', () => socket.received.split('HTTP/1.1 200').length - 1 === many + 1)
    expect(seen.byFastPath.length).toBe(many + 1)
  })

  it('that is idle for longer than was said is closed, and not before', async () => {
    const clock = new HandClock()
    const { connect } = await startFastPath(true, { clock })
    const socket = connect().send(textOf('/json', '{"a":1}'))
    await socket.until('the answer', (received) => received.endsWith('{"a":1}'))
    expect(socket.received).toContain('Keep-Alive: timeout=7\r\n')
    await turn()
    clock.advance(7_900_000)
    socket.send(textOf('/json', '{"a":2}'))
    await socket.until('another answer', (received) => received.endsWith('{"a":2}'))
    await turn()
    clock.advance(7_900_000)
    expect(socket.isClosed).toBe(false)
    clock.advance(1_000_000)
    await socket.closed()
  })

  it('is not idle during an answer', async () => {
    const clock = new HandClock()
    const { seen, connect } = await startFastPath(true, { clock })
    const socket = connect().send(textOf('/held', '{}'))
    await socket.until('the answer begins', (received) => received.includes('begun'))
    clock.advance(60_000_000)
    exchangeOf(seen).res.end('ended')
    await socket.until('the answer ends', (received) => received.includes('ended'))
    expect(socket.isClosed).toBe(false)
  })
})

describe('a client that goes', () => {
  async function gone(path: string, go: (socket: RawSocket) => void): Promise<HttpResponse> {
    const { seen, connect } = await startFastPath(true)
    const socket = connect().send(textOf(path, '{}'))
    await eventually('the request arrives', () => seen.exchange !== undefined)
    const { res } = exchangeOf(seen)
    let closes = 0
    res.on('close', () => {
      closes++
    })
    go(socket)
    await eventually('the route is told', () => closes > 0)
    await turn()
    expect(closes).toBe(1)
    return res
  }

  it.each([
    ['breaks off', (socket: RawSocket) => socket.socket.resetAndDestroy()],
    ['hangs up', (socket: RawSocket) => socket.destroy()],
    ['says its last word', (socket: RawSocket) => void socket.socket.end()],
  ])('is noticed when it %s, before and during an answer', async (_how, go) => {
    for (const path of ['/silent', '/held']) {
      const res = await gone(path, go)
      expect(res).toMatchObject({ destroyed: true, writableFinished: false })
      // Nothing that a route does now reaches anybody, or waits.
      await new Promise<void>((resolve) => res.write('late', resolve))
      res.end('late')
    }
  })
})

describe('closing', () => {
  it('closes idle connections, and answers busy ones with Connection: close', async () => {
    const { seen, server, connect } = await startFastPath(true)
    const idle = connect().send(textOf('/json', '{"a":1}'))
    await idle.until('the answer', (received) => received.endsWith('{"a":1}'))
    const busy = connect().send(textOf('/silent', '{}'))
    await eventually('the request arrives', () => seen.byFastPath.length === 2)
    let end = (): void => {}
    const answersEnded = new Promise<void>((resolve) => {
      end = resolve
    })
    const closed = closeServer(server, { answersEnded, patienceEnded: new Promise(() => {}) })
    await idle.closed()
    expect(busy.isClosed).toBe(false)
    exchangeOf(seen).sendJson(200, '{"last":true}')
    await busy.closed()
    expect(busy.received).toMatch(/\r\nConnection: close\r\n[\s\S]*\{"last":true\}$/)
    end()
    await closed
  })

  it('lets an answer that is being sent go out', async () => {
    const { seen, server, connect } = await startFastPath(true)
    const busy = connect().send(textOf('/held', '{}'))
    await busy.until('the answer begins', (received) => received.includes('begun'))
    const closed = closeServer(server, { answersEnded: Promise.resolve(), patienceEnded: new Promise(() => {}) })
    await turn()
    exchangeOf(seen).res.end('ended')
    await closed
    await busy.closed()
    expect(busy.received).toMatch(/ended\r\n0\r\n\r\n$/)
  })

  it('waits for nobody when patience has ended', async () => {
    const { seen, server, connect } = await startFastPath(true)
    const busy = connect().send(textOf('/held', '{}'))
    await eventually('the request arrives', () => seen.byFastPath.length === 1)
    await closeServer(server, { answersEnded: new Promise(() => {}), patienceEnded: Promise.resolve() })
    await busy.closed()
    expect(exchangeOf(seen).res.writableFinished).toBe(false)
  })
})

describe('a slow reader', () => {
  async function stalled(): Promise<{ socket: RawSocket; res: HttpResponse }> {
    const { seen, connect } = await startFastPath(true)
    const socket = connect().send(textOf('/held', '{}'))
    await socket.until('the answer begins', (received) => received.includes('begun'))
    socket.stopReading()
    const { res } = exchangeOf(seen)
    // The kernel takes megabytes before anything waits here.
    for (let i = 0; i < 10_000 && res.writableLength < 65_536; i++) {
      res.write('ü'.repeat(5_000))
      await turn()
    }
    return { socket, res }
  }

  it('holds its answer back: write says so, and drain when there is room', async () => {
    const { socket, res } = await stalled()
    expect(res.write('more')).toBe(false)
    const drained = new Promise<void>((resolve) => res.on('drain', resolve))
    let isTaken = false
    res.write('last', () => {
      isTaken = true
    })
    await turn()
    expect(isTaken).toBe(false)
    socket.socket.resume()
    await drained
    await eventually('the kernel has it', () => isTaken)
    expect(res.writableLength).toBe(0)
    res.end()
    await socket.until('the end', (received) => received.endsWith('0\r\n\r\n'))
  })

  it('is told of room also when text has fewer characters than bytes', async () => {
    const { seen, connect } = await startFastPath(true)
    const socket = connect().send(textOf('/held', '{}'))
    await socket.until('the answer begins', (received) => received.includes('begun'))
    const { res } = exchangeOf(seen)
    const drained = new Promise<void>((resolve) => res.on('drain', resolve))
    expect(res.write('ü'.repeat(40_000))).toBe(false)
    await drained
  })

  it('that leaves the end of an answer unread is cut off', async () => {
    const { res } = await stalled()
    res.end()
    cutOffUnread({ exchange: { res } as Exchange, stalledReaderUs: 20_000 })
    await eventually('it is cut off', () => res.destroyed)
    expect(res.writableFinished).toBe(false)
  })
})
