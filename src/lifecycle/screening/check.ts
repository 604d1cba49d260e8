import { assert } from '../../base/assert.ts'
import type { Cancellation } from '../../base/cancellation.ts'
import type { ScreenVerdict } from '../screening-ports.ts'

/**
 * The judging of one ticket: pending, then over with a verdict. What must not happen before the verdict is handed to
 * `whenPassed`, in the order in which it shall happen; what is handed over after a block never happens.
 *
 * Example: a mirror and the ticket's readiness wait for a check. The verdict is `passed`: the mirror starts, then the
 * ticket may have its turn. The verdict is `blocked`: neither happens, and the ticket's cancellation ends it.
 *
 * A ticket that is called off before its verdict waits for nothing more: `whenOver` resolves, and the check stays pending
 * until the judges are done. Whoever has waited and finds it pending must answer nothing.
 */
export class Check {
  /** Whether the turn itself may come before the verdict, on pools inside. */
  readonly mayOverlap: boolean
  /** The ticket's. */
  readonly #cancellation: Cancellation
  #verdict: ScreenVerdict | undefined
  #waiting: Array<() => void> = []
  #over: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined
  #forgetCancel: (() => void) | undefined

  constructor(mayOverlap: boolean, cancellation: Cancellation) {
    this.mayOverlap = mayOverlap
    this.#cancellation = cancellation
  }

  get isPending(): boolean {
    return this.#verdict === undefined
  }

  get verdict(): ScreenVerdict | undefined {
    return this.#verdict
  }

  get isBlocked(): boolean {
    return this.#verdict?.kind === 'blocked'
  }

  /** Calls `next` when the verdict is there and lets the request go on: at once, if it is there already. */
  whenPassed(next: () => void): void {
    if (this.isPending) this.#waiting.push(next)
    else if (!this.isBlocked) next()
  }

  /** Resolves with the verdict, whatever it is, or when the ticket is called off, whichever comes first. */
  whenOver(): Promise<void> {
    if (!this.isPending || this.#cancellation.isCancelled) return Promise.resolve()
    if (this.#over === undefined) {
      this.#over = Promise.withResolvers<void>()
      this.#forgetCancel = this.#cancellation.onCancel(this.#over.resolve)
    }
    return this.#over.promise
  }

  /** Called once. A block must have called off its ticket before anybody who waits is told. */
  conclude(verdict: ScreenVerdict, callOff: () => void): void {
    assert(this.isPending, 'a check has one verdict')
    this.#verdict = verdict
    const waiting = this.#waiting
    this.#waiting = []
    if (verdict.kind === 'blocked') callOff()
    else for (const next of waiting) next()
    this.#forgetCancel?.()
    this.#over?.resolve()
  }
}
