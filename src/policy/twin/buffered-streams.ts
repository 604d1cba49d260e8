import type { Instant } from '../../base/clock.ts'
import { Ewma } from '../../base/ewma.ts'

/**
 * Are this pool's streams handed over only when they are whole?
 *
 * Some proxies gather a stream and pass it on at its end. Its first token then says how long the whole answer took. Taken
 * for the reading of the prompt, it makes every prompt seem to wait for half a second, and whoever comes next too late.
 * A long answer whose tokens all came within a small part of the time that the first one took was gathered; where most
 * were, lately, first tokens say nothing, as with answers that are not streamed.
 *
 * Example: 200 tokens, the first after 510 ms and the last after 512: 2 ms of 510, gathered.
 */
export class BufferedStreams {
  readonly #share = new Ewma(MEMORY_US)
  #answers = 0

  /** Whether most of the answers were gathered lately. */
  get isUsual(): boolean {
    return this.#answers >= ANSWERS_MIN && (this.#share.view() ?? 0) > 0.5
  }

  /** A streamed answer is whole. True when that has made gathering usual. */
  observe(
    now: Instant,
    seen: { readonly firstTokenUs: number; readonly restUs: number; readonly tokens: number },
  ): boolean {
    if (seen.tokens < TOKENS_MIN) return false
    const wasUsual = this.isUsual
    this.#answers++
    this.#share.observe(now, seen.restUs < REST_RATIO * seen.firstTokenUs ? 1 : 0)
    return this.isUsual && !wasUsual
  }
}

/** Microseconds: a proxy is changed by people. */
const MEMORY_US = 30_000_000
/** Answers without which nothing is said. */
const ANSWERS_MIN = 4
/** Shorter answers may come in one frame of an engine that gathers a few tokens. */
const TOKENS_MIN = 64
/** Of the time to the first token: 64 tokens of the fastest engine take longer. */
const REST_RATIO = 0.05
