import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { habitOf } from '../../src/policy/planning/output-length.ts'
import { eventually } from '../support/eventually.ts'
import { answers, FakeUpstream } from '../support/fake-upstream.ts'
import { makeRequest } from '../support/requests.ts'
import {
  ACME_KEY,
  authorization,
  MODEL,
  postJson,
  startPlatform,
  type Tree,
  testTree,
  upstreamTree,
} from '../support/start-platform.ts'

const folder = mkdtempSync(join(tmpdir(), 'spillway-budgets-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A dollar for each request. */
const prices = [{ version: 'v1', models: [{ model: MODEL, requestUsd: 1 }] }]
const treeOf = (budgets: readonly Tree[], more: Tree = {}): Tree =>
  testTree({
    prices,
    tenants: [
      { id: 'acme', slo: 'patient', allowance: { budgets }, keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }] },
    ],
    ...more,
  })

const ask = (baseURL: string, more: Tree = {}): Promise<Response> =>
  postJson(`${baseURL}/chat/completions`, {
    model: MODEL,
    max_tokens: 4,
    messages: [{ role: 'user', content: 'Hi.' }],
    ...more,
  })

/** The same once the ledger is known: a busy machine may take longer for its database than a request waits for it. */
const askKnown = (baseURL: string, more: Tree = {}): Promise<Response> =>
  eventually(
    'the ledger is known',
    async () => {
      const response = await ask(baseURL, more)
      return response.status !== 503 && response
    },
    60_000,
  )

