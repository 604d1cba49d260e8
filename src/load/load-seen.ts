import { type Clock, type Instant, msToUs } from '../base/clock.ts'
import { NO_USAGE, type Usage } from '../domain/delta.ts'
import type { Settled } from '../domain/entry.ts'
import { Gaps } from '../domain/gaps.ts'
import type { Outcome, Refusal, RefusalCode } from '../domain/outcome.ts'
import { promptTokensOf, type Request } from '../domain/request.ts'
import { servedCost } from '../policy/planning/cost.ts'
import type { LoadEnding, LoadHead, LoadWatcher } from './http-load-reader.ts'

/** What one client saw of one answer, token by token, as journal entries. */
export class LoadSeen implements LoadWatcher {
  readonly #clock: Clock
  readonly #request: Request
  readonly #gaps = new Gaps()
  #head: LoadHead | undefined
  #headAt: Instant | undefined
  #firstTokenAt: Instant | undefined
  #lastTokenAt: Instant | undefined
  #tokens = 0
  hasEnded = false
  onEnd: (ending: LoadEnding) => void = () => {}

  constructor(clock: Clock, request: Request) {
    this.#clock = clock
    this.#request = request
  }

  begin(head: LoadHead): void {
    this.#head = head
    this.#headAt = this.#clock.now()
  }

  /** The tokens of a frame share the time since the one before. */
  tokens(count: number): void {
    const now = this.#clock.now()
    this.#tokens += count
    if (this.#lastTokenAt === undefined) this.#firstTokenAt = now
    else this.#gaps.observe(Math.round((now - this.#lastTokenAt) / count), count)
    this.#lastTokenAt = now
  }

  end(ending: LoadEnding): void {
    this.hasEnded = true
    this.onEnd(ending)
  }

  settled(ending: LoadEnding): Settled {
    const request = this.#request
    const { outcome, because } = judge(ending)
    const usage = this.#usage(ending)
    return {
      kind: 'settled',
      at: this.#clock.now(),
      ticketId: request.id,
      tenantId: request.tenant.id,
      keyId: request.key.id,
      model: request.model,
      servedModel: this.#head?.model ?? request.model,
      releaseId: undefined,
      poolId: undefined,
      replicaId: undefined,
      band: request.band,
      bid: request.bid,
      rung: this.#head?.rung ?? 'full',
      outcome,
      because,
      refusal: refusalOf(ending),
      usage,
      cost: servedCost(usage),
      attempts: 1,
      arrivedAt: request.arrivedAt,
      admittedAt: this.#headAt,
      grantedAt: this.#headAt,
      firstTokenAt: this.#firstTokenAt,
      lastTokenAt: this.#lastTokenAt,
      deadlineAt: request.deadlineAt,
      gaps: this.#tokens > 1 ? this.#gaps : undefined,
      isKept: undefined,
    }
  }

  /** The server's own count if there is one; else the tokens that were sent and those that came. */
  #usage(ending: LoadEnding): Usage {
    if (ending.kind === 'finished' && ending.usage !== undefined) return ending.usage
    if (this.#tokens === 0) return NO_USAGE
    return { promptTokens: promptTokensOf(this.#request), cachedTokens: 0, outputTokens: this.#tokens }
  }
}

/** Codes of requests that had been queued before they were shed. */
const LOST_PLACE: Readonly<Record<string, Outcome>> = { 'waited-too-long': 'expired', evicted: 'evicted' }

function judge(ending: LoadEnding): { outcome: Outcome; because: string } {
  switch (ending.kind) {
    case 'finished':
      return { outcome: 'completed', because: 'finished' }
    case 'cancelled':
      return { outcome: 'cancelled', because: 'client-gone' }
    case 'failed':
      return { outcome: LOST_PLACE[ending.code.replaceAll('_', '-')] ?? 'failed', because: ending.because }
    case 'refused':
      // 429 and 503 are a server that protects itself; every other error is a failure.
      return isShed(ending.status)
        ? { outcome: LOST_PLACE[ending.code] ?? 'rejected', because: ending.because }
        : { outcome: 'failed', because: `${ending.status}: ${ending.because}` }
  }
}

const isShed = (status: number): boolean => status === 429 || status === 503

/** Wait of a client that is refused without a Retry-After. */
const RETRY_UNTOLD_MS = 1_000

/**
 * A load may be sent to any server, whose codes are its own: they are counted in reports and never sent to a client,
 * so they need no row in the gateway's error table.
 */
const seenCode = (code: string): RefusalCode => code.replaceAll('_', '-') as RefusalCode

function refusalOf(ending: LoadEnding): Refusal | undefined {
  if (ending.kind === 'failed') {
    return { code: seenCode(ending.code), because: ending.because, blame: 'platform', retryAfterUs: undefined }
  }
  if (ending.kind !== 'refused') return undefined
  const { status, code, because, retryAfterMs, mayRetry } = ending
  const blame = status === 429 ? 'tenant' : status >= 500 ? 'platform' : 'request'
  const retryAfterUs = isShed(status) && mayRetry ? msToUs(retryAfterMs ?? RETRY_UNTOLD_MS) : undefined
  return { code: seenCode(code), because, blame, retryAfterUs }
}
