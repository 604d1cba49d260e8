import type { RegistryEdit, RegistryEntry } from '../domain/registry.ts'
import type { Platform } from '../lifecycle/platform.ts'
import type { WantedOwner } from './wanted.ts'

/**
 * Replicas that administrators have drained: entries of the registry, so that a drain holds at every gateway and after a
 * restart, until it is ended or the replica is removed. A replica that appears later, by discovery perhaps, is drained
 * when it comes.
 */
export class Drains {
  readonly #owner: WantedOwner
  readonly #platform: Platform
  #names: ReadonlySet<string>

  constructor(owner: WantedOwner, platform: Platform) {
    this.#owner = owner
    this.#platform = platform
    this.#names = drainedIn(owner.current.entries)
    owner.onChange(({ entries }) => this.#follow(drainedIn(entries)))
  }

  has(replicaId: string): boolean {
    return this.#names.has(replicaId)
  }

  /** What to write for this; empty when the registry says so already. */
  editsFor(replicaId: string, isDrained: boolean): readonly RegistryEdit[] {
    const { entries } = this.#owner.current
    const isKept = entries.some(({ kind, name }) => kind === 'drain' && name === replicaId)
    if (isKept === isDrained) return []
    const { poolId: pool, model } = this.#platform.policies.fleet.replica(replicaId) ?? {}
    return [{ kind: 'drain', name: replicaId, body: isDrained ? { pool, model } : undefined }]
  }

  #follow(names: ReadonlySet<string>): void {
    const before = this.#names
    this.#names = names
    const because = { by: 'registry', because: 'an administrator said so' }
    for (const replicaId of names)
      if (!before.has(replicaId)) this.#platform.changeFleet({ kind: 'drain-replica', replicaId }, because)
    for (const replicaId of before) {
      if (names.has(replicaId) || !this.#isOnlyDrained(replicaId)) continue
      this.#platform.changeFleet({ kind: 'undrain-replica', replicaId }, because)
    }
  }

  /** A replica that is on its way out is drained, too, and stays so. */
  #isOnlyDrained(replicaId: string): boolean {
    const { policies, fleetChanges } = this.#platform
    return policies.health.kindOf(replicaId) === 'draining' && !fleetChanges.isLeaving(replicaId)
  }
}

const drainedIn = (entries: readonly RegistryEntry[]): ReadonlySet<string> =>
  new Set(entries.flatMap(({ kind, name }) => (kind === 'drain' ? [name] : [])))
