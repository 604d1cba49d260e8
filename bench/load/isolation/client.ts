import { setTimeout as sleep } from 'node:timers/promises'
import { LoadTarget } from '../../../src/load/http-load-target.ts'
import { type Ask, bodyOf, type Column, planOf, SECONDS, WARMUP_S } from './plan.ts'

/** An open-loop client: requests are sent when they are due, whatever became of others, and times count from then. */
export const PROMISE = { ttftMs: 1_000, interTokenMs: 100, totalMs: 40_000 }

export interface Seen {
  readonly ask: Ask
  readonly outcome: 'good' | 'late' | 'refused' | 'failed'
  readonly code: string
  readonly firstMs: number | undefined
}

export interface Sent {
  readonly seen: readonly Seen[]
  /** How late requests were sent: a busy machine measures itself. */
  readonly lagP99Ms: number
}

const CONNECTIONS_MAX = 4_096
/** After its promise a request is given this long before it is cancelled. */
const GRACE_MS = 2_000
const LOOK_EVERY_MS = 100

/** `urls` get the requests in turn; each tenant's key is its name after `sk-`. */
export async function sendPlan(urls: readonly string[], column: Column, seed: number): Promise<Sent> {
  const targets = urls.map((url) => new LoadTarget({ url, connectionsMax: CONNECTIONS_MAX, silenceMsMax: 120_000 }))
  const plan = planOf(column, seed).map((ask, index) => ({ ask, body: bodyOf(ask, index, seed) }))
  const zeroMs = performance.now() + WARMUP_S * 1_000
  const sent: OneRequest[] = []
  const lagsMs: number[] = []
  for (const [index, { ask, body }] of plan.entries()) {
    const dueMs = zeroMs + ask.atS * 1_000
    while (performance.now() < dueMs) await sleep(Math.max(0, Math.min(LOOK_EVERY_MS, dueMs - performance.now())))
    lagsMs.push(performance.now() - dueMs)
    for (const one of sent) one.giveUp(performance.now())
    sent.push(new OneRequest(targets[index % targets.length] as LoadTarget, ask, body, dueMs))
  }
  const endMs = zeroMs + SECONDS * 1_000 + PROMISE.totalMs + GRACE_MS
  while (sent.some(({ isOpen }) => isOpen) && performance.now() < endMs) {
    for (const one of sent) one.giveUp(performance.now())
    await sleep(LOOK_EVERY_MS)
  }
  await Promise.all(targets.map((target) => target.close()))
  const ascending = lagsMs.toSorted((a, b) => a - b)
  return {
    seen: sent.filter(({ ask }) => ask.atS >= 0).map((one) => one.seen()),
    lagP99Ms: ascending[Math.floor(0.99 * ascending.length)] ?? 0,
  }
}

class OneRequest {
  readonly ask: Ask
  readonly #dueMs: number
  readonly #cancel: () => void
  #firstMs: number | undefined
  #endMs: number | undefined
  #outcome: 'finished' | 'refused' | 'failed' | 'cancelled' | undefined
  #code = ''

  constructor(target: LoadTarget, ask: Ask, body: string, dueMs: number) {
    this.ask = ask
    this.#dueMs = dueMs
    this.#cancel = target.send(body, ['authorization', `Bearer sk-${ask.tenant}`], {
      begin: () => {},
      tokens: (count) => {
        if (count > 0) this.#firstMs ??= performance.now() - dueMs
      },
      end: (ending) => {
        this.#endMs = performance.now() - dueMs
        this.#outcome = ending.kind
        if (ending.kind === 'refused') this.#code = `${ending.status} ${ending.code}`
        else if (ending.kind === 'failed') this.#code = ending.code
      },
    })
  }

  get isOpen(): boolean {
    return this.#outcome === undefined
  }

  /** Only an answer that was broken anyway is cancelled: one without its first token long after the promise, or over time. */
  giveUp(nowMs: number): void {
    if (!this.isOpen) return
    const ageMs = nowMs - this.#dueMs
    const isFirstLate = this.#firstMs === undefined && ageMs > PROMISE.ttftMs + 2 * GRACE_MS
    if (isFirstLate || ageMs > PROMISE.totalMs + GRACE_MS) this.#cancel()
  }

  seen(): Seen {
    const firstMs = this.#firstMs
    const isInTime = firstMs !== undefined && firstMs <= PROMISE.ttftMs && (this.#endMs ?? Infinity) <= PROMISE.totalMs
    const outcome =
      this.#outcome === 'finished'
        ? isInTime
          ? 'good'
          : 'late'
        : this.#outcome === 'cancelled'
          ? 'late'
          : this.#outcome
    return { ask: this.ask, outcome: outcome ?? 'late', code: this.#code, firstMs }
  }
}
