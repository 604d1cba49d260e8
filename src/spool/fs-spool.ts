import { constants, promises as fs } from 'node:fs'
import { join } from 'node:path'
import { listSegments, type SpoolSegment, segmentPath, walkSegment } from './fs-segment.ts'
import { encodeHead, encodeRecords, FRAME_BYTES, NO_CHAIN, RECORD_BYTES_MAX } from './spool-frame.ts'

/**
 * The spool: one process' append-only file of what must not be lost. Money is settled from it, and the audit is proved
 * by it.
 *
 *   append ─▶ waiting ─▶ one write and one fdatasync for many (group commit) ─▶ readers, each with a cursor of its own
 *
 * `append` costs a push and returns; nobody waits for the disk, except who asks `committed`. A commit begins 10 ms after
 * the first record that waits, or with the 256th, and one runs at a time. So kill −9 loses at most one group commit and
 * the turn of the event loop that it falls into; both are measured (`view`).
 *
 * A segment ends at 64 MB or after an hour. It is removed when every reader has acknowledged all of it and it is past
 * its retention. What waits in memory and what lies on the disk are bounded: a full spool takes nothing more, and says
 * so, until there is room again.
 */
export interface SpoolOptions {
  readonly folder: string
  /** Microseconds since the epoch. */
  readonly now: () => number
  /** Calls back once, later. */
  readonly later: (ms: number, run: () => void) => () => void
  readonly complain: (problem: string) => void
  readonly bytesMax?: number
  readonly retentionMs?: number
  /** Gets the frames of every commit, from the record with this number on: for who makes a tree of their hashes. */
  readonly onFrames?: (first: number, frames: Buffer) => void
}

export const SPOOL_DEFAULTS = {
  commitMs: 10,
  commitRecords: 256,
  segmentBytesMax: 67_108_864,
  segmentMsMax: 3_600_000,
  waitingBytesMax: 16_777_216,
  bytesMax: 4_294_967_296,
  /** Time before a disk that failed is tried again. */
  pauseMs: 1_000,
} as const

export interface SpoolView {
  /** Number of the last record that was taken, and of the last that is on the disk. */
  readonly last: number
  readonly committed: number
  readonly waitingBytes: number
  readonly diskBytes: number
  readonly commits: number
  /** Records that a full spool did not take. */
  readonly refused: number
  /** The longest time from a record's first wait to its commit, in microseconds: what a crash may have lost. */
  readonly commitUsMax: number
  /** Bytes of a torn tail, cut when the spool was opened. */
  readonly tornBytes: number
  readonly isInTrouble: boolean
}

export class FsSpool {
  readonly #options: SpoolOptions
  #file: fs.FileHandle | undefined
  #segments: SpoolSegment[]
  #segmentBytes = 0
  #segmentAt = 0
  #diskBytes: number
  /** Chain and number at the end of what is written. */
  #chain: Buffer
  #committed: number
  #last: number
  #waiting: string[] = []
  #waitingBytes = 0
  #waitingSince = 0
  #committing: Promise<void> | undefined
  #cancelTimer: (() => void) | undefined
  #askers: { readonly seq: number; readonly done: (isCommitted: boolean) => void }[] = []
  #listeners: (() => void)[] = []
  #commits = 0
  #refused = 0
  #commitUsMax = 0
  #isInTrouble = false
  #isClosed = false
  readonly #tornBytes: number

  /** Opens the folder: a torn tail is cut, and told. */
  static async open(options: SpoolOptions): Promise<FsSpool> {
    await fs.mkdir(options.folder, { recursive: true, mode: 0o700 })
    const segments = await listSegments(options.folder)
    let tornBytes = 0
    let at: { readonly next: number; readonly chain: Buffer } = { next: 1, chain: NO_CHAIN }
    for (let newest = segments.at(-1); newest !== undefined; newest = segments.at(-1)) {
      const walked = await walkSegment(newest.path)
      if (walked === undefined || (walked.next === newest.first && walked.head.first === newest.first)) {
        // It was begun and nothing was committed to it; the segment before says where the chain goes on.
        if (walked !== undefined) at = walked
        else tornBytes += (await fs.stat(newest.path)).size
        await fs.unlink(newest.path)
        segments.pop()
        if (walked === undefined) continue
        break
      }
      at = walked
      if (walked.tornBytes > 0) {
        tornBytes += walked.tornBytes
        await fs.truncate(newest.path, walked.bytes)
      }
      break
    }
    let diskBytes = 0
    for (const { path } of segments) diskBytes += (await fs.stat(path)).size
    if (tornBytes > 0) {
      options.complain(`the spool ${options.folder} ended within a record: ${tornBytes} bytes after it were cut off`)
    }
    return new FsSpool(options, { segments, diskBytes, tornBytes, ...at })
  }

