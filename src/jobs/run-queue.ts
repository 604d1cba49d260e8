import { Cancellation } from '../base/cancellation.ts'
import { type CancelTimer, type Clock, type Instant, msToUs, usToMs } from '../base/clock.ts'
import type { LineRunner } from '../lifecycle/job-ports.ts'
import type { MessageQueue, MessageStore, SourceMessage } from '../lifecycle/message-ports.ts'
import { AnswerDesk, type HeldMessage } from './answer-desk.ts'
import { type LargeAnswerFiles, putInFile } from './large-answer.ts'
import { LineWindow } from './line-window.ts'
import { type MessageTerms, runMessage } from './run-message.ts'

/**
 * Lines that come from a queue, one in each message:
 *
 *   receive ─▶ known already? ─▶ run as a request in the band `offline` ─▶ keep the answer ─▶ send it ─▶ remove the message
 *      ▲             └────────────────── yes ──────────────────────────────────────────────▶┘             │
 *      └── a message whose receiver was lost is delivered again when it is not hidden any more ◀──────────┘
 *
 * A message is hidden from others while its line runs, and removed when its answer is kept and sent. A process that is
 * killed leaves a message that runs again, before its answer was kept, or that only is removed, after that. One queue has
 * one key, whose terms all of its lines have.
 */
export interface QueueTerms extends MessageTerms {
  /** Lines that this process runs at once. */
  readonly runningMax: number
}

export interface QueueWorld {
  readonly clock: Clock
  readonly queue: MessageQueue
  readonly store: MessageStore
  readonly lines: LineRunner
  readonly files: LargeAnswerFiles
  readonly terms: QueueTerms
  /** The tenant of the queue's key, or why its lines cannot run now. */
  readonly tenantOf: () => { readonly tenantId: string } | { readonly because: string }
  /** The platform takes nothing new any more. */
  readonly isLeaving: () => boolean
  readonly complain: (problem: string) => void
  readonly onFault: (where: string, error: unknown) => void
}

/** A message is hidden for this long at a time, and again three times as often: a lost process holds it no longer. */
export const HIDDEN_MS = 60_000
const HIDE_AGAIN_MS = HIDDEN_MS / 3
/** As many as SQS gives at once. */
const RECEIVED_MAX = 10
/** After a fault of the queue, or while the key opens nothing. */
const REST_MS = 1_000
/** Keys that were made at run time are read a moment after the start. */
const PATIENT_ROUNDS = 10
const SWEEP_MS = 60_000
const SWEPT_ROWS = 5_000
const bytesOf = (text: string): number => new TextEncoder().encode(text).length
/** A removed message is known for an hour; one that was not removed for as long as a queue keeps it. */
const REMOVED_KEPT_MS = 3_600_000
const MESSAGE_KEPT_MS = 15 * 24 * 3_600_000

export class QueueRunner {
  readonly #world: QueueWorld
  readonly #window: LineWindow
  readonly #held = new Map<string, HeldMessage>()
  readonly #running = new Map<string, Cancellation>()
  readonly #desk: AnswerDesk
  readonly #stop = new AbortController()
  #looping: Promise<void> | undefined
  #wakeLoop = (): void => {}
  #sweptAt: Instant = Number.NEGATIVE_INFINITY
  #cancelHiding: CancelTimer = () => {}
  #closedRounds = 0

  constructor(world: QueueWorld) {
    this.#world = world
    this.#window = new LineWindow(world.terms.runningMax)
    const onRemoved = (id: string): void => {
      this.#held.delete(id)
      this.#wakeLoop()
    }
    this.#desk = new AnswerDesk(world, onRemoved)
  }

  start(): void {
    this.#looping ??= this.#loop()
    this.#hideAgain()
  }

