import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli } from '../../src/cli/run-cli.ts'
import { hashKey } from '../../src/config/key-hash.ts'
import { TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/** What a tenant used, from three requests to the file for others' tools; another tenant sees nothing of it. */
const ADMIN_KEY = 'sk-test-admin'
const folder = new TestFolder()
let platform: TestPlatform
let priceNano = 0
let inputTokens = 0
let outputTokens = 0

beforeAll(async () => {
  const prices = [{ version: 'v1', models: [{ model: MODEL, inputUsd: 0.5, outputUsd: 2 }] }]
  platform = await startPlatform(
    testTree({
      store: { path: `${folder.path}/data` },
      ledger: { enabled: true },
      admin: { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] },
      prices,
      tenants: [
        {
          id: 'acme',
          slo: 'patient',
          org: 'corp',
          tellPrice: true,
          allowance: { budgets: [{ usd: 100 }, { usd: 0.000001, kind: 'soft' }] },
          keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }],
        },
        { id: 'globex', slo: 'patient', keys: [{ id: 'globex-1', hash: hashKey(GLOBEX_KEY) }] },
        { id: 'books', slo: 'patient', org: 'corp', keys: [] },
      ],
    }),
  )
  for (const text of ['One.', 'Two, and more.', 'Three!']) {
    const body = { model: MODEL, messages: [{ role: 'user', content: text }], max_tokens: 8 }
    const answer = await postJson(`${platform.baseURL}/chat/completions`, body)
    const { usage } = (await answer.json()) as { usage: { prompt_tokens: number; completion_tokens: number } }
    inputTokens += usage.prompt_tokens
    outputTokens += usage.completion_tokens
  }
  priceNano = inputTokens * 500 + outputTokens * 2_000
  await eventually('the ledger has them', async () => (await usage(ACME_KEY)).data[0]?.requests === 3, 60_000)
}, 120_000)
afterAll(async () => {
  await platform?.close()
  folder.remove()
})

interface Page {
  readonly data: ReadonlyArray<Record<string, string | number>>
  readonly error?: { readonly code: string }
}

async function get<T>(path: string, key: string): Promise<T> {
  return (await (await fetch(platform.address + path, { headers: authorization(key) })).json()) as T
}
const usage = (key: string, query = ''): Promise<Page> => get(`/v1/spillway/usage${query}`, key)

async function spillway(...words: string[]): Promise<{ code: number; out: string }> {
  const out: string[] = []
  const code = await runCli([...words], { out: (text) => out.push(text), err: (text) => out.push(text) })
  return { code, out: out.join('\n') }
}
const at = (key: string): string[] => ['--url', platform.address, '--key', key]
const usd = (nano: number): string => (nano / 1e9).toFixed(9).replace(/\.?0+$/, '')

