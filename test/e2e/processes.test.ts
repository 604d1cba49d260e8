import { beforeAll, describe, expect, it } from 'vitest'
import { HOST_SOON_MS, type Host, Hosts, hostTree, tenant } from '../support/host.ts'
import { ACME_KEY } from '../support/start-platform.ts'

/** Two processes on one host are one server; `processes.long.test.ts` administers them, kills one, and shares limits. */
const hosts = new Hosts()

describe('a host with two processes', { timeout: 2 * HOST_SOON_MS }, () => {
  let host: Host
  beforeAll(async () => {
    const tenants = [tenant('acme', ACME_KEY)]
    host = await hosts.start('two.yaml', hostTree(hosts.upstream.url, 2, hosts.folder, { tenants, store: undefined }))
  }, HOST_SOON_MS)

  it('is served by both, and its metrics are of both, whoever is asked', async () => {
    await host.bothAnswer()
    const before = await host.requestCount()
    for (let i = 0; i < 10; i++) expect((await host.chat()).status).toBe(200)
    const seen = await Promise.all(Array.from({ length: 6 }, () => host.requestCount()))
    expect(new Set(seen)).toEqual(new Set([before + 10]))
  })

  it('stops with all its processes', async () => {
    host.child.signal('SIGTERM')
    expect(await host.child.exited(HOST_SOON_MS)).toBe(0)
    for (const pid of host.pids()) expect(() => process.kill(pid, 0)).toThrow('ESRCH')
  })
})
