import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Faults, NO_FAULTS } from '../../src/engine-server/engine-faults.ts'
import { framesOf, InsideEngine, metricOf, postJson, SpillwayProcess } from '../support/engine-process.ts'
import { eventually } from '../support/eventually.ts'

/** `spillway engine` told to misbehave, overloaded, stopped: what a router or a client then sees. */

const MODEL = 'meta-llama/Llama-3.1-8B-Instruct'
const MESSAGES = [{ role: 'user', content: 'A spillway lets water pass a dam. It is sized for the largest flood.' }]

const WORDS = ['--profile', 'h100-llama-8b', '--model', MODEL]
const started: Array<{ stop(): Promise<unknown> }> = []
const keep = async <T extends { stop(): Promise<unknown> }>(starting: Promise<T>): Promise<T> => {
  const one = await starting
  started.push(one)
  return one
}
/** In a process of its own, started before each test: on a busy machine that takes longer than the test. */
function useProcess(...words: readonly string[]): () => SpillwayProcess {
  let running: SpillwayProcess
  beforeEach(async () => {
    running = await keep(SpillwayProcess.start('engine', ...WORDS, ...words))
  })
  return () => running
}
/** Here. */
const inside = (...words: string[]) => keep(InsideEngine.start(...WORDS, ...words))
afterEach(async () => {
  await Promise.all(started.splice(0).map((one) => one.stop()))
})

const ask = (engine: { readonly url: string }, body: object = {}, init?: RequestInit) =>
  postJson(`${engine.url}/v1/chat/completions`, { messages: MESSAGES, max_tokens: 3, ...body }, init)

describe('an engine server in trouble', () => {
  it('fails the share of requests that it was told to, the same for a seed', async () => {
    const engine = await inside('--fail-rate', '0.5', '--seed', '7')
    const statuses: number[] = []
    for (let i = 0; i < 12; i++) {
      const response = await ask(engine)
      statuses.push(response.status)
      const body = (await response.json()) as { error?: object }
      if (response.status === 500) expect(body.error).toMatchObject({ type: 'InternalServerError', code: 500 })
    }
    const faults = new Faults({ ...NO_FAULTS, failRatio: 0.5 }, 7)
    expect(statuses).toEqual(statuses.map(() => (faults.nextFate() === 'fail' ? 500 : 200)))
  })

  it('hangs, healthy to look at, until the client gives up', async () => {
    const engine = await inside('--hang-after', '1')
    expect((await ask(engine)).status).toBe(200)
    const leaving = new AbortController()
    const load = async () => ((await (await fetch(`${engine.url}/load`)).json()) as { server_load: number }).server_load
    let isAnswered = false
    const hanging = ask(engine, {}, { signal: leaving.signal }).finally(() => {
      isAnswered = true
    })
    await eventually('it has begun', async () => (await load()) === 1)
    // Three tokens would take it as long as a few of these.
    for (let i = 0; i < 50; i++) expect((await fetch(`${engine.url}/health`)).status).toBe(200)
    expect(isAnswered).toBe(false)
    leaving.abort()
    await expect(hanging).rejects.toMatchObject({ name: 'AbortError' })
    await eventually('it is let go', async () => (await load()) === 0)
  })

  it('is not ready while it loads its weights', async () => {
    const loading = await inside('--load-seconds', '3600')
    expect((await fetch(`${loading.url}/health`)).status).toBe(503)
    expect((await ask(loading)).status).toBe(503)
    const engine = await inside('--load-seconds', '0.3')
    await eventually('it has loaded them', async () => (await fetch(`${engine.url}/health`)).status === 200)
    expect((await ask(engine)).status).toBe(200)
  })

  it('queues inside, and refuses only when the queue it was given is full', async () => {
    const engine = await inside('--max-seqs', '1', '--token-budget', '512', '--max-waiting', '2', '--slowdown', '5')
    // They would run for minutes: none makes room before it is told to.
    const three = Array.from({ length: 3 }, () => {
      const leaving = new AbortController()
      const body = { max_tokens: 5_000, ignore_eos: true, stream: true }
      return { leaving, response: ask(engine, body, { signal: leaving.signal }) }
    })
    const present = async (state: string) => (await metricOf(engine.url, `num_requests_${state}`)) ?? 0
    await eventually('one runs, two wait', async () => (await present('running')) + (await present('waiting')) === 3)
    const refused = await ask(engine)
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(await refused.json()).toMatchObject({ error: { code: 503, type: 'ServiceUnavailableError' } })
    for (const { leaving, response } of three) {
      const { status, body } = await response
      expect(status).toBe(200)
      await body!.getReader().read()
      leaving.abort()
    }
  })

  it('speculates, and counts it as vLLM does', async () => {
    const engine = await inside('--speculation', 'eagle')
    const response = await ask(engine, { max_tokens: 200, ignore_eos: true, stream: true })
    let frames = 0
    for await (const _ of framesOf(response)) frames++
    // Some steps brought several tokens, each step one frame.
    expect(frames).toBeLessThan(150)
    const of = (name: string) => metricOf(engine.url, `spec_decode_num_${name}_total`)
    expect(await of('drafts')).toBeGreaterThan(50)
    expect(await of('draft_tokens')).toBe(3 * ((await of('drafts')) ?? 0))
    expect(await of('accepted_tokens')).toBeGreaterThan(50)
    expect(await metricOf(engine.url, 'generation_tokens_total')).toBe(200)
  })

  it('asks for its key, if it has one, and only under /v1', async () => {
    const engine = await inside('--api-key', 'sk-secret')
    const refused = await ask(engine)
    expect([refused.status, await refused.json()]).toEqual([401, { error: 'Unauthorized' }])
    expect((await ask(engine, {}, { headers: { authorization: 'Bearer sk-secret' } })).status).toBe(200)
    expect((await fetch(`${engine.url}/health`)).status).toBe(200)
    expect(engine.said).not.toContain('sk-secret')
  })
})