describe('what a tenant used', () => {
  it('adds up to the price of its requests, by any dimension', async () => {
    // An hour or a day may have ended between the requests.
    for (const by of ['', 'tenant', 'org,tenant,key,model,day', 'hour']) {
      const { data } = await usage(ACME_KEY, `?by=${by}`)
      const sum = (name: string): number => data.reduce((total, row) => total + Number(row[name]), 0)
      expect([sum('requests'), sum('input_tokens'), sum('output_tokens')]).toEqual([3, inputTokens, outputTokens])
      expect(Math.round(sum('price_usd') * 1e9)).toBe(priceNano)
    }
    expect((await usage(ACME_KEY, '?by=tenant,key,model')).data).toMatchObject([
      { tenant: 'acme', key: 'acme-1', model: MODEL },
    ])
    expect(Number((await usage(ACME_KEY)).data[0]?.['cost_usd'])).toBeGreaterThan(0)
  })

  it('is nobody else’s to see, whatever is asked for', async () => {
    for (const query of ['', '?by=tenant', '?tenant=acme', '?org=corp', '?key=acme-1'])
      expect(await usage(GLOBEX_KEY, query)).toMatchObject({ data: [], has_more: false })
    const start = Math.floor(Date.now() / 1_000) - 86_400
    const { data } = await get<{ data: { results: object[] }[] }>(
      `/v1/organization/costs?start_time=${start}&project_ids=acme`,
      GLOBEX_KEY,
    )
    expect([data.length > 0, data.flatMap(({ results }) => results)]).toEqual([true, []])
    expect(await get('/admin/v1/usage', ACME_KEY)).toMatchObject({ error: { code: 'not_admin' } })
    expect(await usage('sk-nobody')).toMatchObject({ error: { code: 'invalid_api_key' } })
    expect(await get('/admin/v1/usage?by=tenant', ADMIN_KEY)).toMatchObject({ data: [{ tenant: 'acme', requests: 3 }] })
  })

  it('is seen in its org by keys whose role reads costs, and by no other key of the org', async () => {
    const keyOf = async (id: string, role: string): Promise<string> => {
      const body = { id, tenantId: 'books', role, terms: { canManage: true, canInfer: false }, because: 'test' }
      const made = await postJson(`${platform.address}/admin/v1/keys`, body, authorization(ADMIN_KEY))
      return ((await made.json()) as { secret: string }).secret
    }
    const reader = await keyOf('reader', 'billing-reader')
    const seen = { data: [{ tenant: 'acme', requests: 3 }] }
    expect(await usage(reader, '?by=tenant')).toMatchObject(seen)
    expect(await usage(reader, '?by=tenant&tenant=acme')).toMatchObject(seen)
    expect(await usage(await keyOf('boss', 'org-admin'), '?by=tenant')).toMatchObject(seen)
    expect(await usage(reader, '?org=globex')).toMatchObject({ data: [] })
    for (const role of ['member', 'auditor', 'metrics-reader'])
      expect(await usage(await keyOf(role, role), '?tenant=acme')).toMatchObject({ data: [] })
  })

  it('comes in OpenAI’s buckets too', async () => {
    const start = Math.floor(Date.now() / 1_000) - 2 * 86_400
    const page = await get<{ data: ReadonlyArray<{ results: Record<string, unknown>[] }>; has_more: boolean }>(
      `/v1/organization/usage/completions?start_time=${start}&group_by[]=model&group_by[]=project_id`,
      ACME_KEY,
    )
    expect(page).toMatchObject({ object: 'page', has_more: false, next_page: null })
    expect(page.data.flatMap(({ results }) => results)).toMatchObject([
      {
        num_model_requests: 3,
        input_tokens: inputTokens,
        output_tokens: outputTokens,
        model: MODEL,
        project_id: 'acme',
      },
    ])
    const costs = await get<typeof page>(`/v1/organization/costs?start_time=${start}`, ACME_KEY)
    expect(costs.data.flatMap(({ results }) => results)).toMatchObject([
      { amount: { value: priceNano / 1e9, currency: 'usd' }, project_id: null },
    ])
    expect(await get('/v1/organization/costs', ACME_KEY)).toMatchObject({
      error: { code: 'missing_required_parameter', param: 'start_time' },
    })
  })

  it('is printed by the command line, and its file passes its own check', async () => {
    const table = await spillway('usage', ...at(ACME_KEY))
    expect(table.out).toMatch(new RegExp(`acme +${MODEL} +3 +${inputTokens} .*${usd(priceNano)}`))
    expect(table.out).toMatch(new RegExp(`total +3 +${inputTokens} `))
    const statement = await spillway('usage', 'statement', '--json', ...at(ADMIN_KEY))
    expect(JSON.parse(statement.out)).toMatchObject({ lines: [{ org: 'corp' }], total: { price_usd: usd(priceNano) } })
    expect((await spillway('usage', '--csv', '--by', 'key', ...at(ACME_KEY))).out).toMatch(
      /^key,requests.*\r\nacme-1,3,/,
    )
    const file = `${folder.path}/focus.csv`
    expect(await spillway('usage', 'export', '--focus', file, ...at(ADMIN_KEY))).toMatchObject({ code: 0 })
    expect(await spillway('usage', 'check', file)).toMatchObject({ code: 0 })
    const forecast = await spillway('usage', 'forecast', '--json', ...at(ACME_KEY))
    expect(JSON.parse(forecast.out)).toMatchObject({
      price: { spent_usd: usd(priceNano) },
      budgets: [
        { scope: 'tenant', kind: 'hard', limit_usd: 100, used_up_at: null },
        { scope: 'tenant', kind: 'soft', used_up_at: expect.stringMatching(/^20/) },
      ],
    })
    expect((await spillway('usage', 'forecast', ...at(ACME_KEY))).out).toContain(
      'hard budget of the tenant: $100 a month',
    )
    expect(await spillway('usage', '--by', 'colour', ...at(ACME_KEY))).toMatchObject({ code: 2 })
    expect((await spillway('usage', ...at(GLOBEX_KEY))).out).toMatch(/^Nothing was used/)
  })

  it('is told in the answer where the tenant wants it, in every dialect', async () => {
    const ask = { model: MODEL, messages: [{ role: 'user', content: 'Four.' }], max_tokens: 4 }
    const priced = (input: number, output: number) => ({ price_usd: usd(input * 500 + output * 2_000) })
    const of = async (path: string, body: object, key = ACME_KEY): Promise<Record<string, number>> => {
      const answer = await postJson(`${platform.baseURL}/${path}`, body, authorization(key))
      return ((await answer.json()) as { usage: Record<string, number> }).usage
    }
    const chat = await of('chat/completions', ask)
    expect(chat['spillway']).toEqual(priced(chat['prompt_tokens']!, chat['completion_tokens']!))
    const response = await of('responses', { model: MODEL, input: 'Four.', max_output_tokens: 16 })
    expect(response['spillway']).toEqual(priced(response['input_tokens']!, response['output_tokens']!))
    const message = await of('messages', ask)
    expect(message['spillway']).toEqual(priced(message['input_tokens']!, message['output_tokens']!))
    expect(await of('chat/completions', ask, GLOBEX_KEY)).not.toHaveProperty('spillway')
    const streamed = async (more: object): Promise<string> =>
      (await postJson(`${platform.baseURL}/chat/completions`, { ...ask, stream: true, ...more })).text()
    expect(await streamed({ stream_options: { include_usage: true } })).toMatch(
      /"usage":\{[^\n]*"spillway":\{"price_usd":"0\.0\d+"\}\}\}\n\ndata: \[DONE\]/,
    )
    expect(await streamed({})).not.toContain('price_usd')
  })

  it('is in the story of each request', async () => {
    const answer = await postJson(`${platform.baseURL}/chat/completions`, {
      model: MODEL,
      messages: [{ role: 'user', content: 'Four.' }],
      max_tokens: 1,
    })
    const id = answer.headers.get('x-request-id') ?? ''
    await answer.text()
    const told = await eventually(
      'its line is written',
      async () => {
        const story = await get<{ ledger?: object }>(`/spillway/requests/${id}`, ACME_KEY)
        return story.ledger
      },
      60_000,
    )
    expect(told).toMatchObject({ price_list: 'v1', price_usd: expect.stringMatching(/^0\.0/) })
    expect((await spillway('explain', id, ...at(ACME_KEY))).out).toMatch(/list price: \$0\.0\d+ \(price list v1\)/)
  })
})

it('without a ledger says so', { timeout: 60_000 }, async () => {
  const bare = await startPlatform()
  const answer = await fetch(`${bare.address}/v1/spillway/usage`, { headers: authorization() })
  expect([answer.status, await answer.json()]).toMatchObject([404, { error: { code: 'ledger_off' } }])
  await bare.close()
})
