import { expect } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { pause } from './eventually.ts'
import {
  authorization,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  type Tree,
  testTree,
} from './start-platform.ts'

/** Calls of an administrator who makes orgs, tenants and keys, and of those who use these keys. */
export const ADMIN_KEY = 'sk-test-admin'

export function startForTenancy(store: Tree): Promise<TestPlatform> {
  const admin = { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] }
  return startPlatform(testTree({ admin, store }))
}

interface Body {
  readonly secret?: string
  readonly secrets?: ReadonlyArray<{ readonly hash: string; readonly lastUsedAtMs?: number }>
  readonly data?: ReadonlyArray<Readonly<Record<string, string>>>
  readonly error?: {
    readonly code: string
    readonly spillway?: { readonly rule?: string; readonly authority?: string; readonly terms?: string }
  }
}

export interface Answer {
  readonly status: number
  readonly body: Body
}

export async function admin({ address }: TestPlatform, method: string, path: string, body?: object): Promise<Answer> {
  const response = await fetch(`${address}/admin/v1/${path}`, {
    method,
    headers: { ...authorization(ADMIN_KEY), 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify({ because: 'a test', ...body }) }),
  })
  return { status: response.status, body: (await response.json()) as Body }
}

export async function chat({ address }: TestPlatform, key: string, more: object = {}): Promise<Answer> {
  const body = { model: MODEL, messages: [{ role: 'user', content: 'hi' }], max_tokens: 4, ...more }
  const response = await postJson(`${address}/v1/chat/completions`, body, authorization(key))
  return { status: response.status, body: (await response.json()) as Body }
}

/** Asks with a pause: many wrong keys in a row would close the address. */
export async function answersSoon(platform: TestPlatform, key: string, status: number): Promise<boolean> {
  await pause(100)
  return (await chat(platform, key)).status === status
}

export async function makeKey(platform: TestPlatform, terms: object = {}): Promise<string> {
  expect((await admin(platform, 'POST', 'orgs', { id: 'initech', slos: ['steady'] })).status).toBe(200)
  expect((await admin(platform, 'POST', 'tenants', { id: 'store', orgId: 'initech' })).status).toBe(200)
  const made = await admin(platform, 'POST', 'keys', { id: 'web', tenantId: 'store', terms })
  expect(made.status, JSON.stringify(made.body)).toBe(200)
  return made.body.secret ?? ''
}
