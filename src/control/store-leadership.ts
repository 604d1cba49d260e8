import type { CancelTimer, Clock } from '../base/clock.ts'
import type { LeaderStore, LeaseAnswer } from '../domain/leader.ts'
import type { Journal, LeaderRole, Leadership } from '../lifecycle/ports.ts'
import { LeaseTerm, type TermOptions, type TermQuestion } from '../policy/leadership/lease-term.ts'

/**
 * Leads by a row of the store, or follows who does. Asks in the background, one question at a time; what may be believed
 * between two answers is `lease-term.ts`'s business. Never throws: a store that is away means that nobody is known to lead.
 */
export interface LeadershipParts {
  readonly clock: Clock
  readonly journal: Journal
  readonly store: LeaderStore
  /** What is led. */
  readonly name: string
  readonly gatewayId: string
  readonly options?: Partial<TermOptions>
}

export class StoreLeadership implements Leadership {
  readonly #parts: LeadershipParts
  readonly #term: LeaseTerm
  readonly #listeners: Array<() => void> = []
  #told: string | undefined
  #isClosed = false
  #cancelAsk: CancelTimer | undefined
  #asking: Promise<void> | undefined

  constructor(parts: LeadershipParts) {
    this.#parts = parts
    this.#term = new LeaseTerm(parts.options)
  }

  role(): LeaderRole {
    const { clock, name, gatewayId } = this.#parts
    const view = this.#term.viewAt(clock.now())
    if (view.kind === 'leads') return { kind: 'leads', fence: { name, holder: gatewayId, number: view.fence } }
    if (view.kind === 'follows') return view
    return { kind: 'nobody', because: 'the database has not said for a while who leads' }
  }

  /** Calls `listener` when the role is another one. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }

  start(): void {
    if (!this.#isClosed) this.#asking ??= this.#ask().finally(() => this.#asked())
  }

  /** The store refused what this gateway wrote as the leader. */
  depose(): void {
    this.#term.depose(this.#parts.clock.now())
    this.#tell()
    this.start()
  }

  /** The leader may have given up: asks now. */
  notice(): void {
    this.#term.hurry(this.#parts.clock.now())
    if (this.role().kind !== 'leads') this.start()
  }

  /** Gives up the lead, so that the next one need not wait for the end of the term. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelAsk?.()
    await this.#asking
    const role = this.role()
    if (role.kind !== 'leads' || role.fence === undefined) return
    this.#term.depose(this.#parts.clock.now())
    const { store } = this.#parts
    await this.#inTime(store.release(role.fence))
  }

  async #ask(): Promise<void> {
    const { clock } = this.#parts
    this.#cancelAsk?.()
    const question = this.#term.ask(clock.now())
    const answer = await this.#inTime(this.#send(question))
    this.#term.answered(clock.now(), answer)
  }

  #asked(): void {
    this.#asking = undefined
    this.#tell()
    const nextAt = this.#term.nextAt()
    if (this.#isClosed || nextAt === undefined) return
    this.#cancelAsk = this.#parts.clock.at(nextAt, () => this.start())
  }

  #send(question: TermQuestion): Promise<LeaseAnswer> {
    const { store, name, gatewayId: holder } = this.#parts
    const ask = { name, holder, termUs: this.#term.termUs }
    return question.kind === 'acquire' ? store.acquire(ask) : store.renew({ ...ask, fence: question.fence })
  }

  /** Undefined when the store fails, or takes longer than a leader can wait. */
  #inTime<T>(answering: Promise<T>): Promise<T | undefined> {
    const { clock } = this.#parts
    return new Promise((resolve) => {
      const cancel = clock.at(clock.now() + this.#term.answerUsMax, () => resolve(undefined))
      answering.then(resolve, () => resolve(undefined)).finally(() => cancel())
    })
  }

  #tell(): void {
    const { clock, journal, name } = this.#parts
    const role = this.role()
    const fence = role.kind === 'leads' ? role.fence?.number : undefined
    const because =
      role.kind === 'nobody' ? role.because : role.kind === 'follows' ? `gateway ${role.holder}` : 'elected'
    const told = `${role.kind} ${fence ?? because}`
    if (told === this.#told) return
    this.#told = told
    journal.record({ kind: 'leader-changed', at: clock.now(), name, role: role.kind, fence, because })
    for (const listener of this.#listeners) listener()
  }
}
