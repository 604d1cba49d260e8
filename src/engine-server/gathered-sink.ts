import type { ChoiceDelta, Delta, Usage } from '../domain/delta.ts'
import type { DeltaSink } from '../lifecycle/ports.ts'
import { joinLogprobs } from '../wire/logprobs.ts'

/**
 * Gathers tokens into frames, as vLLM does with `--stream-interval`: a choice's first token goes out at once, then every
 * `interval` tokens, and what is left with its end. It also knows how many tokens of the choice have gone out, for
 * clients that want the usage in every frame. At most `interval` tokens of each choice are held.
 */
interface GatheredChoice {
  sentTokens: number
  heldTokens: number
  heldText: string
  heldLogprobs: unknown
}

export class GatheredSink implements DeltaSink {
  readonly #sink: DeltaSink
  readonly #interval: number
  readonly #choices: Array<GatheredChoice | undefined> = []
  #lastTokens = 0

  constructor(sink: DeltaSink, interval: number) {
    this.#sink = sink
    this.#interval = interval
  }

  /** The usage up to the frame that is being written: that of its choice, as in vLLM. */
  running(promptTokens: number): Usage {
    return { promptTokens, cachedTokens: 0, outputTokens: this.#lastTokens }
  }

  /** Engines send the delta of one choice at a time. */
  write(delta: Delta): Promise<void> | undefined {
    const [choice] = delta.choices ?? []
    return choice === undefined ? this.#sink.write(delta) : this.#gather(choice, delta.tokens)
  }

  #gather(choice: ChoiceDelta, tokens: number): Promise<void> | undefined {
    this.#choices[choice.index] ??= { sentTokens: 0, heldTokens: 0, heldText: '', heldLogprobs: undefined }
    const gathered = this.#choices[choice.index] as GatheredChoice
    gathered.heldTokens += tokens
    gathered.heldText += choice.content ?? ''
    if (choice.logprobs !== undefined) gathered.heldLogprobs = joinLogprobs(gathered.heldLogprobs, choice.logprobs)
    const isFirst = gathered.sentTokens === 0
    if (!isFirst && choice.finishReason === null && gathered.heldTokens < this.#interval) return undefined
    const { heldTokens, heldText, heldLogprobs: logprobs } = gathered
    gathered.sentTokens += heldTokens
    gathered.heldTokens = 0
    gathered.heldText = ''
    gathered.heldLogprobs = undefined
    this.#lastTokens = gathered.sentTokens
    return this.#sink.write({
      tokens: heldTokens,
      choices: [{ ...choice, content: heldText, ...(logprobs !== undefined && { logprobs }) }],
    })
  }
}
