import { hashKey } from '../../src/config/key-hash.ts'
import { postJson, startPlatform, type TestPlatform, testTree } from './start-platform.ts'

/** Gateways whose store is away, lost or deleted, and calls that need the store. */

const ADMIN_KEY = 'sk-test-admin'

export function startWithStore(
  store: Record<string, unknown>,
  retrieval: Record<string, unknown> = {},
): Promise<TestPlatform> {
  const admin = { keys: [{ id: 'ops', hash: hashKey(ADMIN_KEY) }] }
  return startPlatform(testTree({ store, admin, retrieval }))
}

export const addCorpus = (platform: TestPlatform, name: string): Promise<Response> =>
  postJson(`${platform.baseURL}/vector_stores`, { name })

export const addModel = (platform: TestPlatform, name: string): Promise<Response> =>
  postJson(
    `${platform.address}/admin/v1/models`,
    { model: { name }, because: 'a test' },
    { authorization: `Bearer ${ADMIN_KEY}` },
  )

/** What no client is to read of where the store is. */
export const PLACES = /127\.0\.0\.1|localhost|\/tmp|spillway-lost|someone|ECONNREFUSED \d/