describe('a budget of the configuration file', () => {
  it('refuses with 429 what does not fit, shows what is left, and remembers over a restart', {
    timeout: 240_000,
  }, async () => {
    const tree = treeOf([{ usd: 2 }], { store: { path: join(folder, 'db') }, ledger: { enabled: true } })
    const first = await startPlatform(tree)
    try {
      const statuses = [(await askKnown(first.baseURL)).status, (await askKnown(first.baseURL)).status]
      expect(statuses).toEqual([200, 200])
      const refused = await askKnown(first.baseURL)
      expect(refused.status).toBe(429)
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
      const { error } = (await refused.json()) as { error: Record<string, unknown> }
      expect(error).toMatchObject({ code: 'budget_exhausted' })
      expect(error['message']).toContain('Tenant acme has too little left of its budget of 2.00 dollars for the month')
      const me = await fetch(`${first.baseURL}/spillway/me`, { headers: authorization() })
      const { budgets } = (await me.json()) as { budgets: readonly Record<string, unknown>[] }
      expect(budgets.find(({ scope }) => scope === 'tenant')).toMatchObject({
        budgets: [{ period: 'month', kind: 'hard', usd: { limit: 2, used: 2, held: 0, remaining: 0 } }],
      })
    } finally {
      await first.close()
    }
    const second = await startPlatform(tree)
    try {
      expect((await askKnown(second.baseURL)).status).toBe(429)
    } finally {
      await second.close()
    }
    const third = await startPlatform({
      ...tree,
      ...treeOf([{ usd: 3 }], { store: tree['store'], ledger: tree['ledger'] }),
    })
    try {
      expect((await askKnown(third.baseURL)).status).toBe(200)
      expect((await askKnown(third.baseURL)).status).toBe(429)
    } finally {
      await third.close()
    }
  })

  it('asks the ledger for an end user when it is first seen, and the first request waits for that', {
    timeout: 240_000,
  }, async () => {
    const ledger = { store: { path: join(folder, 'users') }, ledger: { enabled: true } }
    const tree = treeOf([{ hours: 24, usd: 1, perUser: true }], ledger)
    const first = await startPlatform(tree)
    try {
      expect((await askKnown(first.baseURL, { user: 'ann' })).status).toBe(200)
      expect((await askKnown(first.baseURL, { user: 'ann' })).status).toBe(429)
    } finally {
      await first.close()
    }
    const second = await startPlatform(tree)
    try {
      expect((await askKnown(second.baseURL, { user: 'ann' })).status).toBe(429)
      expect((await askKnown(second.baseURL, { user: 'bob' })).status).toBe(200)
    } finally {
      await second.close()
    }
  })

  it('bounds each end user by itself, in every dialect', async () => {
    const platform = await startPlatform(treeOf([{ hours: 24, usd: 1, perUser: true }]))
    try {
      const { baseURL } = platform
      const statuses = [
        (await ask(baseURL, { user: 'ann' })).status,
        (await ask(baseURL, { user: 'ann' })).status,
        (await ask(baseURL, { user: 'ann', safety_identifier: 'bob' })).status,
        (await postJson(`${baseURL}/responses`, { model: MODEL, input: 'Hi.', user: 'ann' })).status,
        (await postJson(`${baseURL}/responses`, { model: MODEL, input: 'Hi.', safety_identifier: 'bob' })).status,
        (
          await postJson(`${baseURL}/messages`, {
            model: MODEL,
            max_tokens: 4,
            messages: [{ role: 'user', content: 'Hi.' }],
            metadata: { user_id: 'ann' },
          })
        ).status,
        (await ask(baseURL)).status,
      ]
      expect(statuses).toEqual([200, 429, 200, 429, 429, 429, 200])
    } finally {
      await platform.close()
    }
  })

  it('posts its marks to a receiver, and is served while the receiver is dead', async () => {
    const got: Array<Record<string, unknown>> = []
    let failures = 1
    const receiver = createServer((request, response) => {
      let text = ''
      request.on('data', (part: Buffer) => {
        text += part.toString()
      })
      request.on('end', () => {
        expect(request.headers['content-type']).toBe('application/json')
        if (failures-- > 0) response.writeHead(500).end()
        else {
          got.push(JSON.parse(text) as Record<string, unknown>)
          response.writeHead(204).end()
        }
      })
    })
    await new Promise<void>((resolve) => {
      receiver.listen(0, '127.0.0.1', resolve)
    })
    const webhookUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook?a=1`
    const platform = await startPlatform(
      treeOf([{ usd: 2, kind: 'soft', marks: [0.5, 1] }], { alerts: { webhookUrl } }),
    )
    try {
      const statuses = [await ask(platform.baseURL), await ask(platform.baseURL), await ask(platform.baseURL)]
      expect(statuses.map(({ status }) => status)).toEqual([200, 200, 200])
      await eventually('both marks are told', () => got.length === 2 || undefined)
      expect(got).toMatchObject([
        { object: 'spillway.budget_mark', scope: 'tenant', name: 'acme', mark: 0.5, usd: { used: 1, limit: 2 } },
        { mark: 1, usd: { used: 2, limit: 2 } },
      ])
    } finally {
      await platform.close()
      receiver.close()
    }
  })

  it.each([
    ['chat/completions', { messages: [{ role: 'user', content: 'Hi.' }] }, /"finish_reason":"length"[\s\S]*\[DONE\]/],
    ['completions', { prompt: 'Hi.' }, /"finish_reason":"length"[\s\S]*\[DONE\]/],
    ['responses', { input: 'Hi.' }, /event: response\.incomplete[\s\S]*"reason":"max_output_tokens"/],
    [
      'messages',
      { max_tokens: 400, messages: [{ role: 'user', content: 'Hi.' }] },
      /"stop_reason":"max_tokens"[\s\S]*event: message_stop/,
    ],
  ])('ends a stream of /v1/%s with the finish reason of its dialect when it is empty', async (path, body, end) => {
    const words = Array.from({ length: 400 }, (_, i) => `word${i} `)
    const upstream = await FakeUpstream.start(answers({ words }))
    const prices = [{ version: 'v1', models: [{ model: MODEL, outputUsd: 1_000_000 }] }]
    const { tenants } = treeOf([{ usd: 260 }])
    const platform = await startPlatform(upstreamTree([upstream.url], { prices, tenants }))
    try {
      await platform.engine()
      const habit = { tokens: 5, isCut: false }
      const { outputs } = platform.platform.policies
      for (const kind of ['chat', 'completion'] as const) {
        const asked = makeRequest({ kind, outputTokensMax: path === 'messages' ? 400 : undefined })
        for (let i = 0; i < 50; i++) outputs.observe(habitOf(asked), habit)
      }
      const response = await postJson(`${platform.baseURL}/${path}`, { model: MODEL, stream: true, ...body })
      expect(response.status).toBe(200)
      const text = await response.text()
      expect(text).toMatch(end)
      expect(text).toContain('word1')
      expect(text).not.toContain('word399')
      const settled = platform.entries.filter((entry) => entry.kind === 'settled')
      expect(settled).toMatchObject([{ outcome: 'completed', because: 'budget-empty' }])
      // A token is a dollar: one delta beyond the budget is the most.
      const { outputTokens } = settled[0]!.usage
      expect(outputTokens).toBeGreaterThan(260)
      expect(outputTokens).toBeLessThanOrEqual(264)
    } finally {
      await platform.close()
      await upstream.close()
    }
  })
})
