import type { Request } from '../domain/request.ts'
import type { Ending } from '../lifecycle/ports.ts'
import { sendsRunningUsage } from '../wire/engine-gauges.ts'
import type { TokenLength } from '../wire/token-length.ts'

/**
 * Is this engine asked for its usage in every frame (`stream_options.continuous_usage_stats`)?
 *
 * Only where its page of metrics says that it knows the wish, or where the configuration says so: strict servers refuse
 * a field that they do not know, some front ends of vLLM among them. Such a server is asked again without the wish, and
 * never again with it. Each frame is longer for its usage, so nobody asks while frames are known to be one token each,
 * nor for several choices, whose running usages cannot be told apart.
 */
export type RunningUsageWish = 'auto' | 'always' | 'never'

export class RunningUsage {
  readonly #wish: RunningUsageWish
  #isKnown = false
  #isTaken = false
  #isRefused = false

  constructor(wish: RunningUsageWish = 'auto') {
    this.#wish = wish
  }

  /** Hears the engine's page of metrics. */
  readonly readPage = (page: string): void => {
    this.#isKnown = sendsRunningUsage(page)
  }

  isAskedOf({ isStreamed, choiceCount }: Request, tokenLength: TokenLength): boolean {
    if (!isStreamed || choiceCount > 1 || this.#wish === 'never' || this.#isRefused || tokenLength.isTokenPerFrame)
      return false
    return this.#wish === 'always' || this.#isKnown
  }

  /** Asks with the wish; once more without it where the engine found fault with the request and never took the wish. */
  async ask(send: (asksRunningUsage: boolean) => Promise<Ending>): Promise<Ending> {
    const ending = await send(true)
    const isFaulty = ending.kind === 'refused' && ending.refusal.blame === 'request'
    if (ending.kind === 'finished') this.#isTaken = true
    if (!isFaulty || this.#isTaken || ending.refusal.code === 'context-length-exceeded') return ending
    const again = await send(false)
    if (again.kind === 'finished') this.#isRefused = true
    return again
  }
}
