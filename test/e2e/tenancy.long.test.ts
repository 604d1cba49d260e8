import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { missing } from '../support/installed.ts'
import { startPostgres } from '../support/servers.ts'
import type { TestPlatform, Tree } from '../support/start-platform.ts'
import { admin, answersSoon, chat, makeKey, startForTenancy } from '../support/tenancy-calls.ts'

/** Orgs, tenants and keys outlive the gateway that made them, and reach the others on the same database. */
const closers: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'spillway-tenancy-'))
  closers.push(() => rmSync(path, { recursive: true, force: true }))
  return join(path, 'data')
}

async function start(store: Tree): Promise<TestPlatform> {
  const platform = await startForTenancy(store)
  closers.push(() => platform.close())
  return platform
}

async function stop(platform: TestPlatform): Promise<void> {
  closers.pop()
  await platform.close()
}

describe('keys that are made at run time', () => {
  it('are there again after a restart, and revoked ones are not', { timeout: 60_000 }, async () => {
    const path = folder()
    const before = await start({ path })
    const first = await makeKey(before)
    const second = (await admin(before, 'POST', 'keys/web/rotate', { graceMs: 0 })).body.secret ?? ''
    const cron = (await admin(before, 'POST', 'keys', { id: 'cron', tenantId: 'store' })).body.secret ?? ''
    expect((await chat(before, cron)).status).toBe(200)
    const [used] = (await admin(before, 'GET', 'keys/cron')).body.secrets ?? []
    await stop(before)
    const after = await start({ path })
    await eventually(
      'the keys are read',
      async () => {
        const { status } = await chat(after, second)
        // Never 401: a client would take its key for wrong.
        expect([200, 503]).toContain(status)
        return status === 200
      },
      30_000,
    )
    expect((await chat(after, first)).status).toBe(401)
    expect(used?.lastUsedAtMs).toBeGreaterThan(0)
    expect((await admin(after, 'GET', 'keys/cron')).body.secrets).toEqual([used])
    expect((await admin(after, 'GET', 'tenants?org=initech')).body.data).toMatchObject([{ id: 'store' }])
    expect((await admin(after, 'DELETE', 'tenants/store', {})).status).toBe(200)
    expect((await chat(after, second)).status).toBe(401)
    expect((await admin(after, 'DELETE', 'orgs/initech', {})).status).toBe(200)
  })

  it('leave no secret in the embedded store', { timeout: 60_000 }, async () => {
    const path = folder()
    const platform = await start({ path })
    const secret = await makeKey(platform)
    await stop(platform)
    const found = execFileSync('sh', ['-c', 'grep -rlF "$1" "$2" || true', 'sh', secret, path], { encoding: 'utf8' })
    expect(found).toBe('')
    expect(readFileSync(join(path, 'PG_VERSION'), 'utf8')).not.toBe('')
  })

  const why = missing('postgresql')
  it.skipIf(why !== undefined)(
    'reach another gateway on the same PostgreSQL, and so does their end',
    { timeout: 60_000 },
    async () => {
      const postgres = await startPostgres()
      closers.push(() => postgres.close())
      const one = await start({ url: postgres.url })
      const two = await start({ url: postgres.url })
      const key = await makeKey(one)
      await eventually('the other one knows it', () => answersSoon(two, key, 200), 30_000)
      expect((await admin(one, 'DELETE', 'keys/web', {})).status).toBe(200)
      await eventually('the other one has forgotten it', () => answersSoon(two, key, 401), 30_000)
      expect((await admin(two, 'POST', 'keys', { id: 'web', tenantId: 'store' })).status).toBe(200)
    },
  )
})
