import type {
  HistoryAsk,
  RegistryChange,
  RegistryState,
  RegistryStore,
  RegistryWrite,
} from '../../src/domain/registry.ts'
import { DatabaseUnavailable } from '../../src/store/database.ts'
import { MemoryRegistryStore } from '../../src/store/memory-registry-store.ts'

/** A registry's store that goes away and comes back as the test says; what was written stays, until `lose`. */
export class LeavingStore implements RegistryStore {
  #inner = new MemoryRegistryStore()
  isAway = false
  isReadOnly = false
  /** Asked while it was away. */
  failureCount = 0

  /** The store comes back empty. */
  lose(): void {
    this.#inner = new MemoryRegistryStore()
  }

  load(): Promise<RegistryState> {
    return this.#ask(() => this.#inner.load())
  }

  revision(): Promise<number> {
    return this.#ask(() => this.#inner.revision())
  }

  async write(write: RegistryWrite): Promise<number | 'stale' | 'deposed'> {
    if (this.isReadOnly) throw new DatabaseUnavailable('the database is read-only')
    return this.#ask(() => this.#inner.write(write))
  }

  history(ask: HistoryAsk): Promise<readonly RegistryChange[]> {
    return this.#ask(() => this.#inner.history(ask))
  }

  async #ask<T>(work: () => Promise<T>): Promise<T> {
    if (!this.isAway) return work()
    this.failureCount++
    throw new DatabaseUnavailable('the database is away')
  }
}
