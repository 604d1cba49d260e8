import { ChurningMap } from '../base/churning-map.ts'
import type { Arrived, Entry, Settled } from '../domain/entry.ts'
import type { Subscriber } from './journal.ts'
import { endLine, headerLine, lostLine, type RecordedRequest, type Renaming, requestLine } from './recording-line.ts'

/**
 * The flight recorder: listens to the journal and writes a line for each request that has ended, so that the day can be
 * played again on simulated GPUs. Nothing is kept and nothing is spelt while nobody records.
 *
 *     journal ──▶ open requests ──settled──▶ a line ──▶ file of `record.path`
 *                 (arrived, bounded)              └───▶ stream of `spillway record`
 *
 * An output takes a line or says that it has no room; it never waits. A line that finds no room is lost, and the next
 * line that finds room is preceded by the number of lost ones: a reader knows that the recording has holes.
 */
export interface RecordingOut {
  /** False: no room, the line is lost. */
  write(line: string): boolean
  /** Called after each batch of the journal. */
  flush?(): void
  /** The recorder ends the recording: nothing more comes. */
  end?(): void
}

export interface RecorderOptions {
  readonly renaming: Renaming
  /** Journal entries that the recorder has missed since the start, because its ring was full. */
  readonly missedEntries?: () => number
  readonly openMax?: number
}

/**
 * Requests under way that are remembered. At 1,000 requests a second of 30 s each, half of them; a gateway with more
 * loses the oldest.
 */
const OPEN_MAX = 16_384

/** Recordings at the same time: the file, and a few people. Each costs a line per request. */
export const RECORDINGS_MAX = 8

type ShapedArrival = RecordedRequest['arrived']

interface OpenRequest {
  readonly arrived: ShapedArrival
  repeatedTokens: number | undefined
}

export class Recorder implements Subscriber {
  readonly name = 'recorder'
  readonly kinds = new Set(['arrived', 'answer-looked-up', 'settled'] as const)
  readonly #renaming: Renaming
  readonly #missedEntries: () => number
  readonly #openMax: number
  #open = new ChurningMap<string, OpenRequest>()
  readonly #tapes = new Set<Tape>()
  #missed = 0

  constructor({ renaming, missedEntries = () => 0, openMax = OPEN_MAX }: RecorderOptions) {
    this.#renaming = renaming
    this.#missedEntries = missedEntries
    this.#openMax = Math.max(1, openMax)
  }

  /**
   * Records requests that arrive from `startAt` on, until the returned function is called. Undefined: there are
   * `RECORDINGS_MAX` recordings already.
   */
  begin(out: RecordingOut, startAt: number): (() => void) | undefined {
    if (this.#tapes.size >= RECORDINGS_MAX) return undefined
    this.#missed = this.#missedEntries()
    const tape = new Tape(out, startAt)
    this.#tapes.add(tape)
    return () => this.#end(tape)
  }

  /** The process ends: every recording does. */
  endAll(): void {
    for (const tape of this.#tapes) this.#end(tape)
  }

  take(entry: Entry): void {
    if (this.#tapes.size === 0) return
    if (entry.kind === 'arrived') this.#arrived(entry)
    else if (entry.kind === 'settled') this.#settled(entry)
    else if (entry.kind === 'answer-looked-up' && entry.outcome === 'hit') {
      const open = this.#open.get(entry.ticketId)
      if (open !== undefined) open.repeatedTokens = entry.saved.outputTokens
    }
  }

  flush(): void {
    if (this.#tapes.size === 0) return
    const missed = this.#missedEntries()
    // A request has about five entries, of which two are needed: every missed entry may stand for a request.
    if (missed > this.#missed) for (const tape of this.#tapes) tape.lose(missed - this.#missed)
    this.#missed = missed
    for (const tape of this.#tapes) tape.flush()
  }

  #arrived(entry: Arrived): void {
    if (!hasShape(entry)) return
    if (this.#open.size >= this.#openMax) {
      this.#open.delete(this.#open.keys().next().value as string)
      for (const tape of this.#tapes) tape.lose(1)
    }
    this.#open.set(entry.ticketId, { arrived: entry, repeatedTokens: undefined })
  }

  #settled(settled: Settled): void {
    const open = this.#open.get(settled.ticketId)
    if (open === undefined) return
    this.#open.delete(settled.ticketId)
    for (const tape of this.#tapes) {
      if (settled.arrivedAt < tape.startAt) continue
      tape.write(requestLine({ ...open, settled }, tape.startAt, this.#renaming))
    }
  }

  #end(tape: Tape): void {
    if (!this.#tapes.delete(tape)) return
    tape.end()
    if (this.#tapes.size === 0) this.#open = new ChurningMap()
  }
}

const hasShape = (entry: Arrived): entry is ShapedArrival => entry.shape !== undefined

/** One recording: its output, its beginning, and what it has lost since its last line. */
class Tape {
  readonly startAt: number
  readonly #out: RecordingOut
  #lost = 0

  constructor(out: RecordingOut, startAt: number) {
    this.#out = out
    this.startAt = startAt
    out.write(headerLine(startAt / 1_000))
  }

  write(text: string): void {
    if (!this.#tellLost() || !this.#out.write(text)) this.#lost++
  }

  lose(count: number): void {
    this.#lost += count
  }

  flush(): void {
    this.#tellLost()
    this.#out.flush?.()
  }

  end(): void {
    this.#tellLost()
    this.#out.write(endLine())
    this.#out.flush?.()
    this.#out.end?.()
  }

  /** True when nothing is left to tell. */
  #tellLost(): boolean {
    if (this.#lost === 0) return true
    if (!this.#out.write(lostLine(this.#lost))) return false
    this.#lost = 0
    return true
  }
}
