import { type CancelTimer, type Clock, msToUs, secondsToUs } from '../base/clock.ts'
import type { GatewayQuestion, GatewayStore, ToldTally } from '../domain/gateways.ts'
import type { Platform } from '../lifecycle/platform.ts'
import { readTally } from '../policy/rollout/read-tally.ts'

/**
 * What gateways on one durable store tell each other: every second that they are there, and what each has seen of releases
 * that are tried, so that the leader judges all of it; and, when asked, what they remember of a request.
 *
 * Totals, not differences: what comes late, twice or not at all counts once. A store that is away delays it, and nothing
 * else waits for it.
 */
export interface ExchangeParts {
  readonly clock: Clock
  readonly store: GatewayStore
  readonly gatewayId: string
  readonly makeId: () => string
  readonly platform: Platform
  /** Answers a question of another gateway; undefined: nothing is known here. */
  readonly answerOf: (question: Pick<GatewayQuestion, 'kind' | 'body'>) => string | undefined
}

const EVERY_US = secondsToUs(1)
/** Questions of this gateway that are open at once: an answer takes milliseconds. */
const ASKING_MAX = 8
/** Questions of this gateway in a second: whoever asks for ids that do not exist must not keep all gateways busy. */
const ASKED_PER_BEAT_MAX = 20
/** Gateways that do not hear notices look every second. */
const ANSWER_US_MAX = msToUs(2_500)
/** Between two looks for answers, where no notice comes. */
const LOOK_US = msToUs(250)

export class GatewayExchange {
  readonly #parts: ExchangeParts
  #otherIds: readonly string[] = []
  #serial = 0
  #lastTold = ''
  #isClosed = false
  #beating: Promise<void> | undefined
  #isNoticed = false
  #cancelBeat: CancelTimer | undefined
  #askingCount = 0
  #askedCount = 0
  readonly #waiters = new Set<() => void>()

  constructor(parts: ExchangeParts) {
    this.#parts = parts
  }

  /** The other gateways that were there at the last beat. */
  get otherIds(): readonly string[] {
    return this.#otherIds
  }

  /** Beats at once, and then every second. Never throws. */
  beat(): void {
    if (this.#isClosed) return
    this.#isNoticed = this.#beating !== undefined
    if (this.#isNoticed) return
    this.#cancelBeat?.()
    this.#beating = this.#beatOnce().finally(() => {
      this.#beating = undefined
      if (this.#isClosed) return
      const { clock } = this.#parts
      if (this.#isNoticed) this.beat()
      else this.#cancelBeat = clock.at(clock.now() + EVERY_US, () => this.beat())
    })
  }

  /** An answer has come, to somebody's question. */
  answered(): void {
    for (const wake of this.#waiters) wake()
  }

  /**
   * What the other gateways answer: until all that are there have, until `isEnough`, or until the time is over. Nothing
   * where too much is being asked already.
   */
  async ask(
    kind: string,
    body: unknown,
    isEnough: (answers: readonly string[]) => boolean,
  ): Promise<readonly string[]> {
    const { store, makeId, gatewayId } = this.#parts
    if (this.#otherIds.length === 0 || this.#askingCount >= ASKING_MAX || this.#askedCount >= ASKED_PER_BEAT_MAX)
      return []
    this.#askingCount++
    this.#askedCount++
    const id = makeId()
    try {
      if (!(await store.ask({ id, kind, body, askedBy: gatewayId }))) return []
      return await this.#collect(id, isEnough)
    } catch {
      return []
    } finally {
      this.#askingCount--
      void store.drop(id).catch(() => {})
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelBeat?.()
    await this.#beating
    await this.#parts.store.leave(this.#parts.gatewayId).catch(() => {})
  }

  async #collect(id: string, isEnough: (answers: readonly string[]) => boolean): Promise<readonly string[]> {
    const { clock, store } = this.#parts
    const endsAt = clock.now() + ANSWER_US_MAX
    for (;;) {
      const given = await store.answersTo(id)
      const answers = given.filter((text) => text !== '')
      if (given.length >= this.#otherIds.length || isEnough(answers) || clock.now() >= endsAt) return answers
      await this.#nextAnswer()
    }
  }

  #nextAnswer(): Promise<void> {
    const { clock } = this.#parts
    return new Promise((resolve) => {
      const wake = (): void => {
        cancel()
        this.#waiters.delete(wake)
        resolve()
      }
      const cancel = clock.at(clock.now() + LOOK_US, wake)
      this.#waiters.add(wake)
    })
  }

  async #beatOnce(): Promise<void> {
    const { store, gatewayId } = this.#parts
    this.#askedCount = 0
    try {
      const { otherIds, questions } = await store.beat(gatewayId)
      this.#otherIds = otherIds
      for (const question of questions) await this.#answer(question)
      await this.#exchangeTallies()
    } catch {
      // The store is away: the next beat tries again.
    }
  }

  async #answer({ id, kind, body }: GatewayQuestion): Promise<void> {
    const { store, gatewayId, answerOf } = this.#parts
    await store.answer(gatewayId, id, answerOf({ kind, body }) ?? '')
  }

  async #exchangeTallies(): Promise<void> {
    const { store, gatewayId, platform } = this.#parts
    const { rollouts } = platform.policies
    const bodies = Array.from(rollouts, ([model, rollout]) => ({ model, body: rollout.tally() })).filter(
      ({ body }) => body !== undefined,
    )
    if (bodies.length === 0) return
    const text = JSON.stringify(bodies)
    const isNews = text !== this.#lastTold
    const serial = isNews ? ++this.#serial : this.#serial
    const told = bodies.map(({ model, body }): ToldTally => ({ model, serial, body: isNews ? body : null }))
    const heard = await store.exchange(gatewayId, told)
    this.#lastTold = text
    for (const { model } of bodies) {
      const others = heard.filter((tally) => tally.model === model).map(({ body }) => readTally(body))
      rollouts.get(model)?.hear(others.filter((tally) => tally !== undefined))
    }
  }
}
