import { promises as fs } from 'node:fs'
import type { SpoolSegment } from './fs-segment.ts'
import { cursorPath } from './fs-spool.ts'
import { decodeHead, decodeRecord, RECORD_BYTES_MAX } from './spool-frame.ts'

/**
 * One reader of a spool. It reads committed records in their order, and acknowledges those whose effect is durable
 * elsewhere; after a restart it begins behind the last acknowledged one. A record is therefore read at least once:
 * what a reader does with it must be the same when it is done twice.
 */
export interface SpoolSource {
  readonly folder: string
  readonly committedSeq: number
  segments(): readonly SpoolSegment[]
}

export interface SpoolRecord {
  readonly seq: number
  readonly text: string
}

/** More than the largest record with its frame. */
const READ_BYTES = RECORD_BYTES_MAX + 65_536

interface Place {
  readonly segment: SpoolSegment
  readonly file: fs.FileHandle
  at: number
  /** Number of the record that lies there. */
  next: number
}

export class FsSpoolReader {
  readonly #source: SpoolSource
  readonly #name: string
  readonly #complain: (problem: string) => void
  #acknowledged: number
  /** Number of the last record that was read. */
  #position: number
  /** Where the next record of the open segment lies. */
  #place: Place | undefined

  static async open(source: SpoolSource, name: string, complain: (problem: string) => void): Promise<FsSpoolReader> {
    const text = await fs.readFile(cursorPath(source.folder, name), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return '0'
      throw error
    })
    const acknowledged = Number(text)
    if (Number.isSafeInteger(acknowledged) && acknowledged >= 0) {
      return new FsSpoolReader(source, name, complain, Math.min(acknowledged, source.committedSeq))
    }
    complain(`the cursor ${cursorPath(source.folder, name)} is no number: everything in the spool is read again`)
    return new FsSpoolReader(source, name, complain, 0)
  }

  private constructor(source: SpoolSource, name: string, complain: (problem: string) => void, acknowledged: number) {
    this.#source = source
    this.#name = name
    this.#complain = complain
    this.#acknowledged = acknowledged
    this.#position = acknowledged
  }

  get acknowledgedSeq(): number {
    return this.#acknowledged
  }

  /** Records that are committed and not yet read. */
  get waiting(): number {
    return this.#source.committedSeq - this.#position
  }

  /** The next records, in order; none when all that is committed has been read. */
  async read(recordsMax: number): Promise<readonly SpoolRecord[]> {
    const records: SpoolRecord[] = []
    while (records.length < recordsMax && this.#position < this.#source.committedSeq) {
      const place = this.#place ?? (await this.#openSegment())
      if (place === undefined) break
      if (await this.#readFrom(place, records, recordsMax)) continue
      const following = this.#source.segments().find(({ first }) => first > place.segment.first)
      if (following === undefined) break
      await this.#closeSegment()
      this.#skipTo(following.first, place.segment)
    }
    return records
  }

  /** Everything up to this record is durable elsewhere. */
  async acknowledge(seq: number): Promise<void> {
    if (seq <= this.#acknowledged) return
    this.#acknowledged = seq
    const path = cursorPath(this.#source.folder, this.#name)
    await fs.writeFile(`${path}.new`, String(seq), { mode: 0o600 })
    await fs.rename(`${path}.new`, path)
  }

  async close(): Promise<void> {
    await this.#closeSegment()
  }

  /** A segment that ends before the next one begins was damaged: what was in between is lost, and told. */
  #skipTo(first: number, { path }: SpoolSegment): void {
    const lost = first - 1 - this.#position
    if (lost <= 0) return
    this.#complain(`the segment ${path} is damaged: ${lost} records of it cannot be read`)
    this.#position = first - 1
  }

  /** The segment with the record after the position: the last one that begins at or before it. */
  async #openSegment(): Promise<Place | undefined> {
    const segments = this.#source.segments()
    const wanted = this.#position + 1
    let segment = segments[0]
    for (const one of segments) if (one.first <= wanted) segment = one
    if (segment === undefined) return undefined
    const file = await fs.open(segment.path, 'r')
    const decoded = decodeHead(await readAt(file, 0))
    if (decoded === undefined) {
      await file.close()
      this.#complain(`the segment ${segment.path} does not begin as one: its records are not read`)
      return undefined
    }
    // Records before this segment were removed when they were acknowledged.
    if (segment.first > wanted) this.#position = segment.first - 1
    this.#place = { segment, file, at: decoded.bytes, next: segment.first }
    return this.#place
  }

  /** Whether there was anything to read. */
  async #readFrom(place: Place, records: SpoolRecord[], recordsMax: number): Promise<boolean> {
    const bytes = await readAt(place.file, place.at)
    let at = 0
    while (records.length < recordsMax && place.next <= this.#source.committedSeq) {
      const record = decodeRecord(bytes, at)
      if (typeof record === 'string') break
      at += record.bytes
      const seq = place.next++
      if (seq <= this.#position) continue
      this.#position = seq
      records.push({ seq, text: record.text })
    }
    place.at += at
    return at > 0
  }

  async #closeSegment(): Promise<void> {
    const place = this.#place
    this.#place = undefined
    await place?.file.close()
  }
}

async function readAt(file: fs.FileHandle, at: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(READ_BYTES)
  const { bytesRead } = await file.read(buffer, 0, READ_BYTES, at)
  return buffer.subarray(0, bytesRead)
}
