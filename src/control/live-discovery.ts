import { readFileSync } from 'node:fs'
import type { Discovery } from '../backends/discovery.ts'
import { DnsDiscovery } from '../backends/dns-discovery.ts'
import { InferencePoolDiscovery } from '../backends/http-inference-pool.ts'
import { IN_CLUSTER, type KubeAccess, readTokenFile } from '../backends/http-kube-watch.ts'
import { KubernetesDiscovery } from '../backends/http-kubernetes.ts'
import { LiveDnsResolver } from '../backends/live-dns.ts'
import { type Clock, msToUs } from '../base/clock.ts'
import { ConfigError } from '../config/config-error.ts'
import type { BackendConfig } from '../config/schema.ts'

/** The source of a pool's replicas that its configuration names. */
export interface LiveDiscovery {
  readonly discovery: Discovery
  close(): Promise<void>
}

type DiscoverConfig = NonNullable<Exclude<BackendConfig, { kind: 'simulated' }>['discover']>

interface DiscoveryParts {
  readonly poolId: string
  readonly clock: Clock
  readonly onFailure: (because: string) => void
}

export function makeDiscovery(discover: DiscoverConfig, parts: DiscoveryParts): LiveDiscovery {
  const { dns, kubernetes, inferencePool } = discover
  if (dns !== undefined) {
    const { servers, everyMs, ...options } = dns
    const resolver = new LiveDnsResolver(servers)
    const { clock, onFailure } = parts
    const discovery = new DnsDiscovery({ ...options, everyUs: msToUs(everyMs), resolver, clock, onFailure })
    return { discovery, close: () => Promise.resolve() }
  }
  if (kubernetes !== undefined) {
    const { service, port } = kubernetes
    return closedWith(new KubernetesDiscovery({ ...accessTo(kubernetes, parts, 'kubernetes'), service, port }))
  }
  if (inferencePool === undefined) throw new Error('a discovery asks DNS or Kubernetes')
  const access = accessTo(inferencePool, parts, 'inferencePool')
  return closedWith(new InferencePoolDiscovery({ ...access, pool: inferencePool.pool }))
}

const closedWith = (discovery: Discovery & { close(): Promise<void> }): LiveDiscovery => ({
  discovery,
  close: () => discovery.close(),
})

type KubeSource = 'kubernetes' | 'inferencePool'

function accessTo(
  source: NonNullable<DiscoverConfig[KubeSource]>,
  { poolId, clock, onFailure }: DiscoveryParts,
  kind: KubeSource,
): KubeAccess {
  const { apiUrl = IN_CLUSTER.apiUrl, tokenFile = IN_CLUSTER.tokenPath, caFile, scheme, path, namespace } = source
  const ca = apiUrl.startsWith('https:') ? readCa(caFile ?? IN_CLUSTER.caPath, { poolId, kind }) : undefined
  const token = readTokenFile(tokenFile)
  return { apiUrl, namespace, scheme, path, token, ...(ca !== undefined && { tls: { ca } }), clock, onFailure }
}

function readCa(path: string, { poolId, kind }: { poolId: string; kind: KubeSource }): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error'
    throw new ConfigError([
      `pool ${poolId}: the authority's certificate ${path} cannot be read (${code}). Outside a cluster set ` +
        `backend.discover.${kind}.caFile, apiUrl and tokenFile.`,
    ])
  }
}
