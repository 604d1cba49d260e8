import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../../../test/support/eventually.ts'
import { LiveClock } from '../../base/live-clock.ts'
import { hashKey } from '../../config/key-hash.ts'
import { AdminDirectory } from '../admin-directory.ts'
import { type HttpServer, makeHttpServer } from '../http-server.ts'
import { type RecordDeps, recordRoute } from './record.ts'

/** The stream of a recording: what it does with a reader that is slow, gone, or one too many. */
const KEY = 'sk-admin'
const LINE = `${'x'.repeat(999)}\n`
type Sink = Parameters<RecordDeps['record']>[0]

let server: HttpServer | undefined
afterEach(() => server?.closeAllConnections() ?? server?.close())

async function start(record: RecordDeps['record'], keepAliveUs = 60_000_000): Promise<string> {
  const admins = new AdminDirectory([{ id: 'ada', hash: hashKey(KEY) }], {
    byHash: () => undefined,
    byIdentity: () => undefined,
  })
  server = makeHttpServer([recordRoute({ admins, clock: new LiveClock(), keepAliveUs, record })], {
    basePath: '',
    headersTimeoutMs: 10_000,
    requestTimeoutMs: 10_000,
    idleTimeoutMs: 10_000,
    connectionsMax: 10,
    makeRequestId: () => 'req_1',
    onFault: () => {},
  })
  const opened = server
  await new Promise<void>((resolve) => opened.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(opened.address() as AddressInfo).port}/admin/v1/recording`
}

const open = (url: string, init: RequestInit = {}): Promise<Response> =>
  fetch(url, { headers: { authorization: `Bearer ${KEY}` }, ...init })

describe('the stream of a recording', () => {
  it('sends what was gathered at each flush, and ends when the recorder does', async () => {
    let sink: Sink | undefined
    let stopped = 0
    const url = await start((out) => {
      out.write('header\n')
      sink = out
      return () => void stopped++
    })
    const response = await open(url)
    expect(response.headers.get('content-type')).toBe('application/x-ndjson')
    sink?.write('one\n')
    sink?.flush()
    sink?.end()
    expect(await response.text()).toBe('header\none\n')
    await eventually('the recording is stopped', () => stopped === 1)
  })

  it('refuses lines for a reader that does not read, instead of growing', async () => {
    let sink: Sink | undefined
    const url = await start((out) => {
      sink = out
      return () => {}
    })
    await open(url)
    let taken = 0
    // Far more than any socket's buffers hold.
    for (let i = 0; i < 100_000; i++) {
      if (sink?.write(LINE) === true) taken++
      sink?.flush()
    }
    expect(taken).toBeGreaterThan(100)
    expect(taken).toBeLessThan(50_000)
  })

  it('stops the recording when its reader hangs up', async () => {
    let stopped = 0
    const url = await start(() => () => void stopped++)
    const abort = new AbortController()
    await open(url, { signal: abort.signal })
    expect(stopped).toBe(0)
    abort.abort()
    await eventually('the recording is stopped', () => stopped === 1)
  })

  it('sends empty lines while nothing happens', async () => {
    let sink: Sink | undefined
    const url = await start((out) => {
      sink = out
      return () => {}
    }, 1_000)
    const response = await open(url)
    const reader = response.body!.getReader()
    expect(new TextDecoder().decode((await reader.read()).value)).toMatch(/^\n+$/)
    sink?.end()
    await reader.cancel()
  })

  it('answers 503 when too many recordings run, and ends a question for the headers', async () => {
    const full = await open(await start(() => undefined))
    expect([full.status, full.headers.get('retry-after')]).toEqual([503, '2'])
    expect(await full.text()).toContain('too_many_recordings')
    server?.closeAllConnections()
    const head = await open(await start(() => () => {}), { method: 'HEAD' })
    expect(head.status).toBe(200)
  })
})