  private constructor(
    options: SpoolOptions,
    found: { segments: SpoolSegment[]; diskBytes: number; tornBytes: number; next: number; chain: Buffer },
  ) {
    this.#options = options
    this.#segments = found.segments
    this.#diskBytes = found.diskBytes
    this.#tornBytes = found.tornBytes
    this.#chain = found.chain
    this.#last = found.next - 1
    this.#committed = found.next - 1
  }

  get folder(): string {
    return this.#options.folder
  }

  get committedSeq(): number {
    return this.#committed
  }

  /** Number of the last record that was taken. */
  get lastSeq(): number {
    return this.#last
  }

  /** Whether a record of this length would be refused now. */
  isFullFor(length: number): boolean {
    const size = length + FRAME_BYTES
    return (
      this.#waitingBytes + size > SPOOL_DEFAULTS.waitingBytesMax ||
      this.#diskBytes + this.#waitingBytes + size > (this.#options.bytesMax ?? SPOOL_DEFAULTS.bytesMax)
    )
  }

  /** The number of the record; undefined when the spool is full, and the record is not kept. */
  append(text: string): number | undefined {
    const size = text.length + FRAME_BYTES
    if (this.#isClosed || text.length > RECORD_BYTES_MAX / 3 || this.isFullFor(text.length)) {
      this.#refused++
      return undefined
    }
    if (this.#waiting.length === 0) this.#waitingSince = this.#options.now()
    this.#waiting.push(text)
    this.#waitingBytes += size
    if (this.#waiting.length >= SPOOL_DEFAULTS.commitRecords && !this.#isInTrouble) this.#commitSoon(0)
    else if (this.#cancelTimer === undefined) this.#commitSoon(SPOOL_DEFAULTS.commitMs)
    return ++this.#last
  }

  /** True when the record is on the disk; false when the spool was closed before it was. */
  committed(seq: number): Promise<boolean> {
    if (seq <= this.#committed || this.#isClosed) return Promise.resolve(seq <= this.#committed)
    return new Promise((done) => this.#askers.push({ seq, done }))
  }

  /** Called after each commit. */
  onCommitted(listener: () => void): void {
    this.#listeners.push(listener)
  }

  segments(): readonly SpoolSegment[] {
    return this.#segments
  }

  view(): SpoolView {
    return {
      last: this.#last,
      committed: this.#committed,
      waitingBytes: this.#waitingBytes,
      diskBytes: this.#diskBytes,
      commits: this.#commits,
      refused: this.#refused,
      commitUsMax: this.#commitUsMax,
      tornBytes: this.#tornBytes,
      isInTrouble: this.#isInTrouble,
    }
  }

  /** Removes whole segments that every reader is through with and that are past their retention. */
  async trim(acknowledged: number): Promise<void> {
    const keepAfterMs = this.#options.now() / 1_000 - (this.#options.retentionMs ?? 0)
    for (;;) {
      const [oldest, second] = this.#segments
      if (oldest === undefined || second === undefined || second.first > acknowledged + 1) return
      const { size, mtimeMs } = await fs.stat(oldest.path)
      if (mtimeMs > keepAfterMs) return
      await fs.unlink(oldest.path)
      this.#segments.shift()
      this.#diskBytes -= size
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelTimer?.()
    while (this.#waiting.length > 0 && !this.#isInTrouble) await this.#commit()
    await this.#committing
    await this.#file?.close()
    this.#file = undefined
    for (const asker of this.#askers.splice(0)) asker.done(false)
  }

  #commitSoon(ms: number): void {
    if (this.#committing !== undefined) return
    this.#cancelTimer?.()
    this.#cancelTimer = this.#options.later(ms, () => {
      this.#cancelTimer = undefined
      void this.#commit()
    })
  }

  #commit(): Promise<void> {
    this.#committing ??= this.#commitWaiting().finally(() => {
      this.#committing = undefined
      if (this.#waiting.length === 0 || this.#isClosed) return
      if (this.#isInTrouble) this.#commitSoon(SPOOL_DEFAULTS.pauseMs)
      else this.#commitSoon(this.#waiting.length >= SPOOL_DEFAULTS.commitRecords ? 0 : SPOOL_DEFAULTS.commitMs)
    })
    return this.#committing
  }

  async #commitWaiting(): Promise<void> {
    const texts = this.#waiting
    const waitedSince = this.#waitingSince
    this.#waiting = []
    this.#waitingSince = this.#options.now()
    const { bytes, chain } = encodeRecords(this.#chain, texts)
    try {
      await this.#write(bytes)
    } catch (error) {
      // The records wait on, in their order; a partly written batch is cut off before the next try.
      this.#waiting = [...texts, ...this.#waiting]
      this.#waitingSince = waitedSince
      await this.#giveUpFile()
      if (!this.#isInTrouble) {
        const { code, message } = error as NodeJS.ErrnoException
        this.#options.complain(`the spool ${this.folder} cannot be written: ${code ?? message}. It is tried again.`)
      }
      this.#isInTrouble = true
      return
    }
    this.#isInTrouble = false
    this.#chain = chain
    const first = this.#committed + 1
    this.#committed += texts.length
    this.#options.onFrames?.(first, bytes)
    for (const text of texts) this.#waitingBytes -= text.length + FRAME_BYTES
    this.#commits++
    this.#commitUsMax = Math.max(this.#commitUsMax, this.#options.now() - waitedSince)
    this.#tell()
  }

  async #write(bytes: Buffer): Promise<void> {
    const ageMs = (this.#options.now() - this.#segmentAt) / 1_000
    const isFull =
      this.#segmentBytes + bytes.length > SPOOL_DEFAULTS.segmentBytesMax || ageMs > SPOOL_DEFAULTS.segmentMsMax
    if (this.#file === undefined || isFull) await this.#beginSegment()
    const file = this.#file as unknown as fs.FileHandle
    await file.write(bytes, 0, bytes.length, this.#segmentBytes)
    this.#segmentBytes += bytes.length
    this.#diskBytes += bytes.length
  }

  async #beginSegment(): Promise<void> {
    await this.#file?.close()
    this.#file = undefined
    const first = this.#committed + 1
    const path = segmentPath(this.folder, first)
    const head = encodeHead({ first, chain: this.#chain })
    // Tenants and times of a whole business are in it: for this user only.
    const file = await fs.open(path, NEW_AND_SYNCED, 0o600)
    try {
      await file.write(head, 0, head.length, 0)
      await file.sync()
      await syncFolder(this.folder)
    } catch (error) {
      await file.close()
      throw error
    }
    this.#file = file
    if (this.#segments.at(-1)?.path !== path) this.#segments.push({ path, first })
    this.#segmentBytes = head.length
    this.#segmentAt = this.#options.now()
    this.#diskBytes += head.length
  }

  async #giveUpFile(): Promise<void> {
    const file = this.#file
    this.#file = undefined
    if (file === undefined) return
    await file.truncate(this.#segmentBytes).catch(() => {})
    await file.close().catch(() => {})
  }

  #tell(): void {
    const isDone = ({ seq }: { seq: number }): boolean => seq <= this.#committed
    const done = this.#askers.filter(isDone)
    if (done.length > 0) {
      this.#askers = this.#askers.filter((asker) => !isDone(asker))
      for (const asker of done) asker.done(true)
    }
    for (const listener of this.#listeners) listener()
  }
}

/** Every write is on the disk when it returns, as with an `fdatasync` after it; one way into the thread pool, not two. */
const NEW_AND_SYNCED = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_DSYNC

/** A new file's name lasts only when its folder has been written too. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await fs.open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

export const cursorPath = (folder: string, reader: string): string => join(folder, `${reader}.cursor`)
