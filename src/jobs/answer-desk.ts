import { type CancelTimer, type Clock, msToUs, usToMs } from '../base/clock.ts'
import type {
  MessageQueue,
  MessageStore,
  QueueRef,
  RememberedAnswer,
  SourceMessage,
} from '../lifecycle/message-ports.ts'

/**
 * What becomes of a message whose line is answered: the answer is kept, then sent, then the message is removed. Each step
 * is taken when the one before is durable, so a process that dies between two of them leaves a message that the next
 * receiver takes up where it stands. A step that fails is taken again.
 */
export interface HeldMessage {
  /** Its newest delivery. */
  message: SourceMessage
  readonly ref: QueueRef
}

export interface DeskWorld {
  readonly clock: Clock
  readonly queue: MessageQueue
  readonly store: MessageStore
  readonly onFault: (where: string, error: unknown) => void
}

interface Item {
  readonly held: HeldMessage
  document: string
  step: 'answered' | 'kept' | 'sent'
  sends: number
}

/** Answers of one round. */
const ROUND_MAX = 100
/** After a round in which something failed. */
const REST_MS = 1_000
/** An answer that the sink does not take is left after this many tries: the message comes again, and does not hold a place. */
const SENDS_MAX = 10

export class AnswerDesk {
  readonly #world: DeskWorld
  readonly #onLeft: (id: string) => void
  readonly #items = new Map<string, Item>()
  #working: Promise<void> | undefined
  #isClosed = false
  #wakeRest: CancelTimer = () => {}

  /** `onLeft`: the message is not held any more. */
  constructor(world: DeskWorld, onLeft: (id: string) => void) {
    this.#world = world
    this.#onLeft = onLeft
  }

  answered(held: HeldMessage, document: string): void {
    this.#add({ held, document, step: 'answered', sends: 0 })
  }

  /** The message was answered before it came here. */
  known(held: HeldMessage, { document }: RememberedAnswer): void {
    this.#add({ held, document: document ?? '', step: document === undefined ? 'sent' : 'kept', sends: 0 })
  }

  /** Tries each step once more. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#wakeRest()
    await this.#working
  }

  #add(item: Item): void {
    this.#items.set(item.held.message.id, item)
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined
    })
  }

  async #work(): Promise<void> {
    while (this.#items.size > 0) {
      let hasFailed = false
      try {
        hasFailed = !(await this.#round())
      } catch (error) {
        hasFailed = true
        this.#world.onFault('queues', error)
      }
      if (hasFailed && this.#isClosed) return
      if (hasFailed) await this.#rest()
    }
  }

  /** False where the sink has not taken everything. */
  async #round(): Promise<boolean> {
    const [first] = this.#items.values()
    if (first === undefined) return true
    const { ref } = first.held
    const items = [...this.#items.values()].filter(({ held }) => held.ref.tenantId === ref.tenantId).slice(0, ROUND_MAX)
    await this.#keep(ref, items)
    const isAllSent = await this.#send(ref, items)
    await this.#remove(ref, items)
    return isAllSent
  }

  async #keep(ref: QueueRef, items: readonly Item[]): Promise<void> {
    const { store, clock } = this.#world
    const given = items.filter(({ step }) => step === 'answered')
    if (given.length === 0) return
    const answers = given.map(({ held, document }) => ({ id: held.message.id, document }))
    const kept = new Map((await store.keepAnswers(ref, answers, nowMsOf(clock))).map((one) => [one.id, one]))
    for (const item of given) {
      const one = kept.get(item.held.message.id)
      if (one === undefined) continue
      item.step = one.document === undefined ? 'sent' : 'kept'
      item.document = one.document ?? ''
    }
  }

  async #send(ref: QueueRef, items: readonly Item[]): Promise<boolean> {
    const { store, queue, onFault } = this.#world
    const given = items.filter(({ step }) => step === 'kept')
    if (given.length === 0) return true
    const taken = new Set(await queue.send(given.map(({ held, document }) => ({ id: held.message.id, document }))))
    const sent = given.filter(({ held }) => taken.has(held.message.id))
    if (sent.length > 0)
      await store.markSent(
        ref,
        sent.map(({ held }) => held.message.id),
      )
    for (const item of sent) item.step = 'sent'
    for (const item of given) {
      if (item.step !== 'kept' || ++item.sends < SENDS_MAX) continue
      onFault('queues', new Error(`the sink of ${ref.queueId} does not take the answer of ${item.held.message.id}`))
      this.#leave(item)
    }
    return sent.length === given.length
  }

  async #remove(ref: QueueRef, items: readonly Item[]): Promise<void> {
    const { store, queue, clock } = this.#world
    const given = items.filter(({ step }) => step === 'sent')
    if (given.length === 0) return
    await queue.remove(given.map(({ held }) => held.message))
    const ids = given.map(({ held }) => held.message.id)
    for (const item of given) this.#leave(item)
    await store.markRemoved(ref, ids, nowMsOf(clock))
  }

  #leave({ held }: Item): void {
    this.#items.delete(held.message.id)
    this.#onLeft(held.message.id)
  }

  #rest(): Promise<void> {
    const { clock } = this.#world
    return new Promise((resolve) => {
      const end = clock.at(clock.now() + msToUs(REST_MS), resolve)
      this.#wakeRest = () => {
        end()
        resolve()
      }
      if (this.#isClosed) this.#wakeRest()
    })
  }
}

const nowMsOf = (clock: Clock): number => Math.floor(usToMs(clock.now()))
