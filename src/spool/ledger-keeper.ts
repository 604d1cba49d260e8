import type { CancelTimer, Clock } from '../base/clock.ts'
import type { Settlement } from '../domain/ledger.ts'
import type { LedgerStore } from '../lifecycle/ledger-ports.ts'
import { LedgerLines } from '../policy/money/ledger-lines.ts'
import { readRecord } from '../policy/money/spooled-record.ts'

/**
 * The ledger's reader of a spool: records become lines, lines are written to the ledger, and only then are the records
 * acknowledged. So a line that was written is never lost, and one that is written again counts once.
 *
 *   read ≤ 6,000 ─▶ lines ─▶ write (again until the store takes them) ─▶ acknowledge ─▶ remove old segments
 *
 * While the store is away nothing more is read: what waits is on the disk, not in memory.
 */
export interface LedgerKeeperOptions {
  readonly clock: Clock
  readonly reader: SpoolReader
  readonly store: LedgerStore
  /** Removes segments whose records are acknowledged up to here. */
  readonly trim: (acknowledged: number) => Promise<void>
  readonly complain: (problem: string) => void
  /** Lines that the ledger has now. */
  readonly onWritten?: (lines: readonly Settlement[]) => void
}

export interface SpoolReader {
  readonly acknowledgedSeq: number
  readonly waiting: number
  read(recordsMax: number): Promise<readonly { readonly seq: number; readonly text: string }[]>
  acknowledge(seq: number): Promise<void>
  close(): Promise<void>
}

export interface LedgerKeeperView {
  readonly written: number
  /** Records that are on the disk and not yet read. */
  readonly waiting: number
  readonly openTickets: number
  readonly isStoreAway: boolean
}

export const LEDGER_KEEPER_DEFAULTS = {
  /** A ticket has three: lines come two thousand to a statement, of which the database takes the most in its time. */
  batchRecords: 6_000,
  /** Lines are gathered for this long: a statement costs as much as the work of a hundred lines. */
  gatherUs: 250_000,
  pauseUs: 1_000_000,
} as const

export class LedgerKeeper {
  readonly #options: LedgerKeeperOptions
  readonly #lines = new LedgerLines()
  #waiting: Settlement[] = []
  #running: Promise<void> | undefined
  #reading: Promise<void> | undefined
  #cancelTimer: CancelTimer | undefined
  #written = 0
  #isStoreAway = false
  #isClosed = false

  constructor(options: LedgerKeeperOptions) {
    this.#options = options
  }

  start(): void {
    this.#next(LEDGER_KEEPER_DEFAULTS.gatherUs)
  }

  /** Writes everything that is committed; false when the store did not take it all. */
  async catchUp(): Promise<boolean> {
    const { reader } = this.#options
    for (;;) {
      const before = reader.waiting
      await this.#turn()
      if (reader.waiting === 0 && !this.#isStoreAway) return true
      if (this.#isStoreAway || reader.waiting >= before) return false
    }
  }

  view(): LedgerKeeperView {
    return {
      written: this.#written,
      waiting: this.#options.reader.waiting,
      openTickets: this.#lines.openCount,
      isStoreAway: this.#isStoreAway,
    }
  }

  /** Writes what it can, and stops. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelTimer?.()
    await this.catchUp()
    await this.#options.reader.close()
  }

  #next(afterUs: number): void {
    if (this.#isClosed) return
    const { clock } = this.#options
    this.#cancelTimer = clock.at(clock.now() + afterUs, () => {
      void this.#turn().then(() => {
        const isBehind = this.#options.reader.waiting >= LEDGER_KEEPER_DEFAULTS.batchRecords
        const { gatherUs, pauseUs } = LEDGER_KEEPER_DEFAULTS
        this.#next(this.#isStoreAway ? pauseUs : isBehind ? 0 : gatherUs)
      })
    })
  }

  /** Reads the ledger while nothing is being written to it: what it has then is what `onWritten` has told. */
  async between<T>(read: () => Promise<T>): Promise<T> {
    while (this.#running !== undefined || this.#reading !== undefined) await (this.#running ?? this.#reading)
    const reading = read()
    this.#reading = reading.then(
      () => {},
      () => {},
    )
    void this.#reading.then(() => {
      this.#reading = undefined
    })
    return reading
  }

  /** One turn at a time; never rejects. */
  #turn(): Promise<void> {
    if (this.#reading !== undefined) return this.#reading.then(() => this.#turn())
    this.#running ??= this.#work()
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#running = undefined
      })
    return this.#running
  }

  async #work(): Promise<void> {
    const { clock, reader, store, trim, onWritten } = this.#options
    if (this.#waiting.length === 0) {
      const records = await reader.read(LEDGER_KEEPER_DEFAULTS.batchRecords)
      const now = clock.now()
      for (const { seq, text } of records) {
        const record = readRecord(text)
        if (record !== undefined) this.#waiting.push(...this.#lines.take(now, seq, record))
        else this.#lines.skip(seq)
      }
      this.#waiting.push(...this.#lines.overdue(now))
    }
    if (this.#waiting.length > 0) {
      this.#written += await store.write(this.#waiting)
      onWritten?.(this.#waiting)
      this.#waiting = []
    }
    this.#isStoreAway = false
    const upTo = this.#lines.acknowledgeable
    if (upTo <= reader.acknowledgedSeq) return
    await reader.acknowledge(upTo)
    await trim(upTo)
  }

  #fail(error: unknown): void {
    if (!this.#isStoreAway) {
      const why = error instanceof Error ? error.message : String(error)
      this.#options.complain(
        `The ledger cannot be written: ${why} What was used is kept on the disk, and written later.`,
      )
    }
    this.#isStoreAway = true
  }
}
