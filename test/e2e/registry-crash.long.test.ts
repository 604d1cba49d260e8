import { afterAll, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { Child, TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { authorization, testTree } from '../support/start-platform.ts'

/** kill -9 in the middle of writes: after a restart every change is whole or not there, and the next one works. */
const ADMIN_KEY = 'sk-test-admin'
const folder = new TestFolder()
const children: Child[] = []

afterAll(async () => {
  for (const child of children) await child.end()
  folder.remove()
})

interface Listed {
  readonly data: ReadonlyArray<{ readonly name: string; readonly releases: unknown[]; readonly pools: unknown[] }>
}

async function start(): Promise<{ child: Child; address: string }> {
  const admin = { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] }
  const store = { path: `${folder.path}/data` }
  const config = folder.write('spillway.yaml', testTree({ admin, store }))
  const child = new Child({ env: { SPILLWAY_CONFIG: config } })
  children.push(child)
  const address = await child.address(60_000)
  await eventually('it is ready', async () => (await fetch(`${address}/health/ready`)).ok, 60_000)
  return { child, address }
}

async function admin<T>(address: string, path: string, body?: object): Promise<T | undefined> {
  try {
    const response = await fetch(`${address}/admin/v1/${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { ...authorization(ADMIN_KEY), 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return response.ok ? ((await response.json()) as T) : undefined
  } catch {
    return undefined
  }
}

/** Three things in one change: half of it would show. */
const change = (name: string) => ({
  model: { name, stable: 'b' },
  releases: [{ version: 'a' }, { version: 'b' }],
  pools: [{ id: `${name}-pool`, release: 'b', backend: { kind: 'http-openai' }, replicas: ['http://127.0.0.1:9/v1'] }],
  because: 'a test',
})

it('loses no change that was answered, and keeps no half of one', { timeout: 240_000 }, async () => {
  const answered: string[] = []
  for (let round = 0; round < 3; round++) {
    const { child, address } = await start()
    const listed = await admin<Listed>(address, 'models')
    for (const name of answered) expect(listed?.data.map((model) => model.name)).toContain(name)
    for (const { name, releases, pools } of listed?.data ?? []) {
      if (name !== 'sim') expect([name, releases.length, pools.length]).toEqual([name, 2, 1])
    }
    const changes = await admin<{ data: Array<{ revision: number }> }>(address, 'changes?limit=1000')
    const perRevision = Map.groupBy(changes?.data ?? [], ({ revision }) => revision)
    for (const [revision, edits] of perRevision) expect([revision, edits.length]).toEqual([revision, 4])

    expect(await admin(address, 'models', change(`m${round}-first`))).toBeDefined()
    answered.push(`m${round}-first`)
    const writes = Array.from({ length: 20 }, (_, i) =>
      admin(address, 'models', change(`m${round}-${i}`)).then((answer) => {
        if (answer !== undefined) answered.push(`m${round}-${i}`)
      }),
    )
    // Some are answered, some are being written, some wait.
    await eventually(
      'some were answered',
      () => answered.some((name) => name.startsWith(`m${round}-`) && !name.endsWith('first')),
      30_000,
    )
    child.signal('SIGKILL')
    await child.exited()
    await Promise.all(writes)
  }
  expect(answered.length).toBeGreaterThan(5)
})
