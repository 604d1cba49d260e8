import type { AuditEvent } from '../domain/audit-event.ts'
import { FsSpool, type SpoolView } from '../spool/fs-spool.ts'
import { FRAME_BYTES, HASH_BYTES } from '../spool/spool-frame.ts'
import { auditLine } from './audit-line.ts'
import type { AuditKey } from './fs-audit-key.ts'
import { type ChainEnd, readChainEnd } from './fs-chain-state.ts'
import { appendCheckpoint, trimFrontiers, writeFrontier } from './fs-checkpoint-files.ts'
import { writeHead } from './fs-heads.ts'
import { FsSubjectKeys } from './fs-subject-keys.ts'
import { GapCount } from './gap-count.ts'
import type { MerkleFrontier } from './merkle-tree.ts'
import { Seals } from './seals.ts'
import { checkpointText, NoteSigner, type PeerHead } from './signed-note.ts'

/**
 * The audit of one process: events go to a spool, their chain's hashes into a tree, and the tree's root is signed every
 * ten seconds and at each segment's end.
 *
 *   append ─▶ spool (group commit) ─▶ tree ─▶ checkpoint (Ed25519) ─▶ beside the chain, and to the sinks outside
 *
 * `append` never throws and never waits. An event that a full spool does not take is counted, and a `gap` event says so
 * as soon as there is room. Only what is on the disk is ever signed, so a crash leaves no checkpoint without its events.
 */
export interface AuditLogOptions {
  readonly folder: string
  /** Name of the log: one for each chain. */
  readonly origin: string
  /** Which chain of the host. */
  readonly process: string
  readonly key: AuditKey
  /** Microseconds since the epoch. */
  readonly now: () => number
  readonly later: (ms: number, run: () => void) => () => void
  readonly complain: (problem: string) => void
  readonly bytesMax: number
  readonly retentionMs: number
  readonly checkpointMs?: number
  /** Newest heads of other chains, which a checkpoint lists. */
  readonly peers?: () => readonly PeerHead[]
  readonly onCheckpoint?: (note: string) => void
}

export const AUDIT_LOG_DEFAULTS = { checkpointMs: 10_000, trimMs: 3_600_000 } as const

export interface AuditLogView {
  readonly spool: SpoolView
  readonly origin: string
  /** Events that a full spool did not take. */
  readonly lost: number
  readonly checkpointSize: number
  readonly checkpointAtMs: number
  readonly keysLost: number
}

export class FsAuditLog {
  readonly seals: Seals
  readonly #options: AuditLogOptions
  readonly #signer: NoteSigner
  readonly #spool: FsSpool
  readonly #keys: FsSubjectKeys
  readonly #tree: MerkleFrontier
  readonly #gap = new GapCount()
  #chain: Buffer
  #checkpointSize: number
  #checkpointAtMs = 0
  #lastNote = ''
  #writing: Promise<void> = Promise.resolve()
  #isInTrouble = false
  #isClosed = false
  #cancels: (() => void)[] = []

  /** Undefined, with the reason told, for a chain whose end is not that of its last checkpoint. */
  static async open(options: AuditLogOptions): Promise<FsAuditLog | string> {
    const signer = new NoteSigner(options.origin, options.key.seed)
    const end = await readChainEnd(options.folder, options.origin, signer.publicKey)
    if (end.kind === 'broken') return end.because
    const onFrames = (first: number, frames: Buffer): void => log.#takeFrames(first, frames)
    const spool = await FsSpool.open({ ...options, onFrames })
    const log = new FsAuditLog(options, { signer, end, spool })
    if (spool.view().tornBytes > 0) log.#tellTorn(spool.view().tornBytes)
    log.#every(options.checkpointMs ?? AUDIT_LOG_DEFAULTS.checkpointMs, () => log.checkpoint())
    log.#every(AUDIT_LOG_DEFAULTS.trimMs, () => log.trim())
    return log
  }

