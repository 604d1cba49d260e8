import type { Clock, Instant } from '../base/clock.ts'
import { callOnce } from './http-call.ts'

/**
 * The use of GPUs as NVIDIA's DCGM exporter tells it: the mean of `DCGM_FI_DEV_GPU_UTIL` over all series of one address.
 * Asked again when somebody wants to know and the last answer is older than `EVERY_US`; nobody waits for it. An answer is
 * believed for `BELIEVED_US`. Bounds: one call at a time, two seconds, 4 MiB.
 */
const EVERY_US = 10_000_000
const BELIEVED_US = 30_000_000
const TIMEOUT_MS = 2_000

export class DcgmUse {
  readonly #clock: Clock
  readonly #url: string
  #askedAt: Instant = Number.NEGATIVE_INFINITY
  #isAsking = false
  #known: { readonly at: Instant; readonly ratio: number } | undefined

  constructor(clock: Clock, url: string) {
    this.#clock = clock
    this.#url = url
  }

  /** 0 … 1; undefined while nothing is known. */
  ratio(): number | undefined {
    const now = this.#clock.now()
    if (!this.#isAsking && now - this.#askedAt >= EVERY_US) void this.#ask(now)
    return this.#known !== undefined && now - this.#known.at < BELIEVED_US ? this.#known.ratio : undefined
  }

  async #ask(now: Instant): Promise<void> {
    this.#isAsking = true
    this.#askedAt = now
    try {
      const { status, text } = await callOnce({ url: this.#url, method: 'GET', timeoutMs: TIMEOUT_MS })
      const ratio = status === 200 ? meanUse(text) : undefined
      if (ratio !== undefined) this.#known = { at: this.#clock.now(), ratio }
    } catch {
      // The exporter is away: what is known grows old.
    }
    this.#isAsking = false
  }
}

export function meanUse(text: string): number | undefined {
  let [sum, count] = [0, 0]
  for (const [, value] of text.matchAll(/^DCGM_FI_DEV_GPU_UTIL(?:\{[^\n}]*\})?[ \t]+([0-9.eE+-]+)/gm)) {
    const percent = Number(value)
    if (!Number.isFinite(percent)) continue
    sum += Math.min(100, Math.max(0, percent))
    count++
  }
  return count === 0 ? undefined : sum / count / 100
}
