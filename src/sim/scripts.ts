import type { Script, Scripts, ScriptsMade } from '../backends/simulated.ts'
import type { Plan } from '../domain/plan.ts'
import type { Request } from '../domain/request.ts'

/**
 * What the simulated clients' answers will truly be: known to the client's script and to the engine, and to nobody
 * between them (law L10). An entry lives as long as its request.
 */
export class ClientScripts implements Scripts {
  readonly #outputTokens = new Map<string, number>()

  expect(requestId: string, outputTokens: number): void {
    this.#outputTokens.set(requestId, outputTokens)
  }

  /** The same request under another name, over in another region. False when its client is gone. */
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
    const wanted = this.#outputTokens.get(request.id) ?? 1
    let promptTokens = 0
    for (const segment of plan.segments) promptTokens += segment.tokens
    const isTrimmed = plan.segments.length < request.segments.length
    return {
      promptTokens: Math.max(1, promptTokens),
      sharesPrompt: false,
      outputTokens: Math.max(1, Math.min(wanted, plan.outputTokensMax)),
      // A trimmed prompt keeps its system part; beyond it the blocks have other names.
      prefixHashes: isTrimmed ? [] : request.prefixHashes,
      finishReason: wanted > plan.outputTokensMax ? 'length' : 'stop',
    }
  }
}
