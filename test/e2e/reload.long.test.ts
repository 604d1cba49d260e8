import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { ADMIN_KEY, spillway } from '../support/admin-cli.ts'
import { TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { answers, FakeUpstream } from '../support/fake-upstream.ts'
import {
  ACME_KEY,
  authorization,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  upstreamTree,
} from '../support/start-platform.ts'

/** Replicas that are added to a pool of the configuration file are in the store, and there again after a restart. */
const ADMIN = { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] }

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
afterAll(() => Promise.all([first.close(), second.close()]))

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
    await eventually('it has gone', () => !ids().includes(id), 30_000)
    expect((await fetch(`${platform.baseURL}/models`, { headers: authorization(ACME_KEY) })).status).toBe(200)
  })
})
