/**
 * Kubernetes' list of endpoints: EndpointSlices of `discovery.k8s.io/v1`, and the events of a watch on them, one JSON
 * document a line. Only what is needed to reach an engine is read.
 */
export interface SliceEndpoint {
  readonly address: string
  readonly port: number
  readonly state: 'ready' | 'draining'
  readonly zone: string | undefined
}

export interface Slice {
  readonly name: string
  readonly version: string | undefined
  readonly endpoints: readonly SliceEndpoint[]
}

export interface SliceList {
  readonly version: string | undefined
  readonly slices: readonly Slice[]
}

export type SliceEvent =
  | { readonly kind: 'put'; readonly slice: Slice }
  | { readonly kind: 'deleted'; readonly slice: Slice }
  | { readonly kind: 'bookmark'; readonly version: string | undefined }
  /** The watch has missed events: list again. */
  | { readonly kind: 'lost' }

/** A port by name or number; undefined takes the first. */
export type PortChoice = string | number | undefined

export function readSliceList(json: unknown, port: PortChoice): SliceList {
  const list = isObject(json) ? json : {}
  const items = Array.isArray(list['items']) ? list['items'] : []
  return { version: versionOf(list), slices: items.map((item) => readSlice(item, port)) }
}

export function readSliceEvent(json: unknown, port: PortChoice): SliceEvent {
  const { type, object } = isObject(json) ? json : { type: undefined, object: undefined }
  if (type === 'BOOKMARK') return { kind: 'bookmark', version: versionOf(object) }
  if (type === 'ADDED' || type === 'MODIFIED') return { kind: 'put', slice: readSlice(object, port) }
  if (type === 'DELETED') return { kind: 'deleted', slice: readSlice(object, port) }
  return { kind: 'lost' }
}

function readSlice(json: unknown, port: PortChoice): Slice {
  const slice = isObject(json) ? json : {}
  const metadata = isObject(slice['metadata']) ? slice['metadata'] : {}
  const number = portOf(slice['ports'], port)
  const endpoints = Array.isArray(slice['endpoints']) && number !== undefined ? slice['endpoints'] : []
  return {
    name: String(metadata['name']),
    version: versionOf(slice),
    endpoints: endpoints.filter(isObject).flatMap((endpoint) => readEndpoint(endpoint, number as number)),
  }
}

/** An endpoint that is neither ready nor serving is left out; unknown means ready, as the API says. */
function readEndpoint(endpoint: Record<string, unknown>, port: number): SliceEndpoint[] {
  const { ready, serving, terminating } = (isObject(endpoint['conditions']) ? endpoint['conditions'] : {}) as {
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
  const list = Array.isArray(ports) ? ports.filter(isObject) : []
  if (typeof wanted === 'number') return wanted
  const found = wanted === undefined ? list[0] : list.find(({ name }) => name === wanted)
  return typeof found?.['port'] === 'number' ? found['port'] : undefined
}

function versionOf(object: unknown): string | undefined {
  const metadata = isObject(object) && isObject(object['metadata']) ? object['metadata'] : {}
  return typeof metadata['resourceVersion'] === 'string' ? metadata['resourceVersion'] : undefined
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
