import { type Got, isOk, post } from '../backends/http-get.ts'
import { HttpUpstream } from '../backends/http-upstream.ts'
import type { Clock } from '../base/clock.ts'
import { US_PER_MS } from '../base/clock.ts'
import { readExposition } from '../base/read-exposition.ts'
import type { Config } from '../config/schema.ts'
import { type OtlpResource, otlpMetrics, otlpTraces } from '../telemetry/otlp-json.ts'
import type { SpanSampler } from '../telemetry/span-sampler.ts'

/**
 * Sends spans and metrics to a collector (OTLP over HTTP). One call at a time, each within a time limit; what is refused
 * with 429 or a server error is tried again a few times, then counted as lost. The request's path never waits for it.
 */
const SPANS_PER_CALL = 512
const PAUSE_US = 1_000 * US_PER_MS
const TIMEOUT_MS = 5_000
const TRIES_MAX = 3
/** At the end of the process: what is left gets this long. */
const LAST_TIMEOUT_MS = 2_000

export interface OtlpParts {
  readonly clock: Clock
  readonly spans: SpanSampler
  readonly metricsText: () => string
  readonly resource: OtlpResource
  readonly complain: (problem: string) => void
}

export interface OtlpExporter {
  close(): Promise<void>
}

export function startOtlp({ telemetry }: Pick<Config, 'telemetry'>, parts: OtlpParts): OtlpExporter {
  if (telemetry.otlpUrl === undefined) return { close: async () => {} }
  return new LiveOtlp(telemetry.otlpUrl, telemetry.headers, telemetry.metricsEveryMs, parts)
}

class LiveOtlp implements OtlpExporter {
  readonly #upstream: HttpUpstream
  readonly #parts: OtlpParts
  readonly #metricsEveryUs: number
  readonly #startedAt: number
  readonly #running: Promise<void>
  #isClosing = false
  #isComplained = false
  #wake: () => void = () => {}
  #metricsAt: number

  constructor(url: string, headers: Readonly<Record<string, string>>, metricsEveryMs: number, parts: OtlpParts) {
    this.#upstream = new HttpUpstream({ url, headers, auth: 'none', connectionsMax: 1 })
    this.#parts = parts
    this.#metricsEveryUs = metricsEveryMs * US_PER_MS
    this.#startedAt = parts.clock.now()
    this.#metricsAt = this.#startedAt
    this.#running = this.#run()
  }

  async close(): Promise<void> {
    this.#isClosing = true
    this.#wake()
    await this.#running
    await this.#sendSpans(LAST_TIMEOUT_MS, 1)
    await this.#upstream.close()
  }

  async #run(): Promise<void> {
    const { clock } = this.#parts
    while (!this.#isClosing) {
      await Promise.race([clock.sleep(PAUSE_US), new Promise<void>((resolve) => (this.#wake = resolve))])
      if (this.#isClosing) return
      await this.#sendSpans(TIMEOUT_MS, TRIES_MAX)
      await this.#sendMetrics()
    }
  }

  async #sendSpans(timeoutMs: number, triesMax: number): Promise<void> {
    const { spans, resource } = this.#parts
    for (;;) {
      const batch = spans.shift(SPANS_PER_CALL)
      if (batch.length === 0) return
      if (!(await this.#send('/v1/traces', otlpTraces(batch, resource), timeoutMs, triesMax))) {
        spans.lose(batch.length)
        return
      }
    }
  }

  async #sendMetrics(): Promise<void> {
    const { clock, metricsText, resource } = this.#parts
    const now = clock.now()
    if (this.#metricsEveryUs === 0 || now < this.#metricsAt + this.#metricsEveryUs) return
    this.#metricsAt = now
    const times = { startedAt: this.#startedAt, now }
    await this.#send('/v1/metrics', otlpMetrics(readExposition(metricsText()), resource, times), TIMEOUT_MS, 1)
  }

  async #send(path: string, json: string, timeoutMs: number, triesMax: number): Promise<boolean> {
    let got: Got | undefined
    for (let nth = 0; nth < triesMax && !(nth > 0 && this.#isClosing); nth++) {
      if (nth > 0) await this.#parts.clock.sleep(PAUSE_US * nth)
      got = await post(this.#upstream, this.#upstream.path(path), json, timeoutMs)
      if (isOk(got)) {
        this.#isComplained = false
        return true
      }
      if (got.status >= 400 && got.status < 500 && got.status !== 429) break
    }
    if (!this.#isComplained)
      this.#parts.complain(
        `the collector at telemetry.otlpUrl did not take ${path}: ${got?.status === 0 ? got.text : `it answered ${got?.status}`}`,
      )
    this.#isComplained = true
    return false
  }
}
