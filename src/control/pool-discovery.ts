import type { Discovery, Endpoint } from '../backends/discovery.ts'
import { compareEndpoints } from '../backends/discovery.ts'
import type { CancelTimer, Clock } from '../base/clock.ts'

/**
 * Keeps one pool in step with the source of its replicas. A new replica is added and starts slowly; a replica that is no
 * longer listed, or is listed as terminating, is drained and finishes what it runs.
 *
 * An empty list is treated with suspicion. A selector with a typing mistake, a name server with an empty zone and a
 * service that is being replaced all say "nobody", and draining everything on their word would be an outage made by us.
 * So an empty list removes only replicas that do not answer their probe either: real engines that were scaled to zero
 * stop answering within seconds, and engines that still answer are still used. A source that cannot be reached changes
 * nothing.
 */
export interface ReplicaChanges {
  add(endpoint: Endpoint): void
  drain(endpointId: string): void
  undrain(endpointId: string): void
  remove(endpointId: string, because: string): void
  /** True when the replica's last probe failed. */
  isAway(endpointId: string): boolean
}

/** Replicas of one pool at most: as many as a pool may list in the configuration. */
const ENDPOINTS_MAX = 1_000

/** Time between two looks at the replicas that an empty list has left. */
const SUSPICION_LOOK_US = 1_000_000

export class PoolDiscovery {
  readonly #clock: Clock
  readonly #changes: ReplicaChanges
  readonly #stopWatching: () => void
  #known: readonly Endpoint[] = []
  #cancelLook: CancelTimer | undefined
  #isStopped = false
  readonly #whenFirst: Array<() => void> = []
  #hasAnswered = false

  constructor(clock: Clock, discovery: Discovery, changes: ReplicaChanges) {
    this.#clock = clock
    this.#changes = changes
    this.#stopWatching = discovery.watch((list) => this.#take(list))
  }

  /** Resolves with the first list, or after `patienceUs`. */
  async first(patienceUs: number): Promise<void> {
    if (this.#hasAnswered) return
    await Promise.race([new Promise<void>((resolve) => this.#whenFirst.push(resolve)), this.#clock.sleep(patienceUs)])
  }

  stop(): void {
    this.#isStopped = true
    this.#stopWatching()
    this.#cancelLook?.()
  }

  #take(given: readonly Endpoint[]): void {
    if (this.#isStopped) return
    const list = given.slice(0, ENDPOINTS_MAX)
    this.#cancelLook?.()
    this.#cancelLook = undefined
    if (list.length === 0 && this.#known.length > 0) this.#suspect()
    else this.#follow(list)
    this.#hasAnswered = true
    for (const resolve of this.#whenFirst.splice(0)) resolve()
  }

  #follow(list: readonly Endpoint[]): void {
    const { added, removed, changed } = compareEndpoints(this.#known, list)
    this.#known = list
    for (const { id } of removed) this.#changes.remove(id, 'discovery no longer lists it')
    for (const endpoint of added) {
      this.#changes.add(endpoint)
      if (endpoint.state === 'draining') this.#changes.drain(endpoint.id)
    }
    for (const { id, state } of changed) {
      if (state === 'draining') this.#changes.drain(id)
      else this.#changes.undrain(id)
    }
  }

  #suspect(): void {
    const gone = this.#known.filter(({ id }) => this.#changes.isAway(id))
    this.#known = this.#known.filter((endpoint) => !gone.includes(endpoint))
    for (const { id } of gone) this.#changes.remove(id, 'discovery lists nobody, and it does not answer its probe')
    if (this.#known.length === 0) return
    this.#cancelLook = this.#clock.at(this.#clock.now() + SUSPICION_LOOK_US, () => this.#suspect())
  }
}
