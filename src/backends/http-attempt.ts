import type { Dispatcher } from 'undici'
import type { Clock } from '../base/clock.ts'
import type { Call, Ending } from '../lifecycle/ports.ts'
import { type AnswerFormat, AnswerReader } from './http-answer-reader.ts'

/**
 * One attempt over HTTP. The attempt ends when it is cancelled (the client has left, a hard deadline has passed), when
 * the connection is silent for too long, or when there is no token by `firstTokenBy`. Each of these drops the
 * connection, which makes the engine abort its sequence.
 */
export interface HttpAttempt {
  readonly call: Call
  readonly format: AnswerFormat
  /** Without a clock, `firstTokenBy` has no effect. */
  readonly clock: Clock | undefined
  readonly dispatch: (reader: Dispatcher.DispatchHandler) => void
}

const SILENT = 'no token came in half of the time that it had'

export function runAttempt({ call, format, clock, dispatch }: HttpAttempt): Promise<Ending> {
  const { cancellation } = call
  return new Promise((resolve, reject) => {
    const reader = new AnswerReader(call, format, resolve, reject)
    reader.forgetAtEnd(cancellation.onCancel(() => reader.cancel()))
    if (cancellation.isCancelled) return
    if (clock !== undefined && call.firstTokenBy !== undefined) {
      reader.forgetAtEnd(clock.at(call.firstTokenBy, () => reader.hasBegun || reader.giveUp(SILENT)))
    }
    dispatch(reader)
  })
}
