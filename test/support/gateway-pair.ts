import { hashKey } from '../../src/config/key-hash.ts'
import { authorization, type Tree, testTree } from './start-platform.ts'

/** Gateways on one database: their settings, and what an administrator asks of them. */
export const PAIR_ADMIN_KEY = 'sk-test-admin'

export const pairTree = (url: string, overrides: Tree = {}): Tree =>
  testTree({ admin: { keys: [{ id: 'ada', hash: hashKey(PAIR_ADMIN_KEY) }] }, store: { url }, ...overrides })

export async function askAdmin<T>(address: string, call: string, body?: object): Promise<T> {
  const [method = 'GET', path = ''] = call.split(' ')
  const response = await fetch(`${address}/admin/v1/${path}`, {
    method,
    headers: { ...authorization(PAIR_ADMIN_KEY), 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify({ because: 'a test', ...body }) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${call}: ${response.status} ${text}`)
  return JSON.parse(text) as T
}

/** Who leads, as the gateway says: `this gateway leads`, `another gateway leads`, `no leader is known …`. */
export async function saysOfLeader(address: string): Promise<string> {
  const { because } = (await (await fetch(`${address}/health/ready`)).json()) as { because: string }
  return because.split('; ').at(-1) ?? ''
}