describe('an engine server that crashes', () => {
  const running = useProcess('--crash-after', '2')

  it('crashes after that many requests, with a code that says so', async () => {
    const engine = running()
    expect((await ask(engine)).status).toBe(200)
    expect((await ask(engine)).status).toBe(200)
    await expect(ask(engine)).rejects.toThrow('fetch failed')
    expect(await engine.ended).toBe(70)
  })
})

describe('an engine server that is stopped', () => {
  const running = useProcess()

  it('closes gently: running answers end, kept-alive connections do not hold it', async () => {
    const engine = running()
    const response = await ask(engine, { max_tokens: 60, ignore_eos: true, stream: true })
    const frames = framesOf(response)
    await frames.next()
    const ended = engine.stop('SIGTERM')
    const rest: string[] = []
    for await (const { data } of frames) rest.push(data)
    expect(rest.at(-1)).toBe('[DONE]')
    expect(rest).toHaveLength(60)
    expect(await ended).toBe(0)
    await expect(ask(engine)).rejects.toThrow('fetch failed')
  })
})

describe('an engine server with a reader that stops', () => {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-engine-'))
  const file = join(folder, 'engine.yaml')
  writeFileSync(file, 'server:\n  stalledReaderMs: 300\ntenants:\n  - id: nobody\n')
  afterAll(() => rmSync(folder, { recursive: true }))
  const running = useProcess('--config', file, '--max-seqs', '64', '--slowdown', '0.002', '--max-model-len', '100000')

  it('cuts off a reader that stops, and keeps going for the others', async () => {
    const engine = running()
    const body = JSON.stringify({ messages: MESSAGES, max_tokens: 80_000, ignore_eos: true, stream: true })
    const headers = { 'content-type': 'application/json', 'content-length': String(body.length) }
    const stalled = request(`${engine.url}/v1/chat/completions`, { method: 'POST', headers })
    stalled.on('error', () => {})
    stalled.end(body)
    const [answer] = (await once(stalled, 'response')) as [NodeJS.ReadableStream]
    answer.on('error', () => {})
    answer.pause()
    await eventually('it is cut off', async () => (await metricOf(engine.url, 'num_requests_running')) === 0)
    expect((await ask(engine)).status).toBe(200)
    stalled.destroy()
  })
})
