import { hash } from 'node:crypto'
import { promises as fs } from 'node:fs'
import { listSegments, type SpoolSegment } from '../spool/fs-segment.ts'
import { decodeHead, HASH_BYTES, NO_CHAIN, RECORD_BYTES_MAX } from '../spool/spool-frame.ts'
import { lineHead } from './audit-line.ts'
import { readFrontier } from './fs-checkpoint-files.ts'
import { MerkleFrontier } from './merkle-tree.ts'
import { type AuditCheckpoint, openNote, readCheckpoint } from './signed-note.ts'

/**
 * Is a chain what it was? Walks every event of a folder, offline, and holds it against checkpoints.
 *
 * The chain alone shows an event that was changed, removed or moved. A tail that was cut and a chain that was made again
 * from some event on are seen by checkpoints that lie elsewhere. Each problem says at which event, and in which file.
 */
export interface ChainProblem {
  readonly kind:
    | 'changed'
    | 'out-of-place'
    | 'missing-events'
    | 'torn-tail'
    | 'no-segment-head'
    | 'cut-tail'
    | 're-chained'
    | 'bad-checkpoint'
    | 'no-frontier'
  /** Number of the event; the first in doubt. */
  readonly event: number
  readonly file: string
  readonly because: string
}

export interface ChainReport {
  readonly folder: string
  readonly origin: string
  /** The first and last event that are there; 0 when none is. */
  readonly first: number
  readonly last: number
  readonly segments: number
  readonly bytes: number
  /** Checkpoints that agree, and those of events that retention has removed. */
  readonly checkpointsHeld: number
  readonly checkpointsBefore: number
  readonly problems: readonly ChainProblem[]
  /** The newest file ends within an event: the process is writing, or died; the next start cuts it off and records it. */
  readonly tornTail: ChainProblem | undefined
}

export interface VerifyOptions {
  readonly folder: string
  readonly notes: readonly string[]
  readonly publicKey: Buffer
  /** Called now and then with the share that is done. */
  readonly onProgress?: (ratio: number, events: number) => void
}

/** Problems that one report lists; a chain that is wrong everywhere needs no longer list. */
const PROBLEMS_MAX = 100

export async function verifyChain(options: VerifyOptions): Promise<ChainReport> {
  const segments = await listSegments(options.folder)
  const walk = new ChainWalk(options, segments)
  await walk.begin()
  let bytes = 0
  const sizes = await Promise.all(segments.map(async ({ path }) => (await fs.stat(path)).size))
  const total = sizes.reduce((sum, size) => sum + size, 0)
  for (const [i, segment] of segments.entries()) {
    walk.segment(segment, await fs.readFile(segment.path), i === segments.length - 1)
    bytes += sizes[i] as number
    options.onProgress?.(bytes / Math.max(1, total), walk.last)
  }
  return { ...walk.finish(), segments: segments.length, bytes }
}

class ChainWalk {
  readonly #options: VerifyOptions
  readonly #segments: readonly SpoolSegment[]
  readonly #problems: ChainProblem[] = []
  #checkpoints: AuditCheckpoint[] = []
  #at = 0
  #tree: MerkleFrontier | undefined
  #chain: Buffer = NO_CHAIN
  #next = 1
  #held = 0
  #before = 0
  #heldSize = 0
  #removedUpTo = 0
  #origin = ''
  #tornTail: ChainProblem | undefined
  #isEndKnown = true

  constructor(options: VerifyOptions, segments: readonly SpoolSegment[]) {
    this.#options = options
    this.#segments = segments
  }

  get last(): number {
    return this.#next - 1
  }

