import { inspect } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Child, TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { FakeUpstream, fails } from '../support/fake-upstream.ts'
import { ACME_KEY, METRICS_KEY, MODEL, postJson, testTree } from '../support/start-platform.ts'

/** Credentials of engines stay hidden in everything that a process writes or answers; `http-authorized.test.ts` has the mechanism. */

const KEY = 'sk-upstream-secret-0123456789'
const chat = { model: MODEL, messages: [{ role: 'user', content: 'Hello?' }] }

const closers: Array<() => unknown> = []
afterAll(async () => {
  for (const close of closers.reverse()) await close()
})

describe.each(['a key', 'a token that ends'])('%s that the engine quotes', (kind) => {
  let upstream: FakeUpstream
  let child: Child
  let address: string
  // Before the test: on a busy machine it takes longer than the test.
  beforeAll(async () => {
    const quotes = fails(400, { error: { message: `Bad key ${KEY}, I said ${KEY}`, param: KEY } })
    upstream = await FakeUpstream.start(quotes)
    closers.push(() => upstream.close())
    const folder = new TestFolder()
    closers.push(() => folder.remove())
    const pool = {
      model: MODEL,
      backend: {
        kind: 'http-openai',
        ...(kind === 'a key' ? { apiKeyEnv: 'UPSTREAM_KEY' } : { credential: { file: folder.write('token', KEY) } }),
        headers: { 'x-team': `${KEY}-team` },
      },
      replicas: [upstream.url.replace('http://', `http://user:${KEY}@`)],
    }
    const { logging: _quiet, server: _port, ...rest } = testTree({ pools: [pool] })
    const config = folder.write('spillway.yaml', rest)
    const env = { SPILLWAY_CONFIG: config, UPSTREAM_KEY: KEY, LOG_LEVEL: 'trace', LOG_FORMAT: 'json' }
    child = new Child({ env })
    closers.push(() => child.end())
    address = await child.address(60_000)
  })

  it('is in no log, page, error or report', async () => {
    const answered = await postJson(`${address}/v1/chat/completions`, chat)
    expect(answered.status).toBe(400)
    expect(upstream.seen[0]?.headers.authorization).toBe(`Bearer ${KEY}`)
    upstream.behaviour = fails(500, { error: { message: KEY } })
    const failed = await postJson(`${address}/v1/chat/completions`, { ...chat, stream: true })
    await upstream.close()
    const lost = await postJson(`${address}/v1/chat/completions`, chat)
    const id = answered.headers.get('x-request-id')!
    const story = await fetch(`${address}/spillway/requests/${id}`, {
      headers: { authorization: `Bearer ${ACME_KEY}` },
    })
    const pages = [
      answered,
      failed,
      lost,
      story,
      await fetch(`${address}/metrics`, { headers: { authorization: `Bearer ${METRICS_KEY}` } }),
      await fetch(`${address}/health/ready`),
    ]
    const texts = await Promise.all(pages.map((page) => page.text()))
    await eventually('the log tells of the attempts', () => child.out.includes('settled') || undefined)
    child.signal('SIGTERM')
    await child.exited()
    const everything = [...texts, child.out, child.err, inspect(pages.map(({ headers }) => [...headers]))].join('\n')
    expect(everything).not.toContain(KEY)
    expect(everything).not.toContain(Buffer.from(`user:${KEY}`).toString('base64'))
  })
})
