import type { Clock } from '../../src/base/clock.ts'
import type { ChoiceDelta, Delta } from '../../src/domain/delta.ts'
import type { Replica } from '../../src/domain/fleet.ts'
import type { Plan } from '../../src/domain/plan.ts'
import type { Backend, Call, Ending, ReplicaReport } from '../../src/lifecycle/ports.ts'

/**
 * How one attempt turns out: so many deltas of one token, `everyUs` apart, then an ending. `hangs` never ends by
 * itself; `throws` is a bug in the backend.
 */
export interface Turnout {
  readonly deltas: number
  readonly everyUs?: number
  /** What its last delta says; without it deltas have no text, as in simulation. */
  readonly text?: string
  /** What each of its deltas says, in place of `deltas` and `text`; each has one token. */
  readonly says?: readonly (readonly ChoiceDelta[])[]
  readonly ending: Ending | 'hangs' | 'throws'
}

export const finished = (deltas: number): Turnout => ({
  deltas,
  ending: { kind: 'finished', usage: { promptTokens: 20, cachedTokens: 0, outputTokens: deltas } },
})
export const lost = (deltas: number): Turnout => ({ deltas, ending: { kind: 'lost', because: 'gone' } })
export const refusedBy = (blame: 'platform' | 'request'): Turnout => ({
  deltas: 0,
  ending: {
    kind: 'refused',
    refusal: {
      code: blame === 'request' ? 'replica-rejected-request' : 'replica-refused',
      because: 'No.',
      blame,
      retryAfterUs: blame === 'request' ? undefined : 1_000_000,
    },
  },
})

/** An engine without room: a 429 or a 503, and the time after which it says it has room. */
export const full = (retryAfterUs: number | undefined): Turnout => ({
  deltas: 0,
  ending: {
    kind: 'refused',
    refusal: { code: 'replica-refused', because: 'The engine answered 503.', blame: 'platform', retryAfterUs },
  },
})
/** An engine that a person has to mend: a 401, a used-up quota. */
export const denied: Turnout = {
  deltas: 0,
  ending: {
    kind: 'refused',
    refusal: {
      code: 'replica-denied',
      because: 'The engine answered 401: it does not accept our key.',
      blame: 'platform',
      retryAfterUs: undefined,
    },
  },
}

/** A backend that keeps the port's obligations to the letter, and counts what it holds. */
export class ScriptedBackend implements Backend {
  readonly #clock: Clock
  readonly #turnouts: Turnout[]
  /** Calls that are being answered now: what a real engine would hold sequences for. */
  openCount = 0
  readonly replicaIds: string[] = []
  readonly firstTokenBys: Array<number | undefined> = []
  /** What each call was asked to run, and when. */
  readonly plans: Plan[] = []
  readonly calledAt: number[] = []

  constructor(clock: Clock, turnouts: readonly Turnout[]) {
    this.#clock = clock
    this.#turnouts = [...turnouts]
  }

  probe(_replica?: Replica): Promise<ReplicaReport> {
    return Promise.resolve({ isReady: true, because: 'the test says so' })
  }

  generate(call: Call): Promise<Ending> {
    this.replicaIds.push(call.lease.replica.id)
    this.firstTokenBys.push(call.firstTokenBy)
    this.plans.push(call.plan)
    this.calledAt.push(this.#clock.now())
    const turnout = this.#turnouts.length > 1 ? this.#turnouts.shift()! : this.#turnouts[0]!
    this.openCount++
    return new Promise((resolve, reject) => {
      let hasEnded = false
      let forgetTimer = (): void => {}
      const end = (settle: () => void): void => {
        if (hasEnded) return
        hasEnded = true
        this.openCount--
        forgetTimer()
        forgetCancel()
        settle()
      }
      const step = (left: number): void => {
        forgetTimer = this.#clock.at(this.#clock.now() + (turnout.everyUs ?? 1_000), () => {
          if (left > 0) {
            const wait = call.sink.write(deltaOf(turnout, left))
            if (wait === undefined) step(left - 1)
            else void wait.then(() => (hasEnded ? undefined : step(left - 1)))
          } else if (turnout.ending === 'throws') end(() => reject(new Error('the backend is broken')))
          else if (turnout.ending !== 'hangs') end(() => resolve(turnout.ending as Ending))
        })
      }
      let forgetCancel = (): void => {}
      forgetCancel = call.cancellation.onCancel(() => end(() => resolve({ kind: 'cancelled' })))
      if (!hasEnded) step(turnout.says?.length ?? turnout.deltas)
    })
  }
}

function deltaOf({ says, text }: Turnout, left: number): Delta {
  if (says !== undefined) return { tokens: 1, choices: says[says.length - left] ?? [] }
  if (text === undefined || left > 1) return { tokens: 1 }
  return { tokens: 1, choices: [{ index: 0, content: text, finishReason: 'stop' }] }
}