  /** Messages whose lines run go back to the queue; what is answered is kept and sent. */
  async close(): Promise<void> {
    this.#stop.abort()
    this.#cancelHiding()
    this.#wakeLoop()
    await this.#looping
    for (const stop of this.#running.values()) stop.cancel('the gateway leaves')
    await this.#desk.close()
    const back = [...this.#held.values()].map(({ message }) => message)
    if (back.length > 0) await this.#world.queue.hide(back, 0).catch(() => {})
    this.#world.queue.close()
  }

  async #loop(): Promise<void> {
    const { onFault } = this.#world
    while (!this.#stop.signal.aborted) {
      try {
        await this.#round()
      } catch (error) {
        if (this.#stop.signal.aborted) return
        onFault('queues', error)
        await this.#pause(REST_MS)
      }
    }
  }

  async #round(): Promise<void> {
    const { queue, store, terms, tenantOf, isLeaving, complain } = this.#world
    const owner = tenantOf()
    this.#closedRounds = 'because' in owner ? this.#closedRounds + 1 : 0
    if ('because' in owner && this.#closedRounds === PATIENT_ROUNDS)
      complain(`the queue ${terms.id} is not read: ${owner.because}. Its messages wait`)
    if ('because' in owner || isLeaving()) return this.#pause(REST_MS)
    const ref = { tenantId: owner.tenantId, queueId: terms.id }
    const room = Math.min(this.#window.room(terms.runningMax), terms.runningMax - this.#held.size, RECEIVED_MAX)
    if (room <= 0) return this.#pause(REST_MS)
    const messages = await queue.receive(room, HIDDEN_MS, this.#stop.signal)
    if (messages.length === 0) return
    const ids = messages.map(({ id }) => id)
    const kept = new Map((await store.keptAnswers(ref, ids)).map((one) => [one.id, one]))
    for (const message of messages) {
      const known = kept.get(message.id)
      if (this.#isHeldAgain(message)) continue
      const held = { message, ref }
      this.#held.set(message.id, held)
      if (known === undefined) void this.#run(held)
      else this.#desk.known(held, known)
    }
    await this.#sweep()
  }

  /** A message that was hidden for too short a time comes again while its line runs here: the new delivery counts. */
  #isHeldAgain(message: SourceMessage): boolean {
    const held = this.#held.get(message.id)
    if (held === undefined) return false
    held.message = message
    return true
  }

  async #run(held: HeldMessage): Promise<void> {
    const { clock, lines, terms, queue, files, onFault } = this.#world
    const { message, ref } = held
    const stop = new Cancellation()
    this.#running.set(message.id, stop)
    this.#window.running++
    try {
      const onRefused = (): void => this.#window.refused(clock.now())
      const world = { clock, lines, onRefused, bandNow: () => 'offline' as const }
      const answer = await runMessage(world, terms, message, stop)
      // Cancelled: the close gives the message back.
      if (answer === undefined) return
      const { document } = answer
      // A character has three bytes at most.
      const isLarge = document.length * 3 > queue.bytesMax && bytesOf(document) > queue.bytesMax
      this.#desk.answered(held, isLarge ? await putInFile(files, ref, message, answer) : document)
      this.#window.answered()
    } catch (error) {
      onFault('queues', error)
      // The message is delivered again when it is not hidden any more.
      this.#held.delete(message.id)
    } finally {
      this.#window.running--
      this.#running.delete(message.id)
      this.#wakeLoop()
    }
  }

  #hideAgain(): void {
    const { clock, queue, onFault } = this.#world
    this.#cancelHiding = clock.at(clock.now() + msToUs(HIDE_AGAIN_MS), () => {
      const messages = [...this.#held.values()].map(({ message }) => message)
      if (messages.length > 0) queue.hide(messages, HIDDEN_MS).catch((error: unknown) => onFault('queues', error))
      this.#hideAgain()
    })
  }

  async #sweep(): Promise<void> {
    const { clock, store } = this.#world
    const now = clock.now()
    if (now - this.#sweptAt < msToUs(SWEEP_MS)) return
    this.#sweptAt = now
    const nowMs = Math.floor(usToMs(now))
    const bounds = { removedBeforeMs: nowMs - REMOVED_KEPT_MS, createdBeforeMs: nowMs - MESSAGE_KEPT_MS }
    await store.sweepMessages({ ...bounds, limit: SWEPT_ROWS })
  }

  /** Ends early when a line ends, or at the close. */
  #pause(ms: number): Promise<void> {
    const { clock } = this.#world
    return new Promise((resolve) => {
      const end = clock.at(clock.now() + msToUs(ms), resolve)
      this.#wakeLoop = () => {
        end()
        resolve()
      }
      if (this.#stop.signal.aborted) this.#wakeLoop()
    })
  }
}
