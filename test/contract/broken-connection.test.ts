import { connect, createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LiveClock } from '../../src/base/live-clock.ts'
import { DatabaseUnavailable } from '../../src/store/database.ts'
import { PgDatabase } from '../../src/store/pg-database.ts'
import { eventually } from '../support/eventually.ts'
import { missing } from '../support/installed.ts'
import { startPostgres, type TestServer } from '../support/servers.ts'

/**
 * A PostgreSQL that is killed resets its connections, also those with a statement under way. The statement fails, and
 * nothing else: an error that nobody hears would end the process, and every stream with it.
 */
const why = missing('postgresql')

describe.skipIf(why !== undefined)(`a connection that breaks under a statement${why ? ` (${why})` : ''}`, () => {
  let postgres: TestServer
  let database: PgDatabase
  const sockets = new Set<Socket>()
  const relay = createServer((outer) => {
    const { hostname, port } = new URL(postgres.url)
    const inner = connect(Number(port), hostname)
    sockets.add(outer)
    outer.pipe(inner).pipe(outer)
    outer.on('error', () => {}).on('close', () => inner.destroy())
    inner.on('error', () => {}).on('close', () => outer.destroy())
  })

  beforeAll(async () => {
    postgres = await startPostgres()
    await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve))
    const url = new URL(postgres.url)
    url.hostname = '127.0.0.1'
    url.port = String((relay.address() as { port: number }).port)
    database = new PgDatabase({ clock: new LiveClock(), url: url.href })
  }, 120_000)
  afterAll(async () => {
    await database?.close()
    relay.close()
    await postgres?.close()
  })

  it.each(['reset', 'ended'] as const)('fails its statement when it is %s, and the next one works', async (how) => {
    const asked = database.query('select pg_sleep(3600)', []).catch((error: unknown) => error)
    const running = () => database.query(`select 1 from pg_stat_activity where query like 'select pg_sleep%'`, [])
    await eventually('it runs', async () => (await running()).length > 0)
    for (const socket of sockets) {
      if (how === 'reset') socket.resetAndDestroy()
      else socket.destroy()
    }
    sockets.clear()
    expect(await asked).toBeInstanceOf(DatabaseUnavailable)
    const next = await eventually('it answers again', () =>
      database.query('select 7 as seven', []).catch(() => false as const),
    )
    expect(next).toEqual([{ seven: 7 }])
  })
})
