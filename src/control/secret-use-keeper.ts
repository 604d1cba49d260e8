import { type CancelTimer, type Clock, secondsToUs, usToMs } from '../base/clock.ts'
import type { TenancyStore } from '../domain/tenancy-store.ts'
import { SecretUses } from '../policy/authority/secret-uses.ts'
import { DatabaseUnavailable } from '../store/database.ts'

/**
 * Keeps when each secret was used last. A request notes its secret in memory and goes on; the store gets the secrets of
 * the last minute in batches, one batch at a time. A process that is killed loses the uses of the last minute.
 *
 * Where no store is in use, times stay in memory: noting a use must not be what opens a database.
 *
 * Bounds: the secrets of `SecretUses`, a batch of them in one statement, and the removed secrets that wait to be deleted.
 */
export interface SecretUseParts {
  readonly clock: Clock
  readonly store: Pick<TenancyStore, 'noteUses' | 'usesOf'>
  readonly isStored: () => boolean
  readonly complain: (problem: string) => void
  readonly uses?: SecretUses
}

const WRITE_US = secondsToUs(60)
/** Secrets in one statement. */
export const USES_PER_WRITE = 1_000
/** Removed secrets whose rows are to be deleted; of more, the rows stay, which costs nothing but their place. */
const GONE_MAX = 10_000

export class SecretUseKeeper {
  readonly #parts: SecretUseParts
  readonly #uses: SecretUses
  #gone = new Set<string>()
  #writing: ReadonlyMap<string, number> = new Map()
  #current: Promise<void> | undefined
  #cancelTimer: CancelTimer | undefined
  #isClosed = false

  constructor(parts: SecretUseParts) {
    this.#parts = parts
    this.#uses = parts.uses ?? new SecretUses()
  }

  note(hash: string): void {
    const now = this.#parts.clock.now()
    this.#uses.note(hash, Math.floor(usToMs(now)))
    if (this.#cancelTimer === undefined && !this.#isClosed) {
      this.#cancelTimer = this.#parts.clock.at(now + WRITE_US, () => this.#due())
    }
  }

  /** The secret is gone: so is its last use. */
  forget(hash: string): void {
    this.#uses.forget(hash)
    if (this.#gone.size < GONE_MAX) this.#gone.add(hash)
  }

  /** Times by hash. A store that is away is left out. */
  async lastUses(hashes: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>()
    const take = (hash: string, atMs: number | undefined): void => {
      if (atMs !== undefined) found.set(hash, Math.max(atMs, found.get(hash) ?? 0))
    }
    for (const [hash, atMs] of await this.#storedUses(hashes)) take(hash, atMs)
    for (const hash of hashes) {
      take(hash, this.#writing.get(hash))
      take(hash, this.#uses.lastUse(hash))
    }
    return found
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelTimer?.()
    await this.#current
    await this.#write()
  }

  #due(): void {
    this.#cancelTimer = undefined
    this.#current ??= this.#write().finally(() => {
      this.#current = undefined
    })
  }

  async #storedUses(hashes: readonly string[]): Promise<ReadonlyMap<string, number>> {
    if (hashes.length === 0 || !this.#parts.isStored()) return new Map()
    try {
      return await this.#parts.store.usesOf(hashes)
    } catch {
      return new Map()
    }
  }

  /** Never throws: what could not be written waits for the next time. */
  async #write(): Promise<void> {
    const { store, isStored, complain } = this.#parts
    if (!isStored()) return
    const gone = this.#gone
    this.#gone = new Set()
    try {
      if (gone.size > 0) await store.noteUses({ uses: this.#writing, gone: [...gone] })
      gone.clear()
      // Uses that come meanwhile wait for the next time.
      for (let left = this.#uses.count; left > 0; left -= USES_PER_WRITE) {
        this.#writing = this.#uses.take(Math.min(left, USES_PER_WRITE))
        await store.noteUses({ uses: this.#writing, gone: [] })
      }
    } catch (error) {
      this.#uses.putBack(new Map([...this.#writing].filter(([hash]) => !this.#gone.has(hash))))
      for (const hash of gone) if (this.#gone.size < GONE_MAX) this.#gone.add(hash)
      if (!(error instanceof DatabaseUnavailable))
        complain(`tenancy: the last uses of keys were not stored: ${String(error)}`)
    } finally {
      this.#writing = new Map()
    }
  }
}
