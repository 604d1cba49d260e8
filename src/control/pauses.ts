import type { RegistryBody, RegistryEdit, RegistryEntry } from '../domain/registry.ts'
import { changePause } from '../lifecycle/change-terms.ts'
import type { Platform } from '../lifecycle/platform.ts'
import type { WantedOwner } from './wanted.ts'

/**
 * Tenants that administrators have paused: entries of the registry, so that a pause holds at every gateway and after a
 * restart, until it is ended. A pause outlives its tenant: a tenant that is removed and made again is paused still.
 */
export class Pauses {
  readonly #owner: WantedOwner
  readonly #platform: Platform
  #entries: ReadonlyMap<string, string>

  constructor(owner: WantedOwner, platform: Platform) {
    this.#owner = owner
    this.#platform = platform
    this.#entries = pausedIn(owner.current.entries)
    owner.onChange(({ entries }) => this.#follow(pausedIn(entries)))
  }

  /** Edits that write the pause; empty when the registry says so already. */
  editsFor(tenantId: string, isPaused: boolean, because: string): readonly RegistryEdit[] {
    const isKept = pausedIn(this.#owner.current.entries).has(tenantId)
    if (isKept === isPaused) return []
    return [{ kind: 'pause', name: tenantId, body: isPaused ? { because } : undefined }]
  }

  /** Compares entries, not what is in force: a pause that could not be written stays until it is ended. */
  #follow(entries: ReadonlyMap<string, string>): void {
    const before = this.#entries
    this.#entries = entries
    for (const [tenantId, because] of entries)
      if (!before.has(tenantId)) changePause(this.#platform, tenantId, true, { by: 'registry', because })
    for (const tenantId of before.keys())
      if (!entries.has(tenantId)) changePause(this.#platform, tenantId, false, ENDED)
  }
}

const ENDED = { by: 'registry', because: 'an administrator ended the pause' }

const pausedIn = (entries: readonly RegistryEntry[]): ReadonlyMap<string, string> =>
  new Map(entries.filter(({ kind }) => kind === 'pause').map(({ name, body }) => [name, becauseIn(body)]))

const becauseIn = ({ because }: RegistryBody): string => (typeof because === 'string' ? because : '')
