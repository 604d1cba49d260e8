import { beforeAll, describe, expect, it } from 'vitest'
import type { ConsoleView } from '../../src/console/console-view.ts'
import { Child, ROOT } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { fails } from '../support/fake-upstream.ts'
import { HOST_ADMIN_KEY, HOST_SOON_MS, type Host, Hosts, hostTree, tenant } from '../support/host.ts'
import { ACME_KEY, type Tree } from '../support/start-platform.ts'

/** Several processes on one host: one set of limits, one administration, and the end of a process. */
const hosts = new Hosts()

describe('a host with two processes', { timeout: 2 * HOST_SOON_MS }, () => {
  const tree = (more: Tree = {}): Tree =>
    hostTree(hosts.upstream.url, 2, hosts.folder, { tenants: [tenant('acme', ACME_KEY)], ...more })
  let host: Host
  beforeAll(async () => {
    host = await hosts.start('two.yaml', tree())
  }, HOST_SOON_MS)

  it('has one console: a session that both know, and one view of both', async () => {
    await host.bothAnswer()
    const begun = await host.post('/console/session', { key: HOST_ADMIN_KEY })
    const cookie = String(begun.headers['set-cookie']).split(';')[0] ?? ''
    await host.everywhere('both know the session', 200, () => host.look('/console/session', cookie))
    await host.everywhere('a cookie of nobody opens nothing', 401, () => host.look('/console/session', `${cookie}x`))
    const settled = (): number => host.child.out.split('"msg":"request settled"').length - 1
    const gateways = await eventually(
      'whoever is asked counts the requests of both',
      async () => {
        const [view, history] = [await host.look('/console/view', cookie), await host.look('/console/history', cookie)]
        const { gateways: told } = JSON.parse(view.text) as ConsoleView
        const seconds = JSON.parse(history.text) as number[][]
        const completed = seconds.reduce((sum, second) => sum + (second[2] ?? 0), 0)
        return told.heard === 2 && completed === settled() && told
      },
      HOST_SOON_MS,
    )
    expect(gateways).toEqual({ heard: 2, of: 2 })
  })

  it('finds a request wherever it was served', async () => {
    // Of one second not every request is remembered; of those that are, every process must know.
    const statuses = await eventually(
      'a request is found from every connection',
      async () => {
        const id = String((await host.chat()).headers['x-request-id'])
        const found = await Promise.all(Array.from({ length: 8 }, () => host.get(`/spillway/requests/${id}`, ACME_KEY)))
        return found.every(({ status }) => status === 200) && found.map(({ status }) => status)
      },
      HOST_SOON_MS,
    )
    expect(new Set(statuses)).toEqual(new Set([200]))
  })

  it('lists refusals of all', async () => {
    const asked = Array.from({ length: 6 }, () => {
      hosts.upstream.next(fails(400, { error: { message: 'No.' } }))
      return host.chat()
    })
    for (const { status } of await Promise.all(asked)) expect(status).toBe(400)
    // A process tells of a refusal a moment after its answer.
    await eventually(
      'whoever is asked has the same list',
      async () => {
        const lists = await Promise.all(Array.from({ length: 4 }, () => host.get('/admin/v1/refusals?limit=50')))
        const { data } = JSON.parse(lists[0]?.text ?? '{}') as { data?: unknown[] }
        return data?.length === asked.length && lists.every(({ text }) => text === lists[0]?.text)
      },
      HOST_SOON_MS,
    )
  })

  it('has a new key in force at all of them', async () => {
    const body = { id: 'acme-2', tenantId: 'acme', because: 'a second application' }
    const made = await host.post('/admin/v1/keys', body)
    expect(made.status, made.text).toBe(200)
    const { secret } = JSON.parse(made.text) as { secret: string }
    await host.everywhere('the key opens every process', 200, () => host.chat(secret))
  })

  it('drains a replica at all of them', async () => {
    const { data } = JSON.parse((await host.get('/admin/v1/pools')).text) as {
      data: Array<{ replicas: Array<{ id: string }> }>
    }
    const id = data[0]?.replicas[0]?.id ?? ''
    const path = `/admin/v1/replicas/${encodeURIComponent(id)}`
    expect((await host.post(path, { state: 'draining', because: 'a test' })).status).toBe(200)
    const drained = await Promise.all(Array.from({ length: 12 }, () => host.get('/admin/v1/pools')))
    expect(drained.every(({ text }) => text.includes('"draining"'))).toBe(true)
    expect((await host.post(path, { state: 'ready', because: 'a test' })).status).toBe(200)
    await host.everywhere('it serves again', 200, () => host.chat())
  })

  it('takes up the file at all of them', async () => {
    hosts.folder.write('two.yaml', tree({ tenants: [tenant('acme', ACME_KEY), tenant('umbrella', 'sk-umbrella')] }))
    host.child.signal('SIGUSR2')
    await host.everywhere('the new tenant is known', 200, () => host.chat('sk-umbrella'))
    hosts.folder.write('two.yaml', tree())
    expect((await host.post('/admin/v1/reload', { because: 'without the new tenant' })).status).toBe(200)
    const asked = await Promise.all(Array.from({ length: 12 }, () => host.chat('sk-umbrella')))
    // 429 after many wrong keys from one address.
    expect(asked.filter(({ status }) => status !== 401 && status !== 429)).toEqual([])
  })

  it('replaces a process that dies; the other serves meanwhile, and no counter falls', async () => {
    await host.bothAnswer()
    const before = await host.requestCount()
    const [victim] = host.pids() as [number]
    process.kill(victim, 'SIGKILL')
    await eventually(
      'the host tells of it',
      () => host.child.err.includes(`(${victim}) ended of SIGKILL`),
      HOST_SOON_MS,
    )
    const whileAway = await Promise.all(Array.from({ length: 10 }, () => host.chat()))
    expect(whileAway.every(({ status }) => status === 200)).toBe(true)
    expect(await host.requestCount()).toBeGreaterThanOrEqual(before + 10)
    await eventually('it is back', () => host.child.err.includes('is back'), HOST_SOON_MS)
  })
})

