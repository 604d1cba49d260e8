import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { LiveClock } from '../../src/base/live-clock.ts'
import type { Database } from '../../src/store/database.ts'
import { PgliteDatabase } from '../../src/store/live-pglite.ts'
import { migrate } from '../../src/store/migrate.ts'
import { PgDatabase } from '../../src/store/pg-database.ts'
import { SqlRegistryStore } from '../../src/store/sql-registry-store.ts'
import { TestFolder } from '../support/child.ts'
import { missing, pathOf } from '../support/installed.ts'
import { run } from '../support/run-cli.ts'
import { startPostgres } from '../support/servers.ts'
import { upstreamTree } from '../support/start-platform.ts'

/** A backup that was never restored is none: both kinds of store, there and back. */
const clock = new LiveClock()
const closers: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const register = (database: Database, expectedRevision: number, name: string) =>
  new SqlRegistryStore(database).write({
    expectedRevision,
    atMs: 1,
    by: 'ada',
    because: 'x',
    edits: [{ kind: 'model', name, body: { name } }],
  })
const registered = async (database: Database): Promise<string[]> =>
  (await new SqlRegistryStore(database).load()).entries.map(({ name }) => name)

describe('the embedded store', () => {
  it('is backed up and restored with what lies beside it', { timeout: 120_000 }, async () => {
    const folder = new TestFolder()
    closers.push(() => folder.remove())
    const path = join(folder.path, 'store')
    const config = folder.write('spillway.yaml', upstreamTree(['http://gpu/v1'], { store: { path } }))
    const database = new PgliteDatabase({ clock, path })
    await migrate(database)
    await register(database, 0, 'kept')
    mkdirSync(`${path}.files/acme`, { recursive: true })
    writeFileSync(`${path}.files/acme/file-1`, 'a line\n')
    const backup = join(folder.path, 'backup')

    await database.close()
    // As a server that runs would leave it: the lock names a process that is there.
    const startedAt = readFileSync(`/proc/${process.ppid}/stat`, 'utf8').split(') ')[1]?.split(' ')[19]
    writeFileSync(`${path}.lock`, `${process.ppid} ${startedAt}`)
    const busy = await run('backup', '--config', config, '--to', backup)
    expect([busy.code, busy.said]).toEqual([2, expect.stringContaining('is in use by process')])
    expect(existsSync(backup)).toBe(false)
    rmSync(`${path}.lock`)
    expect(await run('backup', '--config', config, '--to', backup)).toMatchObject({ code: 0 })
    expect((await run('backup', '--config', config, '--to', backup)).said).toContain('is not empty')

    // What comes later is not in it; what is in the way is not touched.
    const later = new PgliteDatabase({ clock, path })
    await register(later, 1, 'later')
    await later.close()
    expect((await run('restore', '--config', config, '--from', backup)).said).toContain('is in the way')
    rmSync(path, { recursive: true })
    rmSync(`${path}.files`, { recursive: true })
    const restored = await run('restore', '--config', config, '--from', backup)
    expect([restored.code, restored.said]).toEqual([
      0,
      expect.stringMatching(/^Restored \d+ files, .* made by spillway/),
    ])
    const again = new PgliteDatabase({ clock, path })
    closers.push(() => again.close())
    await migrate(again)
    expect(await registered(again)).toEqual(['kept'])
    expect(readFileSync(`${path}.files/acme/file-1`, 'utf8')).toBe('a line\n')
  })
})

describe.skipIf(missing('postgresql') !== undefined)('a PostgreSQL server', () => {
  it('is backed up by pg_dump and restored by pg_restore, as the page says', { timeout: 120_000 }, async () => {
    const folder = new TestFolder()
    closers.push(() => folder.remove())
    const server = await startPostgres()
    closers.push(() => server.close())
    const tool = (name: string, ...args: string[]): void => {
      const { status, stderr } = spawnSync(join(pathOf('postgresql'), name), args, { encoding: 'utf8' })
      expect([name, status, stderr]).toEqual([name, 0, ''])
    }
    const first = new PgDatabase({ clock, url: server.url })
    await migrate(first)
    await register(first, 0, 'kept')
    const file = join(folder.path, 'spillway.dump')
    // A gateway goes on writing meanwhile: the dump is of one instant.
    tool('pg_dump', '--format=custom', `--file=${file}`, server.url)
    await register(first, 1, 'later')
    await first.query('create database restored', [])
    await first.close()

    const url = server.url.replace(/\/postgres$/, '/restored')
    tool('pg_restore', '--clean', '--if-exists', `--dbname=${url}`, file)
    const second = new PgDatabase({ clock, url })
    closers.push(() => second.close())
    expect(await migrate(second)).toBeGreaterThan(0)
    expect(await registered(second)).toEqual(['kept'])
    // It is a database to go on with: sequences and triggers are there.
    expect(await register(second, 1, 'next')).toBe(2)
  })
})
