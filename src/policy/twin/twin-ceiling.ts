import type { Instant } from '../../base/clock.ts'
import { Ewma } from '../../base/ewma.ts'

/**
 * How many sequences may an engine get that has not shown yet how many it runs?
 *
 * A twin tells how long steps take; it does not tell how many sequences the engine runs at once (`max_num_seqs`, slots,
 * memory). Beyond that number requests wait inside the engine, where nobody can reorder or refuse them. So a ceiling
 * starts at an ordinary number and grows by a factor, at most once a second, while it is in use and nothing queues
 * inside; what shows a queue lowers it at once:
 *
 *   - the engine's own gauges: requests waiting, memory full, sequences preempted. A gauge that the engine does not have
 *     says nothing, and is not taken for zero;
 *   - where there is no gauge: first tokens that take several times as long as the twin expects of the load.
 *
 * Deliberately not: no time per token (the limit asks the twin), no memory (the replica's room).
 * Laws: between 1 and `sequencesMax`; a ceiling that was lowered grows again, so no fault lasts for ever.
 * Example: 48, then 72, 108, 162, 243, 364 in five busy seconds; the engine reports 100 running and 20 waiting: 100.
 */
export const CEILING_DEFAULTS = {
  /** Sequences to start with: what an engine on any server GPU runs at once; llama.cpp with few slots is found out. */
  initial: 48,
  growth: 1.5,
  /** Microseconds between two changes: about the time that a change needs to show. */
  everyUs: 1_000_000,
  /** Requests that wait inside the engine between two steps without any queue: prompts that came during a step. */
  waitingMax: 6,
  /** Memory in use from which the engine will preempt soon. */
  kvUsageMax: 0.95,
  /** What is left of the sequences in flight when sequences were preempted, or first tokens say that there is a queue. */
  backoff: 0.8,
  /** Measured ÷ expected first token, on the average of a second, from which there is a queue inside. */
  lateFactor: 3,
  lateSamples: 8,
} as const

export interface CeilingReport {
  readonly runningCount?: number | undefined
  readonly waitingCount?: number | undefined
  readonly kvUsageRatio?: number | undefined
  /** Sequences preempted since the engine began; only its growth is looked at. */
  readonly preemptionCount?: number | undefined
}

export class TwinCeiling {
  readonly #sequencesMax: number
  #ceiling: number
  #changedAt: Instant = Number.NEGATIVE_INFINITY
  #preemptionCount: number | undefined
  #hasGauges = false
  #late = new Ewma(CEILING_DEFAULTS.everyUs)
  #lateSamples = 0
  #because = 'initial'

  constructor(sequencesMax: number) {
    this.#sequencesMax = sequencesMax
    this.#ceiling = Math.min(CEILING_DEFAULTS.initial, sequencesMax)
  }

  /** Begins where it was before a restart. */
  remember(sequences: number): void {
    this.#ceiling = Math.min(this.#sequencesMax, Math.max(1, sequences))
    this.#because = 'from before the restart'
  }

  get sequencesMax(): number {
    return Math.floor(this.#ceiling)
  }

  get because(): string {
    return this.#because
  }

  /** An answer came back whole while so many were in flight. */
  served(now: Instant, sequences: number): void {
    const { growth, everyUs } = CEILING_DEFAULTS
    if (this.#ceiling >= this.#sequencesMax || sequences * 2 < this.#ceiling || now - this.#changedAt < everyUs) return
    this.#set(now, this.#ceiling * growth, 'in use, and nothing queues inside the engine')
  }

  /** A first token came, so many times as late as expected, with so many in flight. */
  begun(now: Instant, lateness: number, sequences: number): void {
    const { lateFactor, lateSamples, everyUs, backoff } = CEILING_DEFAULTS
    this.#late.observe(now, Math.min(lateness, 4 * lateFactor))
    this.#lateSamples++
    if (this.#hasGauges || this.#lateSamples < lateSamples || now - this.#changedAt < everyUs) return
    // One that is punctual itself met no queue, and the late ones before it met another number in flight.
    if (lateness < lateFactor || (this.#late.view() ?? 0) < lateFactor) return
    this.#set(now, Math.min(this.#ceiling, sequences * backoff), 'first tokens come late, as behind a queue')
  }

  report(now: Instant, seen: CeilingReport): void {
    const { waitingMax, kvUsageMax, backoff } = CEILING_DEFAULTS
    const { runningCount, waitingCount, kvUsageRatio, preemptionCount } = seen
    // Gauges may go as they came: another engine, a page that is no longer served.
    this.#hasGauges = runningCount !== undefined && waitingCount !== undefined
    if (runningCount === undefined) return
    const before = this.#preemptionCount
    if (preemptionCount !== undefined) this.#preemptionCount = preemptionCount
    const hasPreempted = preemptionCount !== undefined && before !== undefined && preemptionCount > before
    if (hasPreempted) this.#lower(now, runningCount * backoff, 'the engine preempted sequences')
    else if (kvUsageRatio !== undefined && kvUsageRatio > kvUsageMax)
      this.#lower(now, runningCount, 'the memory of the engine is full')
    else if (waitingCount !== undefined && waitingCount > waitingMax)
      this.#lower(now, runningCount, 'requests wait inside the engine')
  }

  #lower(now: Instant, sequences: number, because: string): void {
    if (sequences < this.#ceiling) this.#set(now, sequences, because)
    else this.#changedAt = now
  }

  #set(now: Instant, ceiling: number, because: string): void {
    this.#ceiling = Math.min(this.#sequencesMax, Math.max(1, ceiling))
    this.#changedAt = now
    this.#because = because
    this.#late = new Ewma(CEILING_DEFAULTS.everyUs)
    this.#lateSamples = 0
  }
}
