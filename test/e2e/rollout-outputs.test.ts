import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { WireOutputPair } from '../../src/cli/rollout-outputs.ts'
import { runCli } from '../../src/cli/run-cli.ts'
import { hashKey } from '../../src/config/key-hash.ts'
import { OUTPUT_CHARACTERS_MAX } from '../../src/lifecycle/rollout/keep-outputs.ts'
import { TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { LeakingEngine } from '../support/leaking-engine.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  METRICS_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/** Two releases on engines of the test: every request of the first is shown to the second, and tenants say what is kept. */
const ADMIN_KEY = 'sk-test-admin'
const BLOCKING_KEY = 'sk-test-blocking'
const LEAK = 'zebra7f3acanary@leak-example.com'
const PROMPT = 'the colour of my safe is aubergine'
const SAID = `Write to ${LEAK} about the weir.`

const folder = new TestFolder()
let platform: TestPlatform
let stable: LeakingEngine
let tried: LeakingEngine

beforeAll(async () => {
  stable = await LeakingEngine.start(LEAK, {})
  tried = await LeakingEngine.start(LEAK, {})
  const pool = (release: string, { url }: LeakingEngine) => ({
    model: MODEL,
    id: `pool-${release}`,
    release,
    backend: { kind: 'http-openai', timeoutMs: 10_000, engine: 'none' },
    replicas: [url],
  })
  const tenant = (id: string, key: string, more: object) => ({
    id,
    slo: 'patient',
    keys: [{ id: `${id}-1`, hash: hashKey(key) }],
    ...more,
  })
  platform = await startPlatform(
    testTree({
      admin: { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] },
      audit: { enabled: true, path: `${folder.path}/audit`, name: 'test.example/audit' },
      models: [
        {
          name: MODEL,
          releases: [{ version: '1' }, { version: '2' }],
          rollout: { stable: '1', shadow: { release: '2', percent: 100 } },
        },
      ],
      pools: [pool('1', stable), pool('2', tried)],
      tenants: [
        tenant('acme', ACME_KEY, { org: 'initech', storing: { shadows: true } }),
        tenant('globex', GLOBEX_KEY, { storing: {} }),
        tenant('blocking', BLOCKING_KEY, { storing: { shadows: true }, screening: { pii: 'block' } }),
      ],
    }),
  )
}, 60_000)
afterAll(async () => {
  await platform.close()
  await stable.close()
  await tried.close()
  folder.remove()
})
beforeEach(() => {
  stable.said = { content: SAID }
  tried.said = { content: 'Write to nobody.' }
  tried.mood = 'well'
})

const endedOf = (id: string) =>
  eventually('the copy has ended', () =>
    platform.entries.find((entry) => entry.kind === 'shadow-ended' && entry.ticketId === id),
  )

/** Asks the model; answers the request's id and what the client got, when the shadow has ended, too. */
async function ask(key: string, body: object = {}): Promise<{ id: string; text: string }> {
  const messages = [{ role: 'user', content: PROMPT }]
  const response = await postJson(
    `${platform.baseURL}/chat/completions`,
    { model: MODEL, messages, ...body },
    authorization(key),
  )
  const text = await response.text()
  expect(response.status).toBe(200)
  const id = response.headers.get('x-request-id') ?? ''
  await endedOf(id)
  return { id, text }
}

const outputs = (query = '', key = ADMIN_KEY) =>
  fetch(`${platform.address}/admin/v1/rollout-outputs${query}`, { headers: authorization(key) })

async function pairOf(id: string): Promise<WireOutputPair | undefined> {
  const { data } = (await (await outputs('?limit=50')).json()) as { data: WireOutputPair[] }
  return data.find(({ request }) => request === id)
}

