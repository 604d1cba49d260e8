import type { AuditCopyStore, CopiedEvent } from '../domain/audit-copy.ts'
import { sealIdOf } from './seals.ts'

/**
 * Copies the chain into the database, to search in: read, write, acknowledge. While the database is away nothing more is
 * read; what waits is on the disk, and nothing else waits.
 */
export interface CopierReader {
  readonly waiting: number
  read(recordsMax: number): Promise<readonly { readonly seq: number; readonly text: string }[]>
  acknowledge(seq: number): Promise<void>
  close(): Promise<void>
}

export interface AuditCopierOptions {
  readonly origin: string
  readonly reader: CopierReader
  readonly store: Pick<AuditCopyStore, 'write'>
  readonly later: (ms: number, run: () => void) => () => void
  readonly complain: (problem: string) => void
}

export interface CopierView {
  readonly copied: number
  readonly waiting: number
  readonly isStoreAway: boolean
}

const BATCH_EVENTS = 1_000
const GATHER_MS = 500
const PAUSE_MS = 2_000

export class AuditCopier {
  readonly #options: AuditCopierOptions
  #batch: readonly { readonly seq: number; readonly text: string }[] = []
  #copying: Promise<void> | undefined
  #cancel: (() => void) | undefined
  #copied = 0
  #isStoreAway = false
  #isClosed = false

  constructor(options: AuditCopierOptions) {
    this.#options = options
  }

  start(): void {
    this.#next(GATHER_MS)
  }

  view(): CopierView {
    return { copied: this.#copied, waiting: this.#options.reader.waiting, isStoreAway: this.#isStoreAway }
  }

  /** Copies all that is committed; false when the store did not take it. */
  async catchUp(): Promise<boolean> {
    for (;;) {
      await this.#copyOnce()
      if (this.#isStoreAway) return false
      if (this.#options.reader.waiting === 0) return true
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancel?.()
    await this.catchUp()
    await this.#options.reader.close()
  }

  #next(ms: number): void {
    if (this.#isClosed) return
    this.#cancel = this.#options.later(ms, () => {
      void this.#copyOnce().then(() => {
        const isBehind = this.#options.reader.waiting >= BATCH_EVENTS
        this.#next(this.#isStoreAway ? PAUSE_MS : isBehind ? 0 : GATHER_MS)
      })
    })
  }

  /** One at a time; never rejects. */
  #copyOnce(): Promise<void> {
    this.#copying ??= this.#work()
      .catch((error: unknown) => {
        const why = error instanceof Error ? error.message : String(error)
        if (!this.#isStoreAway) this.#options.complain(`audit: the database has no new copies: ${why}`)
        this.#isStoreAway = true
      })
      .finally(() => {
        this.#copying = undefined
      })
    return this.#copying
  }

  async #work(): Promise<void> {
    const { reader, store, origin } = this.#options
    if (this.#batch.length === 0) this.#batch = await reader.read(BATCH_EVENTS)
    if (this.#batch.length > 0) {
      await store.write(this.#batch.flatMap(({ seq, text }) => copyOf(origin, seq, text) ?? []))
      await reader.acknowledge(this.#batch.at(-1)?.seq ?? 0)
      this.#copied += this.#batch.length
      this.#batch = []
    }
    this.#isStoreAway = false
  }
}

/** Undefined for a line that is none: the chain has it, and verifying tells. */
function copyOf(origin: string, seq: number, line: string): CopiedEvent | undefined {
  let event: Line
  try {
    event = JSON.parse(line) as Line
  } catch {
    return undefined
  }
  const { at, kind, org, tenant, request, actor, user, key } = event
  const sealed = [actor.kind === 'key' ? actor.name : undefined, user, key]
  const seals = sealed.flatMap((name) => (name === undefined ? [] : [sealIdOf(name)]))
  return { origin, seq, atMs: at, kind, org, tenant, request, seals, line }
}

interface Line {
  readonly at: number
  readonly kind: string
  readonly actor: { readonly kind: string; readonly name: string }
  readonly org?: string
  readonly tenant?: string
  readonly request?: string
  readonly user?: string
  readonly key?: string
}
