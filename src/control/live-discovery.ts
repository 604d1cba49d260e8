import { readFileSync } from 'node:fs'
import type { Discovery } from '../backends/discovery.ts'
import { DnsDiscovery } from '../backends/dns-discovery.ts'
import { IN_CLUSTER, KubernetesDiscovery, readTokenFile } from '../backends/http-kubernetes.ts'
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

export function makeDiscovery(
  discover: DiscoverConfig,
  { poolId, clock, onFailure }: { poolId: string; clock: Clock; onFailure: (because: string) => void },
): LiveDiscovery {
  const { dns, kubernetes } = discover
  if (dns !== undefined) {
    const { servers, everyMs, ...options } = dns
    const resolver = new LiveDnsResolver(servers)
    const discovery = new DnsDiscovery({ ...options, everyUs: msToUs(everyMs), resolver, clock, onFailure })
    return { discovery, close: () => Promise.resolve() }
  }
  if (kubernetes === undefined) throw new Error('a discovery asks DNS or Kubernetes')
  const { apiUrl = IN_CLUSTER.apiUrl, tokenFile = IN_CLUSTER.tokenPath, caFile, ...options } = kubernetes
  const ca = apiUrl.startsWith('https:') ? readCa(caFile ?? IN_CLUSTER.caPath, poolId) : undefined
  const discovery = new KubernetesDiscovery({
    ...options,
    port: kubernetes.port,
    apiUrl,
    token: readTokenFile(tokenFile),
    ...(ca !== undefined && { tls: { ca } }),
    clock,
    onFailure,
  })
  return { discovery, close: () => discovery.close() }
}

function readCa(path: string, poolId: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error'
    throw new ConfigError([
      `pool ${poolId}: the authority's certificate ${path} cannot be read (${code}). Outside a cluster set ` +
        'backend.discover.kubernetes.caFile, apiUrl and tokenFile.',
    ])
  }
}
