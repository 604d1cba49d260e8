/**
 * Which replicas are there? Whoever knows (a list, DNS, Kubernetes) tells the whole list whenever it changes; who comes
 * and who goes is the difference, made in one place below. A source that cannot be asked says nothing: the last list
 * stands, because a name server's trouble must not empty a pool.
 */
export interface Endpoint {
  /** The same engine has the same id from one list to the next. */
  readonly id: string
  readonly url: string
  /** `draining`: it finishes what it has, and goes. */
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
  /** Another state or address under the same id. */
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

/** What every engine's address has in common, found by name or number. */
export interface EndpointAddress {
  readonly scheme: 'http' | 'https'
  /** Up to and with the version: `/v1`. */
  readonly path: string
}

export function endpointUrl({ scheme, path }: EndpointAddress, host: string, port: number): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}${path}`
}