describe('outputs of shadows', () => {
  it('are kept for a tenant that allows it, without personal data and without the prompt', async () => {
    const { id, text } = await ask(ACME_KEY, { stream: true })
    expect(text).toContain('leak-example')
    const pair = await pairOf(id)
    expect(pair).toEqual({
      request: id,
      at: expect.stringMatching(/^\d{4}-/),
      tenant: 'acme',
      model: MODEL,
      primary: {
        release: `${MODEL}@1`,
        text: 'Write to <EMAIL> about the weir.',
        length: SAID.length,
        finish_reason: 'stop',
      },
      shadow: {
        release: `${MODEL}@2`,
        text: 'Write to nobody.',
        length: 16,
        finish_reason: 'stop',
        outcome: 'completed',
      },
      difference: {
        equal: false,
        same_finish_reason: true,
        first_difference_at: 9,
        same_words_ratio: expect.any(Number),
        length_ratio: expect.closeTo(16 / SAID.length, 2),
      },
    })
    const all = await (await outputs('?limit=50')).text()
    expect(all).not.toContain('aubergine')
    expect(all).not.toMatch(/zebra7f3acanary|leak-example/)
  })

  it('are not kept for a tenant that allows stored answers only', async () => {
    const { id } = await ask(GLOBEX_KEY)
    expect(await pairOf(id)).toBeUndefined()
    expect(await (await outputs('?tenant=globex')).json()).toEqual({ object: 'list', data: [] })
  })

  it('are what the tenant’s own screens let out', async () => {
    const { id, text } = await ask(BLOCKING_KEY)
    expect(text).toContain('content_filter')
    const pair = await pairOf(id)
    expect(pair?.primary).toMatchObject({ finish_reason: 'content_filter' })
    expect(pair?.primary.text).not.toContain('EMAIL')
    expect(pair?.difference).toMatchObject({ same_finish_reason: false })
    tried.said = { content: SAID }
    stable.said = { content: 'Fine.' }
    const other = await pairOf((await ask(BLOCKING_KEY)).id)
    expect(other?.shadow).toMatchObject({ outcome: 'blocked', finish_reason: 'content_filter' })
    expect(other).not.toHaveProperty('difference')
  })

  it('are cut, and half of an address at the cut is left out', async () => {
    const before = 'x '.repeat(OUTPUT_CHARACTERS_MAX / 2 - 8)
    stable.said = { content: before + LEAK + ' y'.repeat(3_000) }
    const pair = await pairOf((await ask(ACME_KEY)).id)
    expect(pair?.primary.length).toBe(before.length + LEAK.length + 6_000)
    expect(pair?.primary.text.trimEnd()).toBe(before.trimEnd())
  })

  it('say whether structured output is JSON', async () => {
    stable.said = { content: '{"answer": 1}' }
    const pair = await pairOf((await ask(ACME_KEY, { response_format: { type: 'json_object' } })).id)
    expect(pair?.difference?.json).toEqual({ primary: true, shadow: false })
  })

  it('show a shadow that fails, and its client sees nothing of it', async () => {
    tried.mood = 'refuses'
    const { id, text } = await ask(ACME_KEY)
    expect(text).toContain('about the weir')
    const pair = await pairOf(id)
    expect(pair?.shadow).toEqual({
      release: `${MODEL}@2`,
      text: '',
      length: 0,
      finish_reason: null,
      outcome: 'failed',
    })
    expect(pair).not.toHaveProperty('difference')
  })

  it('delay no client: a shadow that hangs is waited for by nobody', async () => {
    tried.mood = 'hangs'
    const messages = [{ role: 'user', content: PROMPT }]
    const response = await postJson(`${platform.baseURL}/chat/completions`, { model: MODEL, messages, stream: true })
    expect(await response.text()).toContain('[DONE]')
    expect(tried.openCount).toBe(1)
    expect(await pairOf(response.headers.get('x-request-id') ?? '')).toBeUndefined()
  })
})

interface ExportedEvent {
  readonly decision?: { readonly because?: string }
}

