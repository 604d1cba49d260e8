import type { LiveClock } from '../../src/base/live-clock.ts'
import { hashKey } from '../../src/config/key-hash.ts'
import { buildConfig } from '../../src/config/load.ts'
import type { Entry, Settled } from '../../src/domain/entry.ts'
import type { ReplicaReport } from '../../src/lifecycle/ports.ts'
import { type Served, serve } from '../../src/main/serve.ts'
import { eventually } from './eventually.ts'
import { sampleValue } from './parse-exposition.ts'

/**
 * The whole platform in this process, on a free port, configured through the real loader. What it journals is kept
 * for the test to look at.
 */
export const ACME_KEY = 'sk-test-acme'
export const GLOBEX_KEY = 'sk-test-globex'
/** Reads `/metrics` and nothing else. */
export const METRICS_KEY = 'sk-test-metrics'

export const MODEL = 'sim'

export type Tree = Record<string, unknown>

/** One simulated model with one replica and two tenants; a test overrides whole sections. */
export function testTree(overrides: Tree = {}): Tree {
  const { server, admin, ...rest } = overrides
  return {
    server: { port: 0, ...(server as Tree | undefined) },
    admin: { metricsKeys: [{ id: 'prometheus', hash: hashKey(METRICS_KEY) }], ...(admin as Tree | undefined) },
    logging: { level: 'silent' },
    models: [{ name: MODEL, aliases: ['gpt-4o-mini'] }],
    pools: [{ model: MODEL, backend: { kind: 'simulated', profile: 'h100-llama-8b' } }],
    tenants: [
      { id: 'acme', slo: 'patient', keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }] },
      { id: 'globex', slo: 'patient', keys: [{ id: 'globex-1', hash: hashKey(GLOBEX_KEY) }] },
    ],
    ...rest,
  }
}

/** The same with an engine elsewhere: one replica per URL. */
export function upstreamTree(urls: readonly string[], overrides: Tree = {}, concurrencyMax = 64): Tree {
  return testTree({
    pools: [
      {
        model: MODEL,
        backend: { kind: 'http-openai', timeoutMs: 5_000 },
        replicas: urls,
        limit: { kind: 'fixed', concurrencyMax },
      },
    ],
    ...overrides,
  })
}

export interface TestPlatform extends Served {
  /** The API's root, as SDKs want it: up to and with `/v1`. */
  readonly baseURL: string
  readonly entries: readonly Entry[]
  readonly printed: string
  /** How the ticket of this response ended, once it has. */
  settled(requestId: string): Promise<Settled>
  metric(name: string, labels?: Record<string, string>): Promise<number | undefined>
  /** What the first replica's engine says of itself. */
  engine(): Promise<ReplicaReport>
}

export async function startPlatform(asked: Tree = testTree(), clock?: LiveClock): Promise<TestPlatform> {
  // What one test keeps must not be there when the next one starts.
  const store = { path: 'memory:', ...(asked['store'] as Tree | undefined) }
  const tree = { ...asked, store, ledger: { enabled: false, ...(asked['ledger'] as Tree | undefined) } }
  const config = buildConfig({ path: 'test.yaml', tree, lineOf: () => undefined }, {})
  const printed: string[] = []
  const served = await serve(config, { out: (text) => printed.push(text), err: (text) => printed.push(text) }, clock)
  const entries: Entry[] = []
  served.journal.subscribe({ name: 'test', take: (entry) => void entries.push(entry) })
  const root = served.address + config.server.basePath
  const { platform } = served
  return {
    ...served,
    baseURL: `${root}/v1`,
    /** Until now: the journal delivers a little later by itself. */
    get entries() {
      served.journal.drain()
      return entries
    },
    get printed() {
      return printed.join('\n')
    },
    settled: (id) =>
      eventually(`${id} settles`, () => {
        served.journal.drain()
        return entries.find((entry): entry is Settled => entry.kind === 'settled' && entry.ticketId === id)
      }),
    async metric(name, labels) {
      served.journal.drain()
      const page = await fetch(`${root}/metrics`, { headers: authorization(METRICS_KEY) })
      return sampleValue(await page.text(), name, labels)
    },
    async engine() {
      const replica = platform.pools[0]!.replicas[0]!
      return platform.world.backends.of(replica).probe(replica)
    },
  }
}

export const authorization = (key: string = ACME_KEY): Record<string, string> => ({ authorization: `Bearer ${key}` })

export function postJson(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...authorization(), ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}
