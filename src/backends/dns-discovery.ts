import type { CancelTimer, Clock } from '../base/clock.ts'
import { type Discovery, type Endpoint, type EndpointAddress, endpointUrl, isSameList } from './discovery.ts'

/**
 * Replicas from DNS: every address of a name (A and AAAA, as for a headless service of Kubernetes) with a configured
 * port, or every target of a service record, with its own port. The name is looked up again when the answer's time to
 * live ends, within bounds. "No such name", twice in a row, means that there is no replica; any other failure means
 * that the list is unknown.
 */
export interface DnsAnswer {
  readonly host: string
  readonly ttlS: number | undefined
  /** Port of a service record. */
  readonly port?: number
}

export interface DnsResolver {
  addresses(name: string): Promise<readonly DnsAnswer[]>
  services(name: string): Promise<readonly DnsAnswer[]>
}

/** Thrown by a resolver for a name that does not exist or has no such record. */
export class NoSuchName extends Error {
  override readonly name = 'NoSuchName'
}

export interface DnsDiscoveryOptions extends EndpointAddress {
  readonly name: string
  readonly record: 'address' | 'service'
  /** Port for addresses; service records bring their own. */
  readonly port: number
  readonly resolver: DnsResolver
  readonly clock: Clock
  /** Longest time between two lookups. */
  readonly everyUs?: number
  readonly onFailure?: (because: string) => void
}

/** Shortest time between two lookups: a time to live of 0 is common in clusters. */
const REFRESH_US_MIN = 2_000_000
/** Longest time between two lookups: a new replica is used after half a minute at the latest. */
const REFRESH_US_MAX = 30_000_000
const EMPTY_ANSWERS_BELIEVED = 2

export class DnsDiscovery implements Discovery {
  readonly #options: DnsDiscoveryOptions

  constructor(options: DnsDiscoveryOptions) {
    this.#options = options
  }

  watch(onList: (endpoints: readonly Endpoint[]) => void): () => void {
    const { clock } = this.#options
    let known: readonly Endpoint[] | undefined
    let emptyCount = 0
    let isStopped = false
    let cancelTimer: CancelTimer | undefined
    const ask = async (): Promise<void> => {
      const answers = await this.#resolve()
      if (isStopped) return
      emptyCount = answers?.length === 0 ? emptyCount + 1 : 0
      const isBelieved = answers !== undefined && (answers.length > 0 || emptyCount >= EMPTY_ANSWERS_BELIEVED)
      if (isBelieved) {
        const list = this.#toEndpoints(answers)
        if (known === undefined || !isSameList(known, list)) onList(list)
        known = list
      }
      cancelTimer = clock.at(
        clock.now() + refreshUs(answers ?? [], this.#options.everyUs ?? REFRESH_US_MAX),
        () => void ask(),
      )
    }
    void ask()
    return () => {
      isStopped = true
      cancelTimer?.()
    }
  }

  /** Undefined when the lookup failed. */
  async #resolve(): Promise<readonly DnsAnswer[] | undefined> {
    const { resolver, name, record, onFailure } = this.#options
    try {
      return await (record === 'address' ? resolver.addresses(name) : resolver.services(name))
    } catch (error) {
      if (error instanceof NoSuchName) return []
      onFailure?.(`${name} could not be resolved: ${(error as { code?: string }).code ?? (error as Error).name}`)
      return undefined
    }
  }

  #toEndpoints(answers: readonly DnsAnswer[]): Endpoint[] {
    const endpoints = new Map<string, Endpoint>()
    for (const { host, port = this.#options.port } of answers) {
      const id = `${host}:${port}`
      endpoints.set(id, { id, url: endpointUrl(this.#options, host, port), state: 'ready' })
    }
    return [...endpoints.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
  }
}

function refreshUs(answers: readonly DnsAnswer[], usMax: number): number {
  const ttls = answers.flatMap(({ ttlS }) => ttlS ?? [])
  const us = ttls.length === 0 ? REFRESH_US_MIN : 1_000_000 * Math.min(...ttls)
  return Math.min(usMax, Math.max(REFRESH_US_MIN, us))
}
