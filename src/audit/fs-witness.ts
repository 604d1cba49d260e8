import { promises as fs } from 'node:fs'
import { join } from 'node:path'
import { appendCheckpoint, lastCheckpointNote } from './fs-checkpoint-files.ts'
import { headOf, isKeyName, NOTE_BYTES_MAX, type PeerHead, readCheckpoint } from './signed-note.ts'

/**
 * Checkpoints of other gateways' audits, kept here: whoever could change a chain and everything beside it would have to
 * change these, too. A witness signs nothing; it remembers. A chain that goes back, or has two roots of one size, is
 * told at once.
 */
export interface WitnessOptions {
  /** The audit's own folder. */
  readonly path: string
  readonly nowMs: () => number
  /** A chain of another gateway contradicts what it said before. */
  readonly onConflict: (origin: string, because: string) => void
}

/** Chains that are remembered. */
const ORIGINS_MAX = 256
/** Notes of one call. */
export const WITNESSED_MAX = 64
/** Between two checkpoints of one chain that are kept; those between say nothing more. */
const KEEP_MS = 60_000

interface Known extends PeerHead {
  /** When it was signed, by the other's clock. */
  readonly signedAtMs: number
  readonly keptAtMs: number
}

export class FsWitness {
  readonly #options: WitnessOptions
  readonly #known = new Map<string, Known>()
  #working: Promise<void> = Promise.resolve()

  constructor(options: WitnessOptions) {
    this.#options = options
  }

  /** Newest heads of other gateways' chains. */
  heads(): readonly PeerHead[] {
    return Array.from(this.#known.values(), ({ origin, size, root }) => ({ origin, size, root }))
  }

  /** What was kept before the process began. */
  async start(): Promise<void> {
    const folder = join(this.#options.path, 'witnessed')
    for (const name of await fs.readdir(folder).catch(() => [])) {
      const note = (await lastCheckpointNote(join(folder, name))) ?? ''
      const head = headOf(note)
      const signedAtMs = readCheckpoint(note)?.atMs ?? 0
      if (head === undefined || this.#known.size >= ORIGINS_MAX) continue
      this.#known.set(head.origin, { ...head, signedAtMs, keptAtMs: 0 })
    }
  }

  /** Keeps what is new. Never rejects; what cannot be written is told by the answer. */
  take(notes: readonly string[]): Promise<void> {
    this.#working = this.#working.then(async () => {
      for (const note of notes.slice(0, WITNESSED_MAX)) await this.#takeOne(note).catch(() => {})
    })
    return this.#working
  }

  async #takeOne(note: string): Promise<void> {
    const head = note.length > NOTE_BYTES_MAX ? undefined : headOf(note)
    // Its name becomes that of a folder here.
    if (head === undefined || !isKeyName(head.origin) || !/^[A-Za-z0-9]/.test(head.origin)) return
    const known = this.#known.get(head.origin)
    if (known === undefined && this.#known.size >= ORIGINS_MAX) return
    const nowMs = this.#options.nowMs()
    const signedAtMs = readCheckpoint(note)?.atMs ?? 0
    const conflict = known === undefined ? undefined : conflictOf(known, head, signedAtMs)
    if (conflict !== undefined) this.#options.onConflict(head.origin, conflict)
    else if (known !== undefined && head.size <= known.size) return
    const isKept = conflict !== undefined || known === undefined || nowMs - known.keptAtMs >= KEEP_MS
    if (conflict === undefined) {
      this.#known.set(head.origin, { ...head, signedAtMs, keptAtMs: isKept ? nowMs : known.keptAtMs })
    }
    if (!isKept) return
    const folder = join(this.#options.path, 'witnessed', encodeURIComponent(head.origin))
    await fs.mkdir(folder, { recursive: true, mode: 0o700 })
    await appendCheckpoint(folder, note, nowMs)
  }
}

/** An older checkpoint that comes late contradicts nothing. */
function conflictOf(known: Known, { size, root }: PeerHead, signedAtMs: number): string | undefined {
  if (size < known.size && signedAtMs > known.signedAtMs) return `it had ${known.size} events and says ${size} now`
  return size === known.size && root !== known.root ? `it has two roots of ${size} events` : undefined
}
