import { afterAll, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { Child, TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { authorization, testTree } from '../support/start-platform.ts'

/** kill -9 while tenants are removed with their keys, or keys rotated: after a restart each change is whole or never was. */
const ADMIN_KEY = 'sk-test-admin'
const TENANTS = 12
const folder = new TestFolder()
const children: Child[] = []

afterAll(async () => {
  for (const child of children) await child.end()
  folder.remove()
})

async function start(name = 'data'): Promise<{ child: Child; address: string }> {
  const admin = { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] }
  const store = { path: `${folder.path}/${name}` }
  // Every secret of a tenant that is gone is tried, and none may be answered by the limit on wrong keys instead.
  const server = { ingress: { failedKeysPerMinute: 100 * TENANTS } }
  const child = new Child({
    env: { SPILLWAY_CONFIG: folder.write('spillway.yaml', testTree({ admin, store, server })) },
  })
  children.push(child)
  const address = await child.address(60_000)
  await eventually('it is ready', async () => (await fetch(`${address}/health/ready`)).ok, 60_000)
  return { child, address }
}

async function admin<T>(address: string, how: string, body?: object): Promise<T | undefined> {
  const [method = 'GET', path = ''] = how.split(' ')
  try {
    const response = await fetch(`${address}/admin/v1/${path}`, {
      method,
      headers: { ...authorization(ADMIN_KEY), 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify({ because: 'a test', ...body }) }),
    })
    return response.ok ? ((await response.json()) as T) : undefined
  } catch {
    return undefined
  }
}

interface Listed<T> {
  readonly data: readonly T[]
}

it('leaves a key with its old secret, or with both, when it dies in a rotation', { timeout: 240_000 }, async () => {
  const first = await start('rotation')
  expect(await admin(first.address, 'POST orgs', { id: 'initech', slos: ['steady'] })).toBeDefined()
  expect(await admin(first.address, 'POST tenants', { id: 'store', orgId: 'initech' })).toBeDefined()
  const ids = Array.from({ length: 2 * TENANTS }, (_, i) => `k${i}`)
  const old = new Map<string, string>()
  for (const id of ids) {
    const made = await admin<{ secret: string }>(first.address, 'POST keys', { id, tenantId: 'store' })
    old.set(id, made?.secret ?? '')
  }
  const rotated = new Map<string, string>()
  const rotations = ids.map(async (id) => {
    const answer = await admin<{ secret: string }>(first.address, `POST keys/${id}/rotate`, { graceMs: 600_000 })
    if (answer !== undefined) rotated.set(id, answer.secret)
    // Some are answered, one is being written, some wait.
    if (rotated.size === 3) first.child.signal('SIGKILL')
  })
  await first.child.exited(60_000)
  await Promise.all(rotations)
  expect(rotated.size).toBeGreaterThanOrEqual(3)

  const { address } = await start('rotation')
  const statusOf = async (secret: string) =>
    (await fetch(`${address}/v1/models`, { headers: authorization(secret) })).status
  for (const id of ids) {
    const key = await admin<{ secrets: unknown[] }>(address, `GET keys/${id}`)
    // Whoever was told the new secret can use it; whoever was not still has the old one.
    expect([1, 2]).toContain(key?.secrets.length)
    expect([id, await statusOf(old.get(id) ?? '')]).toEqual([id, 200])
    const secret = rotated.get(id)
    if (secret !== undefined) expect([id, key?.secrets.length, await statusOf(secret)]).toEqual([id, 2, 200])
  }
  const history = await admin<Listed<{ edit: string }>>(address, 'GET tenancy-changes?limit=1000')
  const kept = history?.data.filter(({ edit }) => edit === 'rotate-key').length ?? 0
  expect(kept).toBeGreaterThanOrEqual(rotated.size)
})

it('loses no answered change of tenants and keys, and keeps no half of one', { timeout: 240_000 }, async () => {
  const first = await start()
  expect(await admin(first.address, 'POST orgs', { id: 'initech', slos: ['steady'] })).toBeDefined()
  const secrets = new Map<string, string>()
  for (let i = 0; i < TENANTS; i++) {
    expect(await admin(first.address, 'POST tenants', { id: `t${i}`, orgId: 'initech' })).toBeDefined()
    for (const name of ['a', 'b']) {
      const made = await admin<{ secret: string }>(first.address, 'POST keys', {
        id: `t${i}-${name}`,
        tenantId: `t${i}`,
      })
      secrets.set(`t${i}-${name}`, made?.secret ?? '')
    }
  }
  const removed: string[] = []
  const removals = Array.from({ length: TENANTS }, (_, i) =>
    admin(first.address, `DELETE tenants/t${i}`, {}).then((answer) => {
      if (answer !== undefined) removed.push(`t${i}`)
    }),
  )
  // Some are answered, one is being written, some wait.
  await eventually('some were answered', () => removed.length >= 2, 30_000)
  first.child.signal('SIGKILL')
  await first.child.exited(60_000)
  await Promise.all(removals)

  const { address } = await start()
  const tenants = await admin<Listed<{ id: string }>>(address, 'GET tenants?org=initech')
  const keys = await admin<Listed<{ id: string; tenantId: string; source: string }>>(address, 'GET keys')
  const left = tenants?.data.map(({ id }) => id) ?? []
  for (const id of removed) expect(left).not.toContain(id)
  const expected = left.flatMap((id) => [`${id}-a`, `${id}-b`])
  const stored = keys?.data.filter(({ source }) => source === 'registry').map(({ id }) => id)
  expect(stored?.toSorted()).toEqual(expected.toSorted())
  for (const [id, secret] of secrets) {
    const { status } = await fetch(`${address}/v1/models`, { headers: authorization(secret) })
    expect([id, status]).toEqual([id, expected.includes(id) ? 200 : 401])
  }
  const history = await admin<Listed<{ revision: number; edit: string }>>(address, 'GET tenancy-changes?limit=1000')
  const taken = history?.data.filter(({ edit }) => edit === 'remove-tenant') ?? []
  expect(taken).toHaveLength((TENANTS - left.length) * 3)
})