  private constructor(
    options: AuditLogOptions,
    made: { signer: NoteSigner; end: Extract<ChainEnd, { kind: 'sound' }>; spool: FsSpool },
  ) {
    const { folder, now, later, complain, key } = options
    this.#options = options
    this.#signer = made.signer
    this.#spool = made.spool
    this.#tree = made.end.tree
    this.#chain = made.end.chain
    this.#checkpointSize = made.end.checkpointSize
    this.#keys = new FsSubjectKeys({ folder, nowMs: () => Math.floor(now() / 1_000), later, complain })
    this.seals = new Seals(key.secret, (made) => this.#keys.add(made))
  }

  get publicKey(): Buffer {
    return this.#signer.publicKey
  }

  /** For readers with a cursor of their own. */
  get spool(): FsSpool {
    return this.#spool
  }

  /** The newest checkpoint; empty before the first. */
  get lastNote(): string {
    return this.#lastNote
  }

  /** The event's number; undefined when it could not be taken. `version`: of the settings that decided. */
  append(event: AuditEvent, version?: string): number | undefined {
    if (this.#isClosed) return undefined
    if (this.#gap.count > 0 && !this.#spool.isFullFor(ROOM_AFTER_GAP)) {
      const told = this.#gap.take()
      if (this.#write(told) === undefined) this.#gap.putBack(told)
    }
    const seq = this.#write(event, version)
    if (seq === undefined) this.#gap.lose(event.tenant, this.#nowMs())
    return seq
  }

  /** Whether an event would be lost now. */
  get isFull(): boolean {
    return this.#spool.isFullFor(ROOM_OF_EVENT)
  }

  /** True when the event is on the disk; false when it could not be within this time. */
  async committed(seq: number, withinMs: number): Promise<boolean> {
    if (seq <= this.#spool.committedSeq) return true
    let cancel = (): void => {}
    const late = new Promise<boolean>((done) => {
      cancel = this.#options.later(withinMs, () => done(false))
    })
    const isDone = await Promise.race([this.#spool.committed(seq), late])
    cancel()
    return isDone
  }

  /** Signs what is on the disk, unless nothing came since the last time. Never rejects. */
  checkpoint(): Promise<void> {
    if (this.#tree.size > this.#checkpointSize) this.#sign()
    return this.#writing
  }

  /** Removes what is past its retention. Checkpoints stay. Never rejects. */
  async trim(): Promise<void> {
    const { folder, retentionMs, complain } = this.#options
    const [before] = this.#spool.segments()
    try {
      await this.#spool.trim(this.#spool.committedSeq)
      const [after] = this.#spool.segments()
      if (before === undefined || after === undefined || after.first === before.first) return
      const detail = { first: before.first, upTo: after.first - 1 }
      const decision = { outcome: 'removed', because: 'retention' }
      this.append({ kind: 'data.removed', actor: PLATFORM, decision, detail })
      await trimFrontiers(folder, after.first)
      await this.#keys.trim(this.#nowMs() - retentionMs)
    } catch (error) {
      complain(`audit: what is past its retention cannot be removed: ${String(error)}`)
    }
  }

  /** Destroys a subject's keys in this chain's folder; answers how many there were. */
  async erase(tag: string): Promise<number> {
    this.seals.forget(tag)
    return this.#keys.erase(tag)
  }

  view(): AuditLogView {
    return {
      spool: this.#spool.view(),
      origin: this.#options.origin,
      lost: this.#gap.total,
      checkpointSize: this.#checkpointSize,
      checkpointAtMs: this.#checkpointAtMs,
      keysLost: this.#keys.lost,
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const cancel of this.#cancels) cancel()
    await this.#keys.flush()
    await this.#spool.close()
    await this.checkpoint()
  }

  #write(event: AuditEvent, version?: string): number | undefined {
    const stamp = { seq: this.#spool.lastSeq + 1, atMs: this.#nowMs(), process: this.#options.process, version }
    return this.#spool.append(auditLine(event, stamp, this.seals))
  }

  #takeFrames(first: number, frames: Buffer): void {
    const isNewSegment = this.#spool.segments().at(-1)?.first === first
    if (isNewSegment && first > 1) {
      // A segment has ended: its last event is the tree's.
      const state = this.#tree.state()
      this.#later(() => writeFrontier(this.#options.folder, state))
      if (this.#tree.size > this.#checkpointSize) this.#sign()
    }
    for (let at = 0; at < frames.length; ) {
      const end = at + frames.readUInt32LE(at) + FRAME_BYTES
      this.#chain = frames.subarray(end - HASH_BYTES, end)
      this.#tree.push(this.#chain)
      at = end
    }
    // The frames of a whole commit are not kept for one hash.
    this.#chain = Buffer.from(this.#chain)
  }

  #sign(): void {
    const { origin, folder, peers, onCheckpoint } = this.#options
    const atMs = this.#nowMs()
    const heads = (peers?.() ?? []).filter((head) => head.origin !== origin)
    const checkpoint = {
      origin,
      size: this.#tree.size,
      root: this.#tree.root(),
      chain: this.#chain,
      atMs,
      peers: heads,
    }
    const note = this.#signer.sign(checkpointText(checkpoint))
    this.#checkpointSize = this.#tree.size
    this.#checkpointAtMs = atMs
    this.#lastNote = note
    this.#later(async () => {
      await appendCheckpoint(folder, note, atMs)
      await writeHead(folder, note)
    })
    onCheckpoint?.(note)
  }

  #tellTorn(bytes: number): void {
    const decision = { outcome: 'cut', because: 'the chain ended within an event: a crash or a full disk' }
    this.append({ kind: 'gap', actor: PLATFORM, decision, detail: { tornBytes: bytes } })
  }

  #every(ms: number, work: () => Promise<void>): void {
    const next = (): void => {
      const i =
        this.#cancels.push(this.#options.later(ms, () => void work().finally(() => this.#isClosed || next()))) - 1
      if (this.#cancels.length > 8) this.#cancels = this.#cancels.slice(i - 3)
    }
    next()
  }

  /** Writes one after the other; a write that fails is told once. */
  #later(work: () => Promise<void>): void {
    this.#writing = this.#writing.then(work).then(
      () => {
        this.#isInTrouble = false
      },
      (error: unknown) => {
        if (!this.#isInTrouble) this.#options.complain(`audit: a checkpoint cannot be written: ${String(error)}`)
        this.#isInTrouble = true
      },
    )
  }

  #nowMs(): number {
    return Math.floor(this.#options.now() / 1_000)
  }
}

const PLATFORM = { kind: 'platform', name: 'audit' } as const

/** Characters that an event takes at most in ordinary cases, and that must be free before a gap is told. */
const ROOM_OF_EVENT = 4_096
const ROOM_AFTER_GAP = 65_536
