import { afterEach, describe, expect, it } from 'vitest'
import { readTraceparent } from '../../src/base/trace-context.ts'
import { hashKey } from '../../src/config/key-hash.ts'
import { eventually } from '../support/eventually.ts'
import { dropsConnection, FakeUpstream } from '../support/fake-upstream.ts'
import { ScriptedServer } from '../support/scripted-server.ts'
import {
  ACME_KEY,
  METRICS_KEY,
  MODEL,
  startPlatform,
  type TestPlatform,
  type Tree,
  upstreamTree,
} from '../support/start-platform.ts'

/** Spans and metrics at a collector of the test's own, over OTLP. */
interface OtlpSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly attributes: readonly { key: string; value: Record<string, unknown> }[]
  readonly status?: { code: number; message: string }
}

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'

const open: { close(): Promise<void> }[] = []
let platform: TestPlatform | undefined
afterEach(async () => {
  await platform?.close()
  for (const each of open.splice(0)) await each.close()
})

async function collector(status = () => 200): Promise<ScriptedServer> {
  const reply = (_asked: unknown, res: { writeHead(code: number): { end(text: string): void } }): void => {
    res.writeHead(status()).end('{}')
  }
  const server = await ScriptedServer.start({ 'POST /v1/traces': reply, 'POST /v1/metrics': reply })
  open.push(server)
  return server
}

const spansAt = (server: ScriptedServer): OtlpSpan[] =>
  server.seen
    .filter(({ path }) => path === '/v1/traces')
    .flatMap(({ body }) => JSON.parse(body).resourceSpans[0].scopeSpans[0].spans as OtlpSpan[])

async function start(
  telemetry: Record<string, unknown>,
  upstreams: readonly FakeUpstream[],
  more: Tree = {},
): Promise<TestPlatform> {
  open.push(...upstreams)
  platform = await startPlatform(
    upstreamTree(
      upstreams.map(({ url }) => url),
      { telemetry, ...more },
    ),
  )
  return platform
}

async function ask({ baseURL }: TestPlatform, headers: Record<string, string> = {}, stream = true): Promise<Response> {
  const body = JSON.stringify({
    model: MODEL,
    stream,
    messages: [{ role: 'user', content: 'a secret canary-7331, write to canary@leak-example.com' }],
  })
  const response = await fetch(`${baseURL}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ACME_KEY}`, 'content-type': 'application/json', ...headers },
    body,
  })
  await response.text()
  return response
}

describe('traces', () => {
  it('of a streamed, screened request that was tried again reach the collector inside the caller’s trace, and go on to the engine', async () => {
    const upstreams = [await FakeUpstream.start(), await FakeUpstream.start()]
    // Whichever gets the request first breaks off.
    let count = 0
    for (const upstream of upstreams) {
      const good = upstream.behaviour
      upstream.behaviour = (call) => (count++ === 0 ? dropsConnection(call) : good(call))
    }
    const server = await collector()
    const screened = {
      id: 'acme',
      slo: 'patient',
      keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }],
      screening: { input: { pii: 'redact', injection: 'observe' } },
    }
    const telemetry = { otlpUrl: server.url, headers: { 'x-key': 'abc' }, sampleRatio: 0 }
    const running = await start(telemetry, upstreams, { tenants: [screened] })
    const response = await ask(running, { traceparent: `00-${TRACE}-${PARENT}-01` })
    expect(response.status).toBe(200)
    const spans = await eventually('spans at the collector', () => {
      const seen = spansAt(server)
      return seen.length > 0 ? seen : undefined
    })
    const [request] = spans
    expect(request).toMatchObject({ traceId: TRACE, parentSpanId: PARENT, name: `chat ${MODEL}` })
    const attempts = spans.filter(({ name }) => name === 'attempt')
    expect(attempts.length).toBeGreaterThan(1)
    expect(attempts[0]?.status?.code).toBe(2)
    expect(attempts.at(-1)?.status).toBeUndefined()
    // What the screens found, by name and never by text.
    const [screen, ...others] = spans.filter(({ name }) => name === 'screen')
    expect(others).toEqual([])
    expect(screen).toMatchObject({ traceId: TRACE, parentSpanId: request?.spanId })
    expect(JSON.stringify(screen?.attributes)).toContain('pii:email')
    // Each engine got the span of its own attempt.
    const told = upstreams.flatMap(({ seen }) =>
      seen.map(({ headers }) => readTraceparent(String(headers['traceparent']))),
    )
    expect(new Set(told.map((context) => context?.parentId))).toEqual(new Set(attempts.map(({ spanId }) => spanId)))
    expect(told.every((context) => context?.traceId === TRACE && context.isSampled)).toBe(true)
    expect(server.seen[0]?.headers['x-key']).toBe('abc')
    expect(JSON.stringify(server.seen)).not.toContain('canary')
  })

  it('of what went well and nobody samples are not made, and of what was refused are', async () => {
    const upstream = await FakeUpstream.start()
    const server = await collector()
    const running = await start({ otlpUrl: server.url, sampleRatio: 0 }, [upstream])
    await ask(running)
    await ask(running, { traceparent: `00-${TRACE}-${PARENT}-00` })
    await ask(running, { 'x-spillway-deadline-ms': '0.001' })
    const spans = await eventually('spans at the collector', () => {
      const seen = spansAt(server)
      return seen.length > 0 ? seen : undefined
    })
    expect(spans.filter(({ name }) => name.startsWith('chat'))).toHaveLength(1)
    expect(upstream.seen[0]?.headers['traceparent']).toBeUndefined()
    expect(upstream.seen[1]?.headers['traceparent']).toContain(TRACE)
  })

  it('are lost, counted and complained of once where the collector is away, and no answer changes', async () => {
    const upstream = await FakeUpstream.start()
    const server = await collector(() => 500)
    const running = await start({ otlpUrl: server.url, sampleRatio: 1 }, [upstream])
    for (let i = 0; i < 3; i++) expect((await ask(running)).status).toBe(200)
    await eventually(
      'lost spans',
      async () => ((await running.metric('spillway_spans_dropped_total')) ?? 0) > 0 || undefined,
    )
    expect(running.printed.match(/telemetry.otlpUrl/g)).toHaveLength(1)
  })
})

