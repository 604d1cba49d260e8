import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import {
  byPath,
  CANARIES,
  CanaryEngines,
  chat,
  EMAIL,
  leaks,
  responses,
  sendWay,
  spellings,
  TEXT,
  WAYS,
  type Way,
} from '../support/canary-ways.ts'
import { Child, TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { answers, type Behaviour, dropsConnection, type FakeUpstream, fails } from '../support/fake-upstream.ts'
import type { PassingEngine } from '../support/passing-engine.ts'
import { SCREENED_ROUTES } from '../support/screened-routes.ts'

/**
 * Law L14, seen from outside: values that are nowhere else are sent through every route that takes text, with engines
 * that answer, refuse, break off and go, and in bodies that are wrong; then the process is killed, and everything that it
 * has written is searched for them: the log, the store, the spool, the recording, and what engines were sent.
 */

/** A document rests as it was uploaded: its value may be in the store, and at the embedder that indexes it. */
const STORED = 'yak5d1estored'
const DOCUMENT = `The weir is kept by ${STORED}@leak-example.com since the flood.`

const KEY = 'sk-canaries'
const ADMIN_KEY = 'sk-canaries-admin'

/** Bodies that are refused before an engine sees them. */
const WRONG: readonly Way[] = [
  { route: 'not JSON', path: '/v1/chat/completions', body: `{"messages": "${TEXT}` },
  { route: 'the wrong type', path: '/v1/chat/completions', body: { model: 'sim', messages: TEXT } },
  { route: 'no such model', path: '/v1/chat/completions', body: { ...chat, model: EMAIL } },
  { route: 'no such deployment', path: `/openai/deployments/${EMAIL}/chat/completions`, body: chat },
  {
    route: 'a second member',
    path: '/v1/chat/completions',
    body: `{"model":"${EMAIL}",${JSON.stringify(chat).slice(1)}`,
  },
  { route: 'too much', path: '/v1/chat/completions', body: { ...chat, n: 5_000 } },
]

const folder = new TestFolder()
let engines: CanaryEngines
let engine: FakeUpstream
let passing: PassingEngine
let child: Child
let address: string

beforeAll(async () => {
  engines = await CanaryEngines.start()
  engine = engines.engine
  passing = engines.passing
  const config = folder.write('spillway.yaml', {
    server: { port: 0 },
    logging: { level: 'info', format: 'json' },
    store: { path: join(folder.path, 'store') },
    ledger: { enabled: true },
    record: { path: join(folder.path, 'recording.jsonl') },
    retrieval: { budgetMs: 20_000, embedder: { url: engine.url, model: 'letters', dimensions: 26 } },
    ...engines.tree,
    admin: { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] },
    tenants: ['plain', 'reversible'].map((id) => ({
      id,
      slo: 'patient',
      waitMsMax: 1_000,
      storing: {},
      answerCache: {},
      screening: { reversible: id === 'reversible' },
      allowance: { budgets: [{ period: 'day', tokens: 1_000_000_000, perUser: true }] },
      keys: [{ id: `${id}-1`, hash: hashKey(`${KEY}-${id}`) }],
    })),
  })
  child = new Child({ args: [join(import.meta.dirname, '../../src/cli/cli.ts'), 'serve', '--config', config] })
  address = await child.address(30_000)
}, 60_000)
afterAll(async () => {
  await child?.end()
  await engines?.close()
  folder.remove()
})

const send = (way: Way, tenant: string): Promise<{ status: number; text: string }> =>
  sendWay(address, way, `${KEY}-${tenant}`)

function filesUnder(path: string): string[] {
  return readdirSync(path).flatMap((name) => {
    const at = join(path, name)
    return statSync(at).isDirectory() ? filesUnder(at) : [at]
  })
}

