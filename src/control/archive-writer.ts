import { type Clock, type Instant, secondsToUs } from '../base/clock.ts'
import { type ArchivedAnswer, ArchiveUnavailable, archivedBytes, type NotArchived } from '../domain/archive.ts'

/**
 * The queue of answers on their way into the archive, a line for each tenant. A line is written in batches, one at a
 * time and in order; whose batch comes first is the store's business (`assembly/laned-database.ts`).
 *
 * When the store is away, a batch is tried again until its answers have waited for `PATIENCE_US`; then they are lost, and
 * told. Meanwhile nothing new is taken, so that new answers can say that they are not stored. Answers, bytes and patience
 * are bounded, also for one tenant, which cannot take the places of the others.
 */
export interface ArchiveWriterParts {
  readonly clock: Clock
  /** Writes a batch of one tenant, all or nothing, or says why not; rejects when the store fails. */
  readonly write: (tenantId: string, answers: readonly ArchivedAnswer[]) => Promise<'kept' | NotArchived>
  readonly onEnd: (outcome: 'kept' | NotArchived, count: number) => void
  readonly onFailure: (error: unknown) => void
  /** Whether the failure is the answer's own, so that trying again does not help. */
  readonly isHopeless: (error: unknown) => boolean
}

/** Answers and bytes that wait at most, of all tenants and of one. */
export const WAITING = { answersMax: 2_048, bytesMax: 64 * 1024 * 1024 } as const
export const WAITING_OF_TENANT = { answersMax: 256, bytesMax: 16 * 1024 * 1024 } as const

/** Answers and bytes of one statement: small enough for other tenants to get their turn soon. */
const BATCH_ANSWERS_MAX = 32
const BATCH_BYTES_MAX = 1024 * 1024

const PATIENCE_US = secondsToUs(30)
const RETRY_US = secondsToUs(2)

interface Waiting {
  readonly answer: ArchivedAnswer
  readonly bytes: number
  readonly since: Instant
}

interface Line {
  readonly tenantId: string
  waiting: Waiting[]
  bytes: number
  /** Answers that were taken, and that have ended: written or lost. */
  takenCount: number
  endedCount: number
  watchers: Watcher[]
  running: Promise<void> | undefined
}

interface Watcher {
  readonly upTo: number
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

export class ArchiveWriter {
  readonly #parts: ArchiveWriterParts
  readonly #lines = new Map<string, Line>()
  #count = 0
  #bytes = 0
  #awayUntil: Instant | undefined
  #isClosed = false
  /** Lines that wait for another try. */
  readonly #pauses = new Set<() => void>()

  constructor(parts: ArchiveWriterParts) {
    this.#parts = parts
  }

  /** Answers that wait or are being written. */
  get count(): number {
    return this.#count
  }

  get isAway(): boolean {
    return this.#awayUntil !== undefined && this.#awayUntil > this.#parts.clock.now()
  }

