import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { makeLiveStore } from '../../src/assembly/live-store.ts'
import { LiveClock } from '../../src/base/live-clock.ts'
import { buildConfig } from '../../src/config/load.ts'
import { PgDatabase } from '../../src/store/pg-database.ts'
import { Child, ROOT, TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { FakeUpstream } from '../support/fake-upstream.ts'
import { missing } from '../support/installed.ts'
import { startPostgres } from '../support/servers.ts'
import { ACME_KEY, authorization, MODEL, upstreamTree } from '../support/start-platform.ts'

/** Secrets are changed where they are mounted, while the program runs. */
const SOON_MS = 30_000
const closers: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** As Kubernetes mounts a secret: the file is a link into a folder that is a link, which is swapped as a whole. */
class Mount {
  readonly path: string
  #version = 0

  constructor(path: string, entries: Readonly<Record<string, string>>) {
    this.path = path
    mkdirSync(path)
    this.swap(entries)
    for (const name of Object.keys(entries)) symlinkSync(join('..data', name), join(path, name))
  }

  swap(entries: Readonly<Record<string, string>>): void {
    const folder = `..v${++this.#version}`
    mkdirSync(join(this.path, folder))
    for (const [name, text] of Object.entries(entries)) writeFileSync(join(this.path, folder, name), text)
    symlinkSync(folder, join(this.path, '..data_tmp'))
    renameSync(join(this.path, '..data_tmp'), join(this.path, '..data'))
  }
}

describe('a mounted secret', () => {
  it('is taken up when it is swapped: the next request has the new key, and none is lost', {
    timeout: 90_000,
  }, async () => {
    const folder = new TestFolder()
    closers.push(() => folder.remove())
    const upstream = await FakeUpstream.start()
    closers.push(() => upstream.close())
    const mount = new Mount(join(folder.path, 'secrets'), { key: 'sk-first-of-all\n' })
    const tree = upstreamTree([upstream.url], { server: { port: 0 }, store: { path: 'memory:' } })
    const [pool] = tree['pools'] as Array<{ backend: object }>
    pool!.backend = { ...pool!.backend, apiKeyEnv: 'ENGINE_KEY' }
    const config = folder.write('spillway.yaml', tree)
    const child = new Child({
      args: [join(ROOT, 'src', 'cli', 'cli.ts'), 'serve', '--config', config],
      env: { ENGINE_KEY_FILE: join(mount.path, 'key') },
    })
    closers.push(() => child.end())
    const address = await child.address()
    const ask = async (): Promise<number> => {
      const response = await fetch(`${address}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...authorization(ACME_KEY) },
        body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'Hello?' }] }),
      })
      await response.text()
      return response.status
    }
    const lastKey = (): string | undefined =>
      upstream.seen.findLast(({ path }) => path.endsWith('/chat/completions'))?.headers.authorization
    expect(await ask()).toBe(200)
    expect(lastKey()).toBe('Bearer sk-first-of-all')

    mount.swap({ key: 'sk-second-of-all\n' })
    await eventually('it was read', () => child.err.includes('(a secret changed)'), SOON_MS)
    expect(child.err).toContain('1 pool called with another key')
    expect(await ask()).toBe(200)
    expect(lastKey()).toBe('Bearer sk-second-of-all')

    // A secret that cannot be used changes nothing.
    mount.swap({ key: '\n' })
    await eventually('it was refused', () => child.err.includes('which is empty'), SOON_MS)
    expect(await ask()).toBe(200)
    expect(lastKey()).toBe('Bearer sk-second-of-all')
    mount.swap({ key: 'sk-third-of-all' })
    await eventually('it was read again', () => child.err.split('called with another key').length === 3, SOON_MS)
    expect(await ask()).toBe(200)
    expect(lastKey()).toBe('Bearer sk-third-of-all')
    expect(`${child.out}${child.err}`).not.toMatch(/sk-(first|second|third)/)
  })
})

describe.skipIf(missing('postgresql') !== undefined)('the password of the database', () => {
  it('is read for every new connection', { timeout: 60_000 }, async () => {
    const server = await startPostgres()
    closers.push(() => server.close())
    const folder = new TestFolder()
    closers.push(() => folder.remove())
    const clock = new LiveClock()
    const root = new PgDatabase({ clock, url: server.url })
    closers.push(() => root.close())
    const password = (text: string) => root.run(`alter role app password '${text}'`)
    await root.run("create role app login superuser password 'p@ss one'")
    const [hba] = await root.query('show hba_file', [])
    const path = String(hba?.['hba_file'])
    writeFileSync(path, `host all app 127.0.0.1/32 scram-sha-256\n${readFileSync(path, 'utf8')}`)
    await root.query('select pg_reload_conf()', [])

    const urlWith = (text: string): string => {
      const url = new URL(server.url)
      url.username = 'app'
      url.password = text
      return `${url.href}\n`
    }
    const file = folder.write('database-url', urlWith('p@ss one'))
    const tree = {
      models: [{ name: 'm' }],
      pools: [{ model: 'm', backend: { kind: 'simulated' } }],
      tenants: [{ id: 'a', keys: [] }],
    }
    const config = buildConfig({ path: 'x.yaml', tree, lineOf: () => undefined }, { DATABASE_URL_FILE: file })
    const store = await makeLiveStore(config, clock, () => {})
    closers.push(() => store.close())
    const whoami = async (): Promise<unknown> =>
      (await store.database.query('select current_user as who', []))[0]?.['who']
    expect(await whoami()).toBe('app')

    await password('p@ss two')
    folder.write('database-url', urlWith('p@ss two'))
    // Every open connection is ended, as by a failover: new ones need the new password.
    await root.query("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'", [])
    await eventually(
      'it is connected again',
      () =>
        whoami().then(
          () => true,
          () => undefined,
        ),
      SOON_MS,
    )
    expect(await whoami()).toBe('app')
  })
})