/** One host for two tests, the second of which ends it. */
describe('a host whose limits and whose end are seen', { timeout: 2 * HOST_SOON_MS }, () => {
  let host: Host
  beforeAll(async () => {
    const allowance = { requests: { perMinute: 1, burst: 10 } }
    const tenants = [tenant('acme', ACME_KEY, { allowance })]
    host = await hosts.start(
      'limits.yaml',
      hostTree(hosts.upstream.url, 2, hosts.folder, { tenants, store: { path: 'memory:' } }),
    )
  }, HOST_SOON_MS)

  it('has limits that are one tenant’s, however many processes there are', async () => {
    const statuses: number[] = []
    for (let i = 0; i < 40; i++) statuses.push((await host.chat()).status)
    expect(new Set(statuses)).toEqual(new Set([200, 429]))
    const admitted = statuses.filter((status) => status === 200).length
    // Two processes by themselves would admit twenty. One more may have dripped in.
    expect(admitted).toBeLessThanOrEqual(11)
    expect(admitted).toBeGreaterThanOrEqual(5)
  })

  it('gives up when every new process fails, and says so', async () => {
    hosts.folder.write('limits.yaml', 'server: { port: x }')
    for (const pid of host.pids()) process.kill(pid, 'SIGKILL')
    expect(await host.child.exited(HOST_SOON_MS)).toBe(70)
    expect(host.child.err).toContain('could not start')
    expect(host.child.err).toContain('every new process ends as soon as it starts')
    expect(host.child.err).not.toContain(HOST_ADMIN_KEY)
  })
})

it(
  'a host whose port is taken says so',
  async () => {
    const file = hosts.folder.write('taken.yaml', hostTree(hosts.upstream.url, 2, hosts.folder))
    const { port } = new URL(hosts.upstream.url)
    const child = new Child({ args: [`${ROOT}/src/cli/cli.ts`, 'serve', '--config', file, '--port', port] })
    expect(await child.exited(HOST_SOON_MS)).toBe(1)
    expect(child.err).toContain('is in use')
  },
  2 * HOST_SOON_MS,
)
