/**
 * Discovery of replicas. A source (a list, DNS, Kubernetes) reports the whole list whenever it changes; the difference
 * to the list before is made here. A source that does not answer reports nothing: the last list stays, because trouble
 * with a name server must not empty a pool.
 */
export interface Endpoint {
  /** The same engine keeps its id from one list to the next. */
  readonly id: string
  readonly url: string
  /** `draining`: the engine finishes its requests, then goes. */
  readonly state: 'ready' | 'draining'
  readonly zone?: string
}

export interface Discovery {
  /** Calls `onList` soon, and again after every change, until the returned function is called. */
  watch(onList: (endpoints: readonly Endpoint[]) => void): () => void
}

export interface EndpointChanges {
  readonly added: readonly Endpoint[]
  readonly removed: readonly Endpoint[]
  /** Endpoints with another state or address under the same id. */
  readonly changed: readonly Endpoint[]
}

export function compareEndpoints(before: readonly Endpoint[], after: readonly Endpoint[]): EndpointChanges {
  const known = new Map(before.map((endpoint) => [endpoint.id, endpoint]))
  const there = new Set(after.map(({ id }) => id))
  return {
    added: after.filter(({ id }) => !known.has(id)),
    removed: before.filter(({ id }) => !there.has(id)),
    changed: after.filter((endpoint) => {
      const old = known.get(endpoint.id)
      return old !== undefined && (old.state !== endpoint.state || old.url !== endpoint.url)
    }),
  }
}

export const isSameList = (before: readonly Endpoint[], after: readonly Endpoint[]): boolean => {
  const { added, removed, changed } = compareEndpoints(before, after)
  return added.length + removed.length + changed.length === 0
}

/** What the addresses of all engines have in common, whether found by name or by number. */
export interface EndpointAddress {
  readonly scheme: 'http' | 'https'
  /** Path of the address, including the version: `/v1`. */
  readonly path: string
}

export function endpointUrl({ scheme, path }: EndpointAddress, host: string, port: number): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}${path}`
}
