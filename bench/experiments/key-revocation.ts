import { hashKey } from '../../src/config/key-hash.ts'
import { startPostgres } from '../../test/support/servers.ts'
import { authorization, startPlatform, type TestPlatform, testTree } from '../../test/support/start-platform.ts'
import { type ExperimentOptions, type Findings, runExperiment } from './kit/experiment.ts'

/**
 * How long does a revoked secret live, and how soon do other changes hold at another gateway? Two gateways in one
 * process, with all of HTTP, on one PostgreSQL server. The clock runs from the moment the revocation is sent, and stops
 * at each gateway's first 401; for a new key and a drain (an entry of the registry) it runs from the answer to the first
 * sight of it at the other gateway.
 */
const ADMIN_KEY = 'sk-bench-admin'
const ROUNDS = 20
const PAUSE_MS = 5

async function start(url: string): Promise<TestPlatform> {
  const admin = { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] }
  const server = { ingress: { requestsPerMinute: 1_000_000_000, failedKeysPerMinute: 1_000_000_000 } }
  return startPlatform(testTree({ admin, store: { url }, server }))
}

async function change({ address }: TestPlatform, method: string, path: string, body: object = {}): Promise<string> {
  const response = await fetch(`${address}/admin/v1/${path}`, {
    method,
    headers: { ...authorization(ADMIN_KEY), 'content-type': 'application/json' },
    body: JSON.stringify({ because: 'bench', ...body }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(text)
  return (JSON.parse(text) as { secret?: string }).secret ?? ''
}

const WHAT = {
  here: 'a removed key, at the gateway that is asked: from the call to the first 401',
  there: 'a removed key, at another one: from the call to the first 401',
  made: 'a new key, at another one: from the answer to the first 200',
  drained: 'a drain (the registry), at another one: from the answer until it is shown',
} as const

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** The instant of the first answer with this status. */
async function firstAt({ address }: TestPlatform, secret: string, status: number): Promise<number> {
  for (;;) {
    const response = await fetch(`${address}/v1/models`, { headers: authorization(secret) })
    await response.text()
    if (response.status === status) return performance.now()
    await pause(PAUSE_MS)
  }
}

/** The instant at which the gateway shows this replica's health. */
async function healthAt({ address }: TestPlatform, health: string): Promise<number> {
  for (;;) {
    const response = await fetch(`${address}/admin/v1/pools`, { headers: authorization(ADMIN_KEY) })
    const { data } = (await response.json()) as { data: Array<{ replicas: Array<{ health: string }> }> }
    if ((data[0]?.replicas[0]?.health === 'draining') === (health === 'draining')) return performance.now()
    await pause(PAUSE_MS)
  }
}

async function run({ progress }: ExperimentOptions): Promise<Findings> {
  const postgres = await startPostgres()
  const [here, there] = [await start(postgres.url), await start(postgres.url)]
  await change(here, 'POST', 'orgs', { id: 'initech', slos: ['steady'] })
  await change(here, 'POST', 'tenants', { id: 'store', orgId: 'initech' })
  const times = { here: [] as number[], there: [] as number[], made: [] as number[], drained: [] as number[] }
  const replicaId = here.platform.pools[0]!.replicas[0]!.id
  for (let i = 0; i < ROUNDS; i++) {
    progress(`round ${i + 1} of ${ROUNDS}`)
    const secret = await change(here, 'POST', 'keys', { id: `web-${i}`, tenantId: 'store' })
    const madeAt = performance.now()
    times.made.push((await firstAt(there, secret, 200)) - madeAt)
    const state = i % 2 === 0 ? 'draining' : 'ready'
    await change(here, 'POST', `replicas/${replicaId}`, { state })
    const drainedAt = performance.now()
    times.drained.push((await healthAt(there, state)) - drainedAt)
    // Rounds begin at different moments between two looks.
    await pause((i * 500) / ROUNDS)
    const sentAt = performance.now()
    const ends = [firstAt(here, secret, 401), firstAt(there, secret, 401)]
    await change(here, 'DELETE', `keys/web-${i}`)
    const [hereAt = 0, thereAt = 0] = await Promise.all(ends)
    times.here.push(hereAt - sentAt)
    times.there.push(thereAt - sentAt)
  }
  await here.close()
  await there.close()
  await postgres.close()
  const rows = Object.entries(times).map(([where, all]) => {
    const sorted = all.toSorted((a, b) => a - b)
    return [WHAT[where as keyof typeof WHAT], sorted[ROUNDS >> 1] ?? 0, sorted.at(-1) ?? 0]
  })
  const worst = {
    here: Math.max(...times.here),
    there: Math.max(...times.there),
    made: Math.max(...times.made),
    drained: Math.max(...times.drained),
  }
  const isMet = (isIt: boolean): string => (isIt ? 'met' : 'missed')
  return {
    tables: [{ title: 'Until a change holds', columns: ['what', 'median ms', 'longest ms'], rows }],
    verdict: [
      `The gateway that is asked refuses a revoked secret after ${worst.here.toFixed(0)} ms at most (target 1,000: ${isMet(worst.here <= 1_000)}), another one after ${worst.there.toFixed(0)} ms (target 2,000: ${isMet(worst.there <= 2_000)}).`,
      `Another gateway knows a new key ${worst.made.toFixed(0)} ms after the answer at most, and a change of the registry after ${worst.drained.toFixed(0)} ms (target 2,000: ${isMet(Math.max(worst.made, worst.drained) <= 2_000)}).`,
    ],
  }
}

await runExperiment({
  name: 'key-revocation',
  title: 'How long a revoked secret lives',
  about: `Two gateways on one PostgreSQL server, which tell each other of changes. ${ROUNDS} keys are removed at one of them, at different moments between two looks; clients ask both every ${PAUSE_MS} ms.`,
  seeds: 1,
  run,
})
