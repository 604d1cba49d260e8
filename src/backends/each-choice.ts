import { Cancellation } from '../base/cancellation.ts'
import { type Delta, NO_USAGE, type Usage } from '../domain/delta.ts'
import type { Call, DeltaSink, Ending } from '../lifecycle/ports.ts'

/**
 * Several choices from an engine that answers one at a time: one call for each, side by side, into one sink. The first
 * call that does not finish ends the others, and its ending is the ending of all. Usages are added up, with the prompt
 * counted once.
 */
export async function answerEachChoice(call: Call, answer: (one: Call) => Promise<Ending>): Promise<Ending> {
  const { choiceCount } = call.request
  if (choiceCount === 1) return answer(call)
  const cancellation = new Cancellation()
  const forget = call.cancellation.onCancel((because) => cancellation.cancel(because))
  const sink = new OneAtATime(call.sink, cancellation)
  const request = { ...call.request, choiceCount: 1 }
  let worst: Ending | undefined
  try {
    const endings = await Promise.all(
      Array.from({ length: choiceCount }, async (_, index) => {
        const ending = await answer({ ...call, request, cancellation, sink: { write: (d) => sink.write(d, index) } })
        if (ending.kind !== 'finished') {
          worst ??= ending
          cancellation.cancel('another choice did not finish')
        }
        return ending
      }),
    )
    return worst ?? { kind: 'finished', usage: totalOf(endings), ...streamedOf(endings) }
  } catch (error) {
    cancellation.cancel('another choice broke')
    throw error
  } finally {
    forget()
  }
}

/** Serialises the writes of several calls: while the reader is slow, each call waits for its turn. */
class OneAtATime {
  readonly #sink: DeltaSink
  readonly #cancellation: Cancellation
  #busy: Promise<void> | undefined

  constructor(sink: DeltaSink, cancellation: Cancellation) {
    this.#sink = sink
    this.#cancellation = cancellation
  }

  write(delta: Delta, index: number): Promise<void> | undefined {
    if (this.#cancellation.isCancelled) return undefined
    if (this.#busy !== undefined) return this.#busy.then(() => this.write(delta, index))
    const choices = delta.choices?.map((choice) => ({ ...choice, index }))
    const wait = this.#sink.write(choices === undefined ? delta : { ...delta, choices })
    if (wait === undefined) return undefined
    const busy = wait.finally(() => {
      this.#busy = undefined
    })
    this.#busy = busy
    return busy
  }
}

/** Known only where every call knows it. */
function streamedOf(endings: readonly Ending[]): { readonly streamedTokens?: number } {
  let streamedTokens = 0
  for (const ending of endings) {
    if (ending.kind !== 'finished' || ending.streamedTokens === undefined) return {}
    streamedTokens += ending.streamedTokens
  }
  return { streamedTokens }
}

function totalOf(endings: readonly Ending[]): Usage | undefined {
  let total = NO_USAGE
  for (const ending of endings) {
    if (ending.kind !== 'finished' || ending.usage === undefined) return undefined
    const { promptTokens, cachedTokens, outputTokens } = ending.usage
    total = { promptTokens, cachedTokens, outputTokens: total.outputTokens + outputTokens }
  }
  return total
}
