import type { Script, Scripts, ScriptsMade } from '../../backends/simulated.ts'
import { ChurningMap } from '../../base/churning-map.ts'
import type { Plan } from '../../domain/plan.ts'
import type { Request } from '../../domain/request.ts'

/** Tokens of an answer to a holdout item: these are short. */
const HOLDOUT_ANSWER_TOKENS = 8

/**
 * The true lengths of the simulated clients' answers, known to the client's script and the engine alone (law L10). An
 * entry lives as long as its request.
 */
export class ClientScripts implements Scripts {
  readonly #outputTokens = new ChurningMap<string, number>()
  /** Right answers to the items of holdout sets. */
  readonly answers = new Map<string, string>()

  expect(requestId: string, outputTokens: number): void {
    this.#outputTokens.set(requestId, outputTokens)
  }

  /** The same request under another name, in another region. False when its client has left. */
  copy(requestId: string, toId: string): boolean {
    const outputTokens = this.#outputTokens.get(requestId)
    if (outputTokens === undefined) return false
    this.#outputTokens.set(toId, outputTokens)
    return true
  }

  forget(requestId: string): void {
    this.#outputTokens.delete(requestId)
  }

  get size(): number {
    return this.#outputTokens.size
  }

  scriptsFor(request: Request, plan: Plan): ScriptsMade {
    const script = this.#scriptOf(request, plan)
    const scripts = [script]
    for (let i = 1; i < request.choiceCount; i++) scripts.push({ ...script, sharesPrompt: true })
    return { kind: 'made', scripts }
  }

  #scriptOf(request: Request, plan: Plan): Script {
    const { errand } = request
    // A shadow's answer is as long as the one that it is compared with; the client may have forgotten it by then.
    const known = this.#outputTokens.get(errand?.kind === 'shadow' ? errand.of : request.id)
    const answer = errand?.kind === 'holdout' ? (this.answers.get(errand.of) ?? '') : undefined
    const wanted = known ?? (answer === undefined ? 1 : HOLDOUT_ANSWER_TOKENS)
    let promptTokens = 0
    for (const segment of plan.segments) promptTokens += segment.tokens
    const isTrimmed = plan.segments.length < request.segments.length
    return {
      promptTokens: Math.max(1, promptTokens),
      sharesPrompt: false,
      outputTokens: Math.max(1, Math.min(wanted, plan.outputTokensMax)),
      // A trimmed prompt keeps its system prompt; the blocks after it have other names.
      prefixHashes: isTrimmed ? [] : request.prefixHashes,
      finishReason: wanted > plan.outputTokensMax ? 'length' : 'stop',
      ...(answer !== undefined && { textBetween: (from: number) => (from === 0 ? answer : '') }),
    }
  }
}
