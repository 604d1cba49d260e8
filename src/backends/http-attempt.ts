import type { Dispatcher } from 'undici'
import type { CancelTimer, Clock } from '../base/clock.ts'
import type { Call, Ending } from '../lifecycle/ports.ts'
import { type AnswerFormat, AnswerReader } from './http-answer-reader.ts'

/**
 * One attempt over HTTP, bounded by the request's own deadline. Two limits besides the connection's: at the deadline
 * the attempt is over, because nobody wants its answer any more; and a streamed one that has said nothing by half of
 * the time that it had is given up while there is time for another replica. Both drop the connection, which makes the
 * engine abort its sequence.
 */
export interface Attempt {
  readonly call: Call
  readonly format: AnswerFormat
  /** Without a clock there are no limits of time. */
  readonly clock: Clock | undefined
  readonly dispatch: (reader: Dispatcher.DispatchHandler) => void
}

/** Of the time left, for the first token: the other half is a second attempt's. */
const FIRST_TOKEN_RATIO = 0.5
/** Below this there is no time for a second attempt, and half of it would only cut off a first one. */
const SPLIT_US_MIN = 2_000_000

export function runAttempt({ call, format, clock, dispatch }: Attempt): Promise<Ending> {
  const { cancellation } = call
  return new Promise((resolve, reject) => {
    const undo: Array<() => void> = []
    const ended = (ending: Ending): void => {
      for (const forget of undo) forget()
      resolve(ending)
    }
    const reader = new AnswerReader(call, format, ended, reject)
    undo.push(cancellation.onCancel(() => reader.cancel()))
    if (cancellation.isCancelled) return
    if (clock !== undefined) undo.push(...limits(call, clock, reader))
    dispatch(reader)
  })
}

function limits({ request }: Call, clock: Clock, reader: AnswerReader): CancelTimer[] {
  const now = clock.now()
  const leftUs = request.deadlineAt - now
  const timers = [clock.at(request.deadlineAt, () => reader.giveUp('its deadline passed'))]
  if (!request.isStreamed || leftUs < SPLIT_US_MIN) return timers
  const byAt = now + Math.round(leftUs * FIRST_TOKEN_RATIO)
  const because = 'no token came in half of the time that it had'
  timers.push(
    clock.at(byAt, () => {
      if (!reader.hasBegun) reader.giveUp(because)
    }),
  )
  return timers
}
