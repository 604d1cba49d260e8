import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { habitOf } from '../../src/policy/planning/output-length.ts'
import { eventually } from '../support/eventually.ts'
import { answers, FakeUpstream } from '../support/fake-upstream.ts'
import { ask, spendTwoDollars, treeOf } from '../support/money-budgets.ts'
import { makeRequest } from '../support/requests.ts'
import { MODEL, postJson, startPlatform, upstreamTree } from '../support/start-platform.ts'

/** Budgets while the gateway runs; that they outlive it is in `money-budgets.long.test.ts`. */

describe('a budget of the configuration file', () => {
  it('refuses with 429 what does not fit, and shows what is left', async () => {
    const platform = await startPlatform(treeOf([{ usd: 2 }]))
    try {
      expect(await spendTwoDollars(platform.baseURL)).toBeGreaterThan(0)
    } finally {
      await platform.close()
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