describe('readers', () => {
  it.each([
    ['a tenant', ACME_KEY, 403],
    ['a reader of metrics', METRICS_KEY, 401],
    ['nobody', 'sk-test-nobody', 401],
  ])('%s: refused', async (_who, key, status) => {
    const response = await outputs('', key)
    expect([response.status, await response.text()]).toEqual([status, expect.not.stringContaining('weir')])
  })

  it('are written to the audit, with the org whose text they read', async () => {
    await ask(ACME_KEY)
    await (await outputs(`?model=${MODEL}&tenant=acme&limit=1`)).json()
    const event = await eventually('the event is written', async () => {
      const out: string[] = []
      const io = { out: (text: string) => out.push(text), err: () => {} }
      await runCli(['audit', 'export', '--folder', `${folder.path}/audit`], io)
      const events = out.flatMap((text) => text.split('\n')).map((line) => JSON.parse(line) as ExportedEvent)
      return events.find(({ decision }) => decision?.because === `outputs of shadows of ${MODEL}`)
    })
    expect(event).toMatchObject({
      kind: 'data.exported',
      actor: { kind: 'admin', name: 'ada' },
      org: 'initech',
      detail: { count: 1 },
    })
  })

  it('have a command', async () => {
    const { id } = await ask(ACME_KEY)
    const out: string[] = []
    const io = { out: (text: string) => out.push(text), err: (text: string) => out.push(text) }
    const words = ['rollout', 'outputs', MODEL, '--limit', '1', '--url', platform.address, '--key', ADMIN_KEY]
    expect(await runCli(words, io)).toBe(0)
    expect(out.join('\n')).toMatch(new RegExp(`${id} +acme +${MODEL}@2 completed +no`))
    expect(out.join('\n')).toContain('client  Write to <EMAIL> about the weir.')
    expect(await runCli([...words, '--json'], io)).toBe(0)
    expect(JSON.parse(out.at(-1) ?? '')).toMatchObject([{ request: id }])
  })
})

describe('a tenant', () => {
  const change = (method: string, path: string, body: object = {}) =>
    fetch(`${platform.address}/admin/v1/${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...authorization(ADMIN_KEY) },
      body: JSON.stringify({ because: 'a test', ...body }),
    })

  async function make(id: string): Promise<string> {
    await change('POST', 'orgs', { id: `${id}-org`, slos: ['patient'] })
    await change('POST', 'tenants', { id, orgId: `${id}-org`, storing: { shadows: true } })
    const made = await change('POST', 'keys', { id: `${id}-key`, tenantId: id })
    return ((await made.json()) as { secret: string }).secret
  }

  it('that is removed takes its outputs along', { timeout: 60_000 }, async () => {
    const { id } = await ask(await make('shop'))
    expect(await pairOf(id)).toBeDefined()
    expect((await change('DELETE', 'tenants/shop')).status).toBe(200)
    expect(await pairOf(id)).toBeUndefined()
  })

  it('that does not allow it any more has none left', { timeout: 60_000 }, async () => {
    const { id } = await ask(await make('store'))
    expect(await pairOf(id)).toBeDefined()
    expect((await change('PATCH', 'tenants/store', { storing: { shadows: false } })).status).toBe(200)
    expect(await pairOf(id)).toBeUndefined()
    expect((await change('PATCH', 'tenants/store', { storing: { shadows: true } })).status).toBe(200)
    expect(await pairOf(id)).toBeUndefined()
  })
})

it('no journal entry, which the log is made of, no metric and no audit has a word of an output', async () => {
  const metrics = await fetch(`${platform.address}/metrics`, { headers: authorization(METRICS_KEY) })
  const audited = readdirSync(folder.path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => readFileSync(`${parentPath}/${name}`, 'latin1'))
  const written = [JSON.stringify(platform.entries), platform.printed, await metrics.text(), ...audited]
  expect(written[0]).toContain('shadow-ended')
  expect(written[2]).toContain('spillway_shadow_answers_total')
  expect(audited.join('')).toContain('outputs of shadows')
  expect(written.join('\n')).not.toMatch(/about the weir|Write to nobody|aubergine|leak-example/)
})
