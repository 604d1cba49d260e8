import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { ADMIN_KEY, spillway } from '../support/admin-cli.ts'
import { Child, ROOT, TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { FakeUpstream } from '../support/fake-upstream.ts'
import { authorization, postJson, type Tree, upstreamTree } from '../support/start-platform.ts'

/** The configuration file changes while the server runs: the program as people start it, and its admin API. */
/** A busy machine is slow; that nothing happens at all is what these tests would find. */
const SOON_MS = 30_000
const ADMIN = { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] }

const folder = new TestFolder()
const closers: Array<() => unknown> = []
let first: FakeUpstream
let second: FakeUpstream

beforeAll(async () => {
  first = await FakeUpstream.start()
  second = await FakeUpstream.start()
})
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})
afterAll(async () => {
  await Promise.all([first.close(), second.close()])
  folder.remove()
})

const tenant = (id: string, more: Tree = {}): Tree => ({
  id,
  slo: 'patient',
  keys: [{ id: `${id}-1`, hash: hashKey(`sk-${id}`) }],
  ...more,
})

const treeOf = (more: Tree = {}): Tree =>
  upstreamTree([first.url], {
    server: { port: 0 },
    admin: ADMIN,
    tenants: [tenant('acme')],
    store: { path: 'memory:' },
    ...more,
  })

/** As editors save: a new file takes the place of the old one. */
function save(content: string | object): string {
  const path = join(folder.path, 'spillway.yaml')
  renameSync(folder.write('spillway.yaml.new', content), path)
  return path
}

async function startChild(...flags: string[]): Promise<{ child: Child; address: string }> {
  const path = save(treeOf())
  const args = [join(ROOT, 'src', 'cli', 'cli.ts'), 'serve', '--config', path, ...flags]
  const child = new Child({ args })
  closers.push(() => child.end())
  return { child, address: await child.address(SOON_MS) }
}

/** What the program says reaches us through a pipe: later than what it does. */
const says = (child: Child, text: string): Promise<true> =>
  eventually(`it says ${text}`, () => child.err.includes(text), SOON_MS)

const statusOf = async (address: string, key: string): Promise<number> => {
  const response = await fetch(`${address}/v1/models`, { headers: authorization(key) })
  await response.text()
  return response.status
}

describe('the running program', () => {
  it('reads its file again on SIGUSR2, and on SIGHUP where there is no terminal, and does not stop', {
    timeout: 90_000,
  }, async () => {
    const { child, address } = await startChild()
    expect(await statusOf(address, 'sk-globex')).toBe(401)
    save(treeOf({ tenants: [tenant('acme'), tenant('globex')] }))
    child.signal('SIGUSR2')
    await eventually('it is heard', async () => (await statusOf(address, 'sk-globex')) === 200, SOON_MS)
    await says(child, 'read the configuration again (SIGUSR2): 1 tenant changed, 1 key changed')
    save(treeOf({ tenants: [tenant('acme')], server: { port: 0, keepAliveMs: 7_000 } }))
    child.signal('SIGHUP')
    await eventually('it is heard', async () => (await statusOf(address, 'sk-globex')) === 401, SOON_MS)
    await says(child, 'waiting for a restart: server.keepAliveMs')
    expect(child.exitCode).toBeUndefined()
    child.signal('SIGTERM')
    expect(await child.exited()).toBe(0)
  })

  it('takes up the file whenever it changes with --watch; a broken one changes nothing and says the line', {
    timeout: 90_000,
  }, async () => {
    const { child, address } = await startChild('--watch')
    save('models: [{ name: m }]\npools: []\ntenants:\n  - { id: acme, wieght: 2 }\n')
    await eventually('it is told', () => child.err.includes('spillway.yaml:4'), SOON_MS)
    await says(child, 'Nothing was changed.')
    await says(child, 'Did you mean "weight"?')
    expect(await statusOf(address, 'sk-acme')).toBe(200)
    save(treeOf({ tenants: [tenant('globex')] }))
    await eventually('it is heard', async () => (await statusOf(address, 'sk-globex')) === 200, SOON_MS)
    expect(await statusOf(address, 'sk-acme')).toBe(401)
    await says(child, '(the file changed): 2 tenants changed, 2 keys changed')
  })

  it('reads it again for administrators, who are told what changed and what needs a restart', {
    timeout: 90_000,
  }, async () => {
    const { address } = await startChild()
    const reload = (body: unknown, key = ADMIN_KEY) => postJson(`${address}/admin/v1/reload`, body, authorization(key))
    expect((await reload({ because: 'a test' }, 'sk-acme')).status).toBe(403)
    expect((await reload({})).status).toBe(400)
    const pools = (urls: readonly string[]) => upstreamTree(urls)['pools']
    save(treeOf({ pools: pools([first.url, second.url]), server: { port: 0, connectionsMax: 50 } }))
    expect(await spillway(address, 'reload', '--because', 'a second engine')).toEqual({
      code: 0,
      out: 'Done: 1 replica added; waiting for a restart: server.connectionsMax.',
      err: '',
    })
    const answer = await reload({ because: 'again' })
    expect([answer.status, await answer.json()]).toEqual([
      200,
      { changed: expect.objectContaining({ replicasAdded: 0 }), needsRestart: ['server.connectionsMax'] },
    ])
    save(treeOf({ pools: upstreamTree([first.url], {}, 7)['pools'], tenants: [tenant('globex')] }))
    const refused = await spillway(address, 'reload', '--because', 'fewer at once')
    expect(refused).toMatchObject({
      code: 1,
      err: expect.stringMatching(/Nothing was changed\. The pool sim-local is running, and its limit cannot change/),
    })
    expect(await statusOf(address, 'sk-globex')).toBe(401)
    save('models: [')
    expect(await spillway(address, 'reload', '--because', 'a typing mistake')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/spillway\.yaml:1: not valid YAML/),
    })
    expect(await statusOf(address, 'sk-acme')).toBe(200)
  })

  it('needs a file to watch one', async () => {
    const child = new Child({ args: [join(ROOT, 'src', 'cli', 'cli.ts'), 'serve', '--watch'] })
    closers.push(() => child.end())
    expect(await child.exited()).toBe(2)
    expect(child.err).toContain('--watch needs a file')
  })
})
