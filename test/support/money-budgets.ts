import { expect } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { eventually } from './eventually.ts'
import { ACME_KEY, authorization, MODEL, postJson, type Tree, testTree } from './start-platform.ts'

/** A tenant with budgets, and what its requests cost. */

/** A dollar for each request. */
const prices = [{ version: 'v1', models: [{ model: MODEL, requestUsd: 1 }] }]
export const treeOf = (budgets: readonly Tree[], more: Tree = {}): Tree =>
  testTree({
    prices,
    tenants: [
      { id: 'acme', slo: 'patient', allowance: { budgets }, keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }] },
    ],
    ...more,
  })

export const ask = (baseURL: string, more: Tree = {}): Promise<Response> =>
  postJson(`${baseURL}/chat/completions`, {
    model: MODEL,
    max_tokens: 4,
    messages: [{ role: 'user', content: 'Hi.' }],
    ...more,
  })

/** The same once the ledger is known: a busy machine may take longer for its database than a request waits for it. */
export const askKnown = (baseURL: string, more: Tree = {}): Promise<Response> =>
  eventually(
    'the ledger is known',
    async () => {
      const response = await ask(baseURL, more)
      return response.status !== 503 && response
    },
    60_000,
  )

/** Spends a hard budget of two dollars, and reads why the third request is refused. Answers the refusal's Retry-After. */
export async function spendTwoDollars(baseURL: string): Promise<number> {
  const statuses = [(await askKnown(baseURL)).status, (await askKnown(baseURL)).status]
  expect(statuses).toEqual([200, 200])
  const refused = await askKnown(baseURL)
  expect(refused.status).toBe(429)
  const { error } = (await refused.json()) as { error: Record<string, unknown> }
  expect(error).toMatchObject({ code: 'budget_exhausted' })
  expect(error['message']).toContain('Tenant acme has too little left of its budget of 2.00 dollars for the month')
  const me = await fetch(`${baseURL}/spillway/me`, { headers: authorization() })
  const { budgets } = (await me.json()) as { budgets: readonly Record<string, unknown>[] }
  expect(budgets.find(({ scope }) => scope === 'tenant')).toMatchObject({
    budgets: [{ period: 'month', kind: 'hard', usd: { limit: 2, used: 2, held: 0, remaining: 0 } }],
  })
  return Number(refused.headers.get('retry-after'))
}