  /** Why nothing of this tenant is taken now; undefined when it is. */
  whyNot(tenantId: string, bytes: number): 'queue-full' | 'store-away' | undefined {
    if (this.isAway || this.#isClosed) return 'store-away'
    return this.#isFull(tenantId, bytes) ? 'queue-full' : undefined
  }

  /** An answer that was promised while the store was there is taken also when the store has gone away since. */
  take(answer: ArchivedAnswer): void {
    const { tenantId } = answer
    const bytes = archivedBytes(answer)
    if (this.#isClosed || this.#isFull(tenantId, bytes)) {
      this.#parts.onEnd(this.#isClosed ? 'store-away' : 'queue-full', 1)
      return
    }
    const line = this.#lines.get(tenantId) ?? makeLine(tenantId)
    this.#lines.set(tenantId, line)
    line.waiting.push({ answer, bytes, since: this.#parts.clock.now() })
    line.takenCount++
    this.#add(line, 1, bytes)
    line.running ??= this.#run(line)
  }

  /** Resolves when the tenant's answers that were taken until now have ended; rejects when the store is away. */
  async written(tenantId: string): Promise<void> {
    const line = this.#lines.get(tenantId)
    if (line === undefined) return
    if (this.isAway) throw new ArchiveUnavailable(AWAY)
    await new Promise<void>((resolve, reject) => {
      line.watchers.push({ upTo: line.takenCount, resolve, reject })
    })
  }

  /** Drops what waits of a tenant, but not the batch that is being written. */
  drop(tenantId: string, why: NotArchived): void {
    const line = this.#lines.get(tenantId)
    if (line !== undefined) this.#end(line, line.waiting.splice(0), why)
  }

  /** Writes what waits, for `untilUs` at most; the rest is lost. */
  async close(untilUs: number): Promise<void> {
    const { clock } = this.#parts
    this.#isClosed = true
    const running = [...this.#lines.values()].map((line) => line.running ?? Promise.resolve())
    const cancel = clock.at(clock.now() + untilUs, () => this.#giveUp())
    for (const wake of this.#pauses) wake()
    await Promise.all(running)
    cancel()
  }

  #isFull(tenantId: string, bytes: number): boolean {
    const line = this.#lines.get(tenantId)
    return (
      this.#count >= WAITING.answersMax ||
      this.#bytes + bytes > WAITING.bytesMax ||
      (line?.waiting.length ?? 0) >= WAITING_OF_TENANT.answersMax ||
      (line?.bytes ?? 0) + bytes > WAITING_OF_TENANT.bytesMax
    )
  }

  #giveUp(): void {
    for (const line of this.#lines.values()) this.#end(line, line.waiting.splice(0), 'store-away')
    for (const wake of this.#pauses) wake()
  }

  async #run(line: Line): Promise<void> {
    let batchMax = BATCH_ANSWERS_MAX
    while (line.waiting.length > 0) {
      const batch = batchOf(line.waiting, batchMax)
      line.waiting.splice(0, batch.length)
      try {
        this.#end(line, batch, await this.#parts.write(line.tenantId, newestOf(batch)))
        this.#awayUntil = undefined
        batchMax = BATCH_ANSWERS_MAX
      } catch (error) {
        batchMax = await this.#afterFailure(line, batch, error)
      }
    }
    line.running = undefined
    if (line.waiting.length === 0) this.#lines.delete(line.tenantId)
  }

  /** Answers how many to write together next. */
  async #afterFailure(line: Line, batch: readonly Waiting[], error: unknown): Promise<number> {
    const { clock, onFailure, isHopeless } = this.#parts
    onFailure(error)
    if (isHopeless(error)) {
      // One of them is at fault: the others are written without it.
      if (batch.length === 1) this.#end(line, batch, 'store-away')
      else line.waiting.unshift(...batch)
      return 1
    }
    const now = clock.now()
    this.#awayUntil = now + RETRY_US
    const patient = batch.filter(({ since }) => now - since < PATIENCE_US)
    this.#end(
      line,
      batch.filter((one) => !patient.includes(one)),
      'store-away',
    )
    line.waiting.unshift(...patient)
    for (const { reject } of line.watchers.splice(0)) reject(new ArchiveUnavailable(AWAY))
    if (patient.length > 0) await this.#pause()
    return BATCH_ANSWERS_MAX
  }

  /** Until it is time to try again, or the process ends. */
  #pause(): Promise<void> {
    const { clock } = this.#parts
    return new Promise((resolve) => {
      const done = (): void => {
        cancel()
        this.#pauses.delete(done)
        resolve()
      }
      const cancel = clock.at(clock.now() + RETRY_US, done)
      this.#pauses.add(done)
    })
  }

  #end(line: Line, ended: readonly Waiting[], outcome: 'kept' | NotArchived): void {
    if (ended.length === 0) return
    line.endedCount += ended.length
    this.#add(line, -ended.length, -ended.reduce((sum, { bytes }) => sum + bytes, 0))
    this.#parts.onEnd(outcome, ended.length)
    const isOver = ({ upTo }: Watcher): boolean => upTo <= line.endedCount
    for (const { resolve } of line.watchers.filter(isOver)) resolve()
    line.watchers = line.watchers.filter((watcher) => !isOver(watcher))
  }

  #add(line: Line, count: number, bytes: number): void {
    this.#count += count
    this.#bytes += bytes
    line.bytes += bytes
  }
}

const AWAY = 'The store of answers is away.'

const makeLine = (tenantId: string): Line => ({
  tenantId,
  waiting: [],
  bytes: 0,
  takenCount: 0,
  endedCount: 0,
  watchers: [],
  running: undefined,
})

/** The first answer always, and more while they are small. */
function batchOf(waiting: readonly Waiting[], answersMax: number): readonly Waiting[] {
  let bytes = 0
  const end = waiting.findIndex((one, n) => {
    bytes += one.bytes
    return n > 0 && (n >= answersMax || bytes > BATCH_BYTES_MAX)
  })
  return end === -1 ? waiting.slice() : waiting.slice(0, end)
}

/** Of several answers with one id the newest counts: one statement cannot write a row twice. */
function newestOf(batch: readonly Waiting[]): readonly ArchivedAnswer[] {
  return [...new Map(batch.map(({ answer }) => [answer.id, answer])).values()]
}
