import type { Clock } from '../base/clock.ts'
import { msToUs, secondsToUs } from '../base/clock.ts'
import { AskedThread, type AskedThreadLimits } from '../base/live-asked-thread.ts'
import type { CountedTexts } from './count-tokens.ts'
import type { CountWork } from './live-token-thread.ts'

/**
 * Counts tokens exactly, off the event loop: a thread with the o200k tokenizer, started by the first ask (half a second,
 * 120 MB) and ended after a minute without one. A gateway whose prompts are far from every bound never loads a tokenizer.
 *
 * An ask that finds no place, or is not answered in time, gets `undefined`: then nobody knows the size, and the engine
 * decides. A tenant that keeps the thread busy takes exact counts from others, and nothing else.
 */
export const TOKEN_COUNTER_DEFAULTS = {
  /** Asks that may wait: at 10 ms each, what can be answered in time. */
  waitingMax: 32,
  waitingOfTenantMax: 4,
  charactersMax: 64_000_000,
  /** They are copied to the thread one ask at a time. */
  charactersWaitingMax: 64_000_000,
  /** The start of the thread included: a quarter of what a prompt of a full window takes an engine to read. */
  answerUsMax: msToUs(250),
  /** The thread's time for one ask: 2 MB of English. */
  workMsMax: 200,
  /** The thread checks its own time every millisecond. */
  hangUs: secondsToUs(5),
  /** A start takes half a second on a quiet machine. */
  startUs: secondsToUs(30),
  idleUs: secondsToUs(60),
  restUs: secondsToUs(60),
} satisfies AskedThreadLimits & { workMsMax: number }

export interface TokenCounterOptions {
  readonly clock: Clock
  readonly limits?: Partial<typeof TOKEN_COUNTER_DEFAULTS>
  /** The thread's module; a test may bring another. */
  readonly thread?: URL
}

export interface CountQuestion {
  readonly tenantId: string
  readonly texts: readonly string[]
  readonly tokensMax: number
}

export class TokenCounter {
  readonly #workMsMax: number
  readonly #thread: AskedThread<CountWork, CountedTexts>

  constructor({ clock, limits: own = {}, thread }: TokenCounterOptions) {
    const limits = { ...TOKEN_COUNTER_DEFAULTS, ...own }
    const module = thread ?? new URL('./live-token-thread.ts', import.meta.url)
    this.#workMsMax = limits.workMsMax
    this.#thread = new AskedThread({ clock, module, limits, waitsForStart: true })
  }

  get waitingCount(): number {
    return this.#thread.waitingCount
  }

  get isLoaded(): boolean {
    return this.#thread.isLoaded
  }

  /** Never rejects; undefined when the count is not known in time. */
  count({ tenantId, texts, tokensMax }: CountQuestion): Promise<CountedTexts | undefined> {
    const characters = texts.reduce((sum, text) => sum + text.length, 0)
    return this.#thread.ask(tenantId, { texts, tokensMax, workMsMax: this.#workMsMax }, characters)
  }

  close(): void {
    this.#thread.close()
  }
}
