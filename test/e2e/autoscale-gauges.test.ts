import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { eventually } from '../support/eventually.ts'
import { missing } from '../support/installed.ts'
import { PrometheusServer } from '../support/prometheus-server.ts'
import {
  authorization,
  METRICS_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/**
 * What other autoscalers read of us: a Kubernetes HPA and KEDA's `prometheus` scaler through a real Prometheus, KEDA's
 * `metrics-api` scaler from the address itself. The queries are those of the manifests that we ship.
 */
const MANIFESTS = new URL('../../deploy/kubernetes/components/', import.meta.url)

function manifest(path: string): string {
  return readFileSync(new URL(path, MANIFESTS), 'utf8')
}

interface Triggers {
  readonly spec: { readonly triggers: readonly { readonly metadata: Readonly<Record<string, string>> }[] }
}

function triggerOf(path: string): Readonly<Record<string, string>> {
  const [first] = parseAllDocuments(manifest(path))
  const scaled = first?.toJS() as Triggers | undefined
  return scaled?.spec.triggers[0]?.metadata ?? {}
}

const why = missing('prometheus')

describe.skipIf(why !== undefined)(`the signals for other autoscalers${why === undefined ? '' : `: ${why}`}`, () => {
  let platform: TestPlatform
  let prometheus: PrometheusServer
  let pool = ''

  beforeAll(async () => {
    const tree = testTree()
    const [first] = tree['pools'] as Record<string, unknown>[]
    const autoscale = { writer: 'external', minWarm: 1, max: 8, coldStartMs: 1_000 }
    platform = await startPlatform({ ...tree, pools: [{ ...first, autoscale }] })
    prometheus = await PrometheusServer.start({ address: platform.address, key: METRICS_KEY })
    const all = await fetch(`${platform.address}/autoscale`, { headers: authorization(METRICS_KEY) })
    pool = ((await all.json()) as { pools: { pool: string }[] }).pools[0]?.pool ?? ''
    const body = { model: MODEL, max_tokens: 4, messages: [{ role: 'user', content: 'Hello.' }] }
    const answer = await postJson(`${platform.address}/v1/chat/completions`, body)
    expect(answer.status).toBe(200)
  }, 120_000)

  afterAll(async () => {
    await prometheus?.end()
    await platform?.close()
  })

  it('are in Prometheus under the names that the manifests ask for', { timeout: 60_000 }, async () => {
    const keda = triggerOf('engines-keda-prometheus/scaledobject.yaml')['query'] ?? ''
    expect(keda).toContain('spillway_autoscale_desired_replicas')
    const hpa = /name: (spillway_\w+)/.exec(manifest('engines-hpa/horizontalpodautoscaler.yaml'))?.[1] ?? ''
    const queries = [keda.replace(/pool="[^"]*"/, `pool="${pool}"`), `${hpa}{pool="${pool}"}`]
    for (const query of queries) {
      const desired = await eventually(`an answer to ${query}`, async () => (await prometheus.query(query))[0], 30_000)
      expect(Number(desired.value[1])).toBeGreaterThanOrEqual(1)
    }
    for (const name of ['ready_replicas', 'queue_depth', 'slo_attainment_ratio', 'backlog_seconds', 'activation']) {
      const query = `spillway_autoscale_${name}{pool="${pool}"}`
      await eventually(`an answer to ${query}`, async () => (await prometheus.query(query)).length === 1, 30_000)
    }
  })

  it('are at the address of metrics-api, at the place that the manifest names', async () => {
    const { url = '', valueLocation = '' } = triggerOf('engines-keda/scaledobject.yaml')
    const path = new URL(url).pathname.replace(/[^/]+$/, pool)
    const answer = await fetch(platform.address + path, { headers: authorization(METRICS_KEY) })
    expect(answer.status).toBe(200)
    const told = (await answer.json()) as Record<string, unknown>
    expect(told[valueLocation]).toBeGreaterThanOrEqual(1)
  })
})
