import { type CancelTimer, type Clock, secondsToUs, usToMs } from '../base/clock.ts'
import type { KeptTwin, TwinKeeper } from '../lifecycle/ports.ts'
import { readTwinMemory, type TwinMemory } from '../policy/twin/twin-memory.ts'
import type { SqlTwinStore } from '../store/sql-twin-store.ts'

/**
 * Keeps in the store what was learned of engines. Nothing waits for the store: it is read and written in the background,
 * one statement at a time. Of each replica only the newest memory waits to be written; a write that fails is made good by
 * the next `keep`, half a minute later.
 */
export interface TwinKeeperParts {
  readonly clock: Clock
  readonly store: Pick<SqlTwinStore, 'load' | 'write'>
  /** The store has been used before, so that there may be something to read. */
  readonly isInUse: boolean
  /** What is written outlives the process; else nothing is written. */
  readonly isDurable: boolean
  readonly complain: (problem: string) => void
}

/** Replicas whose memories are at hand; beyond it the one that was kept first is dropped. */
const REPLICAS_MAX = 4_096
/** Time to the next try to read. */
const RETRY_US = secondsToUs(30)
const LOADS_MAX = 20
/** Time for the last write when the process ends; a store that does not answer must not hold up the shutdown. */
const FLUSH_US_MAX = secondsToUs(5)

export class StoreTwinKeeper implements TwinKeeper {
  readonly #parts: TwinKeeperParts
  readonly #known = new Map<string, TwinMemory>()
  readonly #pending = new Map<string, KeptTwin>()
  #writing: Promise<void> | undefined
  #isClosed = false
  #hasComplained = false
  #writtenCount = 0
  #cancelRetry: CancelTimer | undefined

  constructor(parts: TwinKeeperParts) {
    this.#parts = parts
  }

  /** Reads what the last process knew, and says so when it is there. Resolves after the first try. */
  async start(onRead: () => void, loadsLeft = LOADS_MAX): Promise<void> {
    const { clock, store, isInUse } = this.#parts
    if (!isInUse || this.#isClosed) return
    try {
      const stored = await store.load()
      if (this.#isClosed) return
      for (const { replicaId, memory } of stored.toReversed()) {
        const read = readTwinMemory(memory)
        // What was learned meanwhile is newer.
        if (read !== undefined && !this.#known.has(replicaId)) this.#note(replicaId, read)
      }
      onRead()
    } catch (error) {
      this.#complain('read', error)
      if (this.#isClosed || loadsLeft <= 1) return
      this.#cancelRetry = clock.at(clock.now() + RETRY_US, () => void this.start(onRead, loadsLeft - 1))
    }
  }

  /** Memories that the store has taken, of all that were kept. */
  get writtenCount(): number {
    return this.#writtenCount
  }

  recall(replicaId: string): TwinMemory | undefined {
    return this.#known.get(replicaId)
  }

  keep(kept: readonly KeptTwin[]): void {
    for (const each of kept) {
      this.#note(each.replicaId, each.memory)
      this.#pending.delete(each.replicaId)
      this.#pending.set(each.replicaId, each)
      if (this.#pending.size > REPLICAS_MAX) this.#pending.delete(firstOf(this.#pending))
    }
    if (this.#parts.isDurable) void this.#write()
  }

  /** Writes what waits, as far as the store answers within `FLUSH_US_MAX`. */
  async close(): Promise<void> {
    const { clock, isDurable } = this.#parts
    this.#isClosed = true
    this.#cancelRetry?.()
    if (!isDurable || (this.#pending.size === 0 && this.#writing === undefined)) return
    await new Promise<void>((resolve) => {
      const cancel = clock.at(clock.now() + FLUSH_US_MAX, resolve)
      void this.#write().finally(() => {
        cancel()
        resolve()
      })
    })
  }

  #note(replicaId: string, memory: TwinMemory): void {
    this.#known.delete(replicaId)
    this.#known.set(replicaId, memory)
    if (this.#known.size > REPLICAS_MAX) this.#known.delete(firstOf(this.#known))
  }

  /** What comes during a write is written after it. */
  #write(): Promise<void> {
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined
    })
    return this.#writing
  }

  async #writeAll(): Promise<void> {
    const { clock, store } = this.#parts
    while (this.#pending.size > 0) {
      const kept = [...this.#pending.values()]
      this.#pending.clear()
      try {
        await store.write(Math.round(usToMs(clock.now())), kept)
        this.#hasComplained = false
        this.#writtenCount += kept.length
      } catch (error) {
        this.#complain('kept', error)
      }
    }
  }

  /** Once an outage. */
  #complain(what: 'read' | 'kept', error: unknown): void {
    if (this.#hasComplained) return
    this.#hasComplained = true
    const because = error instanceof Error ? error.message : String(error)
    this.#parts.complain(`what was learned of engines cannot be ${what}: ${because} It is learned again meanwhile.`)
  }
}

const firstOf = (map: ReadonlyMap<string, unknown>): string => map.keys().next().value as string
