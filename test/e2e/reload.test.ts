import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { runCli } from '../../src/cli/run-cli.ts'
import { hashKey } from '../../src/config/key-hash.ts'
import { Child, ROOT, TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { answers, FakeUpstream } from '../support/fake-upstream.ts'
import {
  ACME_KEY,
  authorization,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  type Tree,
  upstreamTree,
} from '../support/start-platform.ts'

/** The configuration file changes while the server runs: the program as people start it, and its admin API. */
const ADMIN_KEY = 'sk-test-admin'
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

async function spillway(address: string, ...words: string[]): Promise<{ code: number; out: string; err: string }> {
  const out: string[] = []
  const err: string[] = []
  const code = await runCli([...words, '--url', address, '--key', ADMIN_KEY], {
    out: (text) => out.push(text),
    err: (text) => err.push(text),
  })
  return { code, out: out.join('\n'), err: err.join('\n') }
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

describe('a replica of a pool of the file', () => {
  const chat = async (platform: TestPlatform): Promise<number> => {
    const messages = [{ role: 'user', content: 'Hello?' }]
    const response = await postJson(`${platform.baseURL}/chat/completions`, { model: MODEL, messages })
    await response.text()
    return response.status
  }

  it('is added while it runs, is there after a restart, and goes again', { timeout: 120_000 }, async () => {
    const other = new TestFolder()
    closers.push(() => other.remove())
    const tree = upstreamTree([first.url], { admin: ADMIN, store: { path: join(other.path, 'data') } })
    let platform = await startPlatform(tree)
    closers.push(() => platform.close())
    const pool = `${MODEL}-local`
    const id = `${pool}-${new URL(second.url).host}`
    const why = ['--because', 'more room']
    const ids = () => platform.platform.pools.flatMap(({ replicas }) => replicas.map((replica) => replica.id))
    const add = (url: string) => spillway(platform.address, 'replicas', 'add', pool, '--replica', url, ...why)
    expect(await add(second.url)).toMatchObject({ code: 0, out: 'Done: revision 1.' })
    expect(ids()).toContain(id)
    expect(await add('gpu')).toMatchObject({ code: 1, err: expect.stringContaining('url') })
    expect(await add(first.url)).toMatchObject({ code: 1, err: expect.stringContaining('in the configuration file') })
    expect(await spillway(platform.address, 'replicas', 'add', pool, ...why)).toMatchObject({
      code: 2,
      err: expect.stringContaining('--replica is missing'),
    })
    closers.pop()
    await platform.close()

    platform = await startPlatform(tree)
    closers.push(() => platform.close())
    await eventually('it is there again', () => ids().includes(id), 30_000)
    second.behaviour = answers()
    // Several at once: a single request may always go to the same one of two idle replicas.
    const several = async () => Promise.all(Array.from({ length: 8 }, () => chat(platform)))
    const isUsed = async () => (await several()).every((status) => status === 200) && second.seen.length > 0
    await eventually('it answers', isUsed)
    // Of everything, of the pool, and of the model, whose pool is in the file only.
    for (const of of [[], [pool], [MODEL]]) {
      const listed = await spillway(platform.address, 'models', 'history', ...of, '--json')
      expect(JSON.parse(listed.out)).toMatchObject([{ kind: 'replica', name: id, by: 'ada', because: 'more room' }])
    }
    const remove = (replica: string) => spillway(platform.address, 'replicas', 'remove', replica, ...why)
    expect(await remove(`${pool}-${new URL(first.url).host}`)).toMatchObject({
      code: 1,
      err: expect.stringContaining('Change the file, then reload it'),
    })
    expect(await remove(id)).toMatchObject({ code: 0, out: 'Done: revision 2.' })
    await eventually('it has gone', () => !ids().includes(id), SOON_MS)
    expect((await fetch(`${platform.baseURL}/models`, { headers: authorization(ACME_KEY) })).status).toBe(200)
  })
})
