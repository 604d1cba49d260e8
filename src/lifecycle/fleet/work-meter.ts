import type { Instant } from '../../base/clock.ts'
import type { Replica } from '../../domain/fleet.ts'

/**
 * How much of what a pool's engines could do do they do? Sums over the reports of its replicas: work, in the time that
 * full engines take for it, and the time in which it was done. The work of an engine between two of its reports counts
 * against the time between them, whatever happens in between.
 *
 * An engine that has done less than before was restarted: it is counted from that report on. One that reports no work
 * counts in neither sum, so a pool of such engines has no figure, rather than a zero.
 *
 * Bound: one record for each replica, gone with it.
 * Example: reports of 0.2 s and 0.5 s of work, a second apart: 0.3 s of 1 s, so the engine does 0.3 of what it could.
 */
export class WorkMeter {
  readonly #last = new WeakMap<Replica, { readonly at: Instant; readonly fullWorkUs: number }>()
  #workUs = 0
  #workableUs = 0

  report(now: Instant, replica: Replica, fullWorkUs: number | undefined): void {
    if (fullWorkUs === undefined) return
    const last = this.#last.get(replica)
    this.#last.set(replica, { at: now, fullWorkUs })
    if (last === undefined || fullWorkUs < last.fullWorkUs) return
    this.#workUs += fullWorkUs - last.fullWorkUs
    this.#workableUs += now - last.at
  }

  /** Undefined before an engine of the pool has reported twice. */
  view(): { readonly workUs: number; readonly workableUs: number } | undefined {
    return this.#workableUs === 0 ? undefined : { workUs: this.#workUs, workableUs: this.#workableUs }
  }
}