describe('canaries', () => {
  it('are sent through every screened route', () => {
    expect([...SCREENED_ROUTES].filter((route) => !WAYS.some((way) => way.route === route))).toEqual([])
  })

  it('are at no engine, whichever route they take', { timeout: 120_000 }, async () => {
    await fetch(`${address}/v1/vector_stores`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}-plain`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'weir' }),
    })
    for (const tenant of ['plain', 'reversible']) {
      for (const way of WAYS) {
        const { status } = await send(way, tenant)
        expect(status, `${tenant}: ${way.route} ${status}`).toBeLessThan(500)
      }
    }
    expect(engine.seen.length).toBeGreaterThan(20)
    for (const { path, text } of engine.seen) expect(leaks(spellings(text)), path).toEqual([])
    expect(passing.seen.length).toBeGreaterThan(10)
    for (const { path, body } of passing.seen) expect(leaks(spellings(body?.begin ?? '')), path).toEqual([])
  })

  it('are at no engine when it refuses, breaks off or goes, or the body is wrong', { timeout: 120_000 }, async () => {
    const troubles: readonly Behaviour[] = [
      fails(500, { error: { message: 'broken' } }),
      fails(400, { error: { message: 'this prompt is not for me', type: 'bad', param: null, code: null } }),
      fails(429, { error: { message: 'busy' } }, { 'retry-after': '1' }),
      dropsConnection,
      answers({ breaksAfter: 2 }),
    ]
    for (const trouble of troubles) {
      engine.behaviour = byPath(trouble)
      for (const body of [chat, { ...chat, stream: true }]) {
        await send({ route: 'POST /v1/chat/completions', body }, 'plain')
        await send({ route: 'POST /v1/responses', body: responses }, 'reversible')
      }
    }
    engine.behaviour = byPath(answers())
    // The only replica was ejected, after attempts that were lost by tenants of two orgs.
    const route = { route: 'POST /v1/chat/completions', body: chat }
    await eventually('the engine is used again', async () => (await send(route, 'plain')).status === 200, 60_000)
    for (const wrong of WRONG) {
      const { status, text } = await send(wrong, 'plain')
      expect(status, wrong.route).toBeLessThan(500)
      if (wrong.route !== 'no such deployment') expect(leaks(text), wrong.route).toEqual([])
    }
    for (const { path, text } of engine.seen) expect(leaks(spellings(text)), path).toEqual([])
  })

  it('of a document are in no prompt', { timeout: 60_000 }, async () => {
    const stored = { documents: [{ name: `${STORED}@leak-example.com.txt`, text: DOCUMENT }] }
    const added = await send({ route: '', path: '/v1/vector_stores/weir/documents', body: stored }, 'plain')
    expect(added.status).toBe(200)
    const found = await eventually(
      'the document is found',
      async () => {
        const { text } = await send(
          { route: '', path: '/v1/vector_stores/weir/search', body: { query: 'weir kept flood' } },
          'plain',
        )
        return text.includes('since the flood') ? text : undefined
      },
      30_000,
    )
    expect(leaks(found, [STORED])).toEqual([])
    expect(found).toContain('<EMAIL>')
    const messages = [{ role: 'user', content: 'Who keeps the weir since the flood?' }]
    const retrieval = { corpus: 'weir', include_passages: true }
    const asked = { model: 'sim', messages, spillway: { retrieval } }
    const { text } = await send({ route: 'POST /v1/chat/completions', body: asked }, 'plain')
    expect(leaks(text, [STORED])).toEqual([])
    const prompts = engine.seen.filter(({ path }) => path.endsWith('/chat/completions'))
    expect(prompts.at(-1)?.text).toContain('kept by <EMAIL>')
    for (const { text: prompt } of prompts) expect(leaks(prompt, [STORED])).toEqual([])
  })

  it('are in nothing that was written', { timeout: 60_000 }, async () => {
    const admin = { authorization: `Bearer ${ADMIN_KEY}` }
    for (const path of ['/metrics', '/admin/v1/refusals', '/admin/v1/changes']) {
      const page = await (await fetch(address + path, { headers: admin })).text()
      expect(leaks(page, [...CANARIES, STORED]), path).toEqual([])
    }
    const stored = await fetch(`${address}/v1/chat/completions`, { headers: { authorization: `Bearer ${KEY}-plain` } })
    const listed = await stored.text()
    expect(listed).toContain('chatcmpl-')
    expect(leaks(listed)).toEqual([])
    await child.end()
    expect(leaks(child.out + child.err, [...CANARIES, STORED])).toEqual([])
    expect(child.out.length).toBeGreaterThan(1_000)
    const files = filesUnder(folder.path)
    expect(files.some((file) => file.includes('recording'))).toBe(true)
    expect(files.some((file) => file.includes('spool'))).toBe(true)
    for (const file of files) expect(leaks(readFileSync(file, 'latin1')), file).toEqual([])
  })
})