describe('metrics', () => {
  it('reach the collector, the same figures as at /metrics', async () => {
    const upstream = await FakeUpstream.start()
    const server = await collector()
    const running = await start({ otlpUrl: server.url, metricsEveryMs: 1 }, [upstream])
    await ask(running)
    const found = await eventually('metrics at the collector', () => {
      for (const { path, body } of server.seen.toReversed()) {
        if (path !== '/v1/metrics') continue
        const { metrics } = JSON.parse(body).resourceMetrics[0].scopeMetrics[0]
        const requests = metrics.find(({ name }: { name: string }) => name === 'spillway_requests_total')
        const ttft = metrics.find(({ name }: { name: string }) => name === 'spillway_time_to_first_token_seconds')
        if (requests !== undefined && ttft !== undefined) return { requests, ttft }
      }
      return undefined
    })
    expect(found.requests.sum).toMatchObject({ isMonotonic: true, aggregationTemporality: 2 })
    expect(found.requests.sum.dataPoints[0].asDouble).toBe(1)
    const [point] = found.ttft.histogram.dataPoints
    expect(point.count).toBe('1')
    expect(point.bucketCounts).toHaveLength(point.explicitBounds.length + 1)
  })

  it('are JSON for whoever asks for JSON', async () => {
    const running = await start({}, [await FakeUpstream.start()])
    await ask(running, {}, false)
    const read = async (accept: string): Promise<Response> =>
      fetch(`${running.address}/metrics`, { headers: { accept, authorization: `Bearer ${METRICS_KEY}` } })
    const json = (await (await read('application/json')).json()) as {
      metrics: {
        name: string
        type: string
        series: { labels: Record<string, string>; value?: number; count?: number }[]
      }[]
    }
    const of = (name: string) => json.metrics.find((metric) => metric.name === name)?.series ?? []
    expect(of('spillway_requests_total')).toEqual([
      { labels: { tenant: 'acme', model: MODEL, outcome: 'completed', code: 'none' }, value: 1 },
    ])
    expect(of('spillway_request_duration_seconds')[0]).toMatchObject({ count: 1 })
    expect((await read('text/plain;version=0.0.4;q=0.5,*/*;q=0.1')).headers.get('content-type')).toContain('text/plain')
    expect((await read('application/json')).headers.get('content-type')).toContain('application/json')
  })

  it('are OpenMetrics for a Prometheus, with the traces that callers sample', async () => {
    const running = await start({}, [await FakeUpstream.start()])
    await ask(running, {}, false)
    await ask(running, { traceparent: `00-${TRACE}-${PARENT}-01` }, false)
    const accept = 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
    const page = await fetch(`${running.address}/metrics`, {
      headers: { accept, authorization: `Bearer ${METRICS_KEY}` },
    })
    expect(page.headers.get('content-type')).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8')
    const text = await page.text()
    expect(text).toMatch(/^# TYPE spillway_requests counter\nspillway_requests_total\{[^}]*\} 2$/m)
    expect(text.endsWith('\n# EOF\n')).toBe(true)
    const exemplars = text.split('\n').filter((line) => line.includes('trace_id'))
    expect(exemplars.filter((line) => line.startsWith('spillway_request_duration_seconds_bucket'))).toHaveLength(1)
    for (const line of exemplars)
      expect(line).toMatch(new RegExp(`_bucket\\{.*\\} \\d+ # \\{trace_id="${TRACE}"\\} \\S+ \\d+`))
  })
})