  async begin(): Promise<void> {
    this.#readCheckpoints()
    const { first = 1, path = this.#options.folder } = this.#segments[0] ?? {}
    this.#next = first
    const state = first === 1 ? { size: 0, hashes: [] } : await readFrontier(this.#options.folder, first)
    if (state !== undefined) this.#tree = new MerkleFrontier(state)
    else this.#report('no-frontier', path, 'the tree before this segment is not known: checkpoints cannot be checked')
    while ((this.#checkpoints[this.#at]?.size ?? Number.POSITIVE_INFINITY) < first - 1) {
      this.#at++
      this.#before++
    }
    this.#checkTree(path)
  }

  segment({ path, first }: SpoolSegment, bytes: Buffer, isLast: boolean): void {
    const decoded = decodeHead(bytes)
    if (decoded === undefined || decoded.head.first !== first) {
      // The newest one may have been begun when the process died.
      if (isLast && bytes.length < HASH_BYTES * 8) this.#torn(path, 'its head is not whole', isLast)
      else this.#report('no-segment-head', path, 'it does not begin as a segment of this place')
      this.#tree = undefined
      return
    }
    if (first !== this.#next) {
      this.#report('missing-events', path, `events ${this.#next} to ${first - 1} are not there`)
      this.#tree = undefined
      this.#next = first
    } else if (this.#isBegun && !decoded.head.chain.equals(this.#chain)) {
      this.#report('out-of-place', path, 'it does not follow the segment before it')
      this.#tree = undefined
    }
    this.#chain = decoded.head.chain
    const isWhole = this.#records(path, bytes, decoded.bytes, isLast)
    this.#isEndKnown = isWhole || this.#tornTail !== undefined
    // What comes after an event that is wrong is no longer the tree that was signed.
    if (!isWhole && !isLast) this.#tree = undefined
  }

  finish(): Omit<ChainReport, 'segments' | 'bytes'> {
    const { folder } = this.#options
    const newest = this.#segments.at(-1)?.path ?? folder
    const beyond = this.#checkpoints.filter(({ size }) => size > this.last)
    const last = beyond.at(-1)
    // Behind an event that was changed nobody can say how many there are.
    if (last !== undefined && this.#isEndKnown) {
      const signed = new Date(last.atMs).toISOString()
      this.#report('cut-tail', newest, `the checkpoint of ${signed} has ${last.size} events, and ${this.last} are here`)
    }
    const first = this.#segments[0]?.first ?? 1
    if (first > 1 && this.#removedUpTo < first - 1) {
      const path = this.#segments[0]?.path ?? folder
      const because = `events 1 to ${first - 1} are not there, and no event says that their retention was over`
      this.#problems.push({ kind: 'missing-events', event: 1, file: path, because })
    }
    return {
      folder,
      origin: this.#origin,
      first: this.last < first ? 0 : first,
      last: this.last < first ? 0 : this.last,
      checkpointsHeld: this.#held,
      checkpointsBefore: this.#before,
      problems: this.#problems.slice(0, PROBLEMS_MAX),
      tornTail: this.#tornTail,
    }
  }

  get #isBegun(): boolean {
    return this.#next > (this.#segments[0]?.first ?? 1)
  }

  /** Whether all of them are whole. */
  #records(path: string, bytes: Buffer, from: number, isLast: boolean): boolean {
    let at = from
    while (at < bytes.length) {
      const length = at + 4 <= bytes.length ? bytes.readUInt32LE(at) : RECORD_BYTES_MAX + 1
      const end = at + 4 + length
      if (length > RECORD_BYTES_MAX || end + HASH_BYTES > bytes.length) {
        this.#torn(path, `the file ends within event ${this.#next}: ${bytes.length - at} bytes of it are there`, isLast)
        return false
      }
      const own = bytes.subarray(end, end + HASH_BYTES)
      // The hash before a record lies right before it in the file, but for the first one.
      const linked =
        at === from
          ? hash('sha256', Buffer.concat([this.#chain, bytes.subarray(at, end)]), 'binary')
          : hash('sha256', bytes.subarray(at - HASH_BYTES, end), 'binary')
      if (linked !== own.toString('latin1')) {
        this.#report('changed', path, `event ${this.#next} is not what was written, or does not follow the one before`)
        return false
      }
      this.#event(path, bytes.subarray(at + 4, end), own)
      at = end + HASH_BYTES
    }
    this.#chain = bytes.subarray(at - HASH_BYTES, at)
    if (at === from) this.#chain = decodeHead(bytes)?.head.chain ?? NO_CHAIN
    return true
  }

  #event(path: string, text: Buffer, own: Buffer): void {
    const start = text.toString('latin1', 0, START_BYTES)
    if (!start.startsWith(lineHead(this.#next))) {
      this.#report('out-of-place', path, `the event at place ${this.#next} says that it is another one`)
    }
    if (start.includes(REMOVED)) this.#noteRemoved(text.toString('utf8'))
    this.#chain = own
    this.#next++
    if (this.#tree === undefined) return
    this.#tree.push(own)
    this.#checkTree(path)
  }

  #noteRemoved(text: string): void {
    const { kind, detail } = JSON.parse(text) as { kind: string; detail?: { upTo?: number } }
    if (kind === 'data.removed') this.#removedUpTo = Math.max(this.#removedUpTo, detail?.upTo ?? 0)
  }

  #readCheckpoints(): void {
    const { notes, publicKey, folder } = this.#options
    for (const note of notes) {
      const said = readCheckpoint(note)
      const text = said && openNote(note, said.origin, publicKey)
      if (said === undefined || text === undefined) {
        const because = `a checkpoint of ${said?.size ?? 'no'} events is not signed with this key`
        this.#problems.push({ kind: 'bad-checkpoint', event: said?.size ?? 0, file: folder, because })
      } else this.#checkpoints.push(said)
    }
    this.#origin = this.#checkpoints[0]?.origin ?? ''
    this.#checkpoints = this.#checkpoints
      .filter(({ origin }) => origin === this.#origin)
      .sort((a, b) => a.size - b.size)
  }

  #checkTree(path: string): void {
    for (let next = this.#checkpoints[this.#at]; next?.size === this.#tree?.size; next = this.#checkpoints[this.#at]) {
      if (next === undefined) return
      this.#at++
      if (this.#tree?.root().equals(next.root) === true) {
        this.#held++
        this.#heldSize = next.size
        continue
      }
      const signed = new Date(next.atMs).toISOString()
      const because = `events ${this.#heldSize + 1} to ${next.size} are not those of the checkpoint of ${signed}`
      this.#problems.push({ kind: 're-chained', event: this.#heldSize + 1, file: path, because })
      // Every later checkpoint disagrees too: one report says it.
      this.#tree = undefined
      return
    }
  }

  #torn(file: string, because: string, isLast: boolean): void {
    if (isLast) this.#tornTail = { kind: 'torn-tail', event: this.#next, file, because }
    else this.#report('torn-tail', file, because)
  }

  #report(kind: ChainProblem['kind'], file: string, because: string): void {
    this.#problems.push({ kind, event: this.#next, file, because })
  }
}

const REMOVED = '"kind":"data.removed"'
/** An event's number, time, process and kind lie within. */
const START_BYTES = 128
