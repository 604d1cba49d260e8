import { type KubeItem, type KubeReader, objectOf, objectsOf } from './kubernetes-objects.ts'

/**
 * Kubernetes' list of endpoints: EndpointSlices of `discovery.k8s.io/v1`. Only what is needed to reach an engine is read.
 */
export interface SliceEndpoint {
  readonly address: string
  readonly port: number
  readonly state: 'ready' | 'draining'
  readonly zone: string | undefined
}

export interface Slice extends KubeItem {
  readonly endpoints: readonly SliceEndpoint[]
}

/** A port by name or number; undefined takes the first. */
export type PortChoice = string | number | undefined

export const sliceReader =
  (port: PortChoice): KubeReader<Slice> =>
  (slice, item) => {
    const number = portOf(slice['ports'], port)
    const endpoints = number === undefined ? [] : objectsOf(slice['endpoints'])
    return { ...item, endpoints: endpoints.flatMap((endpoint) => readEndpoint(endpoint, number as number)) }
  }

/** An endpoint that is neither ready nor serving is left out; unknown means ready, as the API says. */
function readEndpoint(endpoint: Record<string, unknown>, port: number): SliceEndpoint[] {
  const { ready, serving, terminating } = objectOf(endpoint['conditions']) as {
    ready?: boolean | null
    serving?: boolean | null
    terminating?: boolean | null
  }
  const isDraining = terminating === true
  if (isDraining ? serving === false : ready === false) return []
  const addresses = Array.isArray(endpoint['addresses']) ? endpoint['addresses'].map(String) : []
  const zone = typeof endpoint['zone'] === 'string' ? endpoint['zone'] : undefined
  // All addresses of one endpoint belong to the same pod: the first is enough.
  return addresses.slice(0, 1).map((address) => ({ address, port, state: isDraining ? 'draining' : 'ready', zone }))
}

function portOf(ports: unknown, wanted: PortChoice): number | undefined {
  const list = objectsOf(ports)
  if (typeof wanted === 'number') return wanted
  const found = wanted === undefined ? list[0] : list.find(({ name }) => name === wanted)
  return typeof found?.['port'] === 'number' ? found['port'] : undefined
}
