import type { ChoiceDelta, Delta } from '../domain/delta.ts'
import { spendOf } from './spending.ts'
import type { Admitted } from './ticket.ts'

/**
 * May an answer that runs past what is held for it go on? Each delta beyond draws on the budgets as it comes. Where a hard
 * one is empty by that, this delta is the last: it goes out with the finish reason `length`, and so the overrun is at most
 * one delta for each answer. Made only for answers of scopes that have such budgets.
 */
export class AnswerMeter {
  readonly #admitted: Admitted
  readonly #drawOn: (used: ReturnType<typeof spendOf>) => boolean
  /** Choices that have ended by themselves: at most as many as were asked for. */
  readonly #finished = new Set<number>()

  constructor(admitted: Admitted, drawOn: (used: ReturnType<typeof spendOf>) => boolean) {
    this.#admitted = admitted
    this.#drawOn = drawOn
  }

  /** The delta as its last one; undefined while the answer may go on. */
  lastOf(delta: Delta): Delta | undefined {
    const { ticket, plan } = this.#admitted
    for (const { index, finishReason } of delta.choices ?? []) if (finishReason !== null) this.#finished.add(index)
    if (delta.tokens === 0) return undefined
    if (this.#drawOn(spendOf(ticket.price, plan.estimate.promptTokens, ticket.outputTokens))) return undefined
    // An answer that is whole with this delta is not cut.
    const { choiceCount } = ticket.request
    return this.#finished.size >= choiceCount ? undefined : this.#ended(delta, choiceCount)
  }

  /** The engine's own text does not say that it ends here, so it is written anew. */
  #ended({ frame: _frame, ...delta }: Delta, choiceCount: number): Delta {
    if (delta.choices === undefined) return delta
    const choices = delta.choices.map((choice) => ({ ...choice, finishReason: choice.finishReason ?? 'length' }))
    for (let index = 0; index < choiceCount; index++) {
      if (this.#finished.has(index) || choices.some((choice) => choice.index === index)) continue
      choices.push({ index, content: null, finishReason: 'length' } satisfies ChoiceDelta)
    }
    return { ...delta, choices }
  }
}
