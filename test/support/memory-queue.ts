import type { MessageQueue, SinkAnswer, SourceMessage } from '../../src/lifecycle/message-ports.ts'

/** A queue in memory, with hands on its messages. Time passes when a test says so. */
export class MemoryQueue implements MessageQueue {
  bytesMax = 262_144
  readonly sent: SinkAnswer[] = []
  readonly removed: string[] = []
  /** Called before each call; may throw. */
  onCall: (call: 'receive' | 'hide' | 'remove' | 'send') => void = () => {}
  /** Answers that the sink does not take. */
  refuses: (answer: SinkAnswer) => boolean = () => false
  readonly #messages = new Map<string, { text: string; receives: number; visibleAtMs: number; handle: string }>()
  #nowMs = 0
  #deliveries = 0
  #wake = (): void => {}

  put(id: string, text: string): void {
    this.#messages.set(id, { text, receives: 0, visibleAtMs: 0, handle: '' })
    this.#wake()
  }

  /** Messages that were hidden may be visible afterwards. */
  pass(ms: number): void {
    this.#nowMs += ms
    this.#wake()
  }

  /** How long messages are hidden from now on, by id. */
  hiddenMs(): Record<string, number> {
    return Object.fromEntries([...this.#messages].map(([id, one]) => [id, Math.max(0, one.visibleAtMs - this.#nowMs)]))
  }

  async receive(limit: number, hiddenMs: number, stop: AbortSignal): Promise<readonly SourceMessage[]> {
    this.onCall('receive')
    for (;;) {
      const found = this.#take(limit, hiddenMs)
      if (found.length > 0 || stop.aborted) return found
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        stop.addEventListener('abort', () => resolve(), { once: true })
      })
    }
  }

  #take(limit: number, hiddenMs: number): SourceMessage[] {
    const found: SourceMessage[] = []
    for (const [id, one] of this.#messages) {
      if (one.visibleAtMs > this.#nowMs || found.length === limit) continue
      one.receives++
      one.visibleAtMs = this.#nowMs + hiddenMs
      one.handle = String(++this.#deliveries)
      found.push({ id, text: one.text, receives: one.receives, handle: one.handle })
    }
    return found
  }

  async hide(messages: readonly SourceMessage[], hiddenMs: number): Promise<void> {
    this.onCall('hide')
    for (const { id, handle } of messages) {
      const one = this.#messages.get(id)
      if (one?.handle === handle) one.visibleAtMs = this.#nowMs + hiddenMs
    }
    this.#wake()
  }

  async remove(messages: readonly SourceMessage[]): Promise<void> {
    this.onCall('remove')
    for (const { id, handle } of messages) {
      if (this.#messages.get(id)?.handle !== handle) continue
      this.#messages.delete(id)
      this.removed.push(id)
    }
  }

  async send(answers: readonly SinkAnswer[]): Promise<readonly string[]> {
    this.onCall('send')
    const taken = answers.filter((answer) => !this.refuses(answer))
    this.sent.push(...taken)
    return taken.map(({ id }) => id)
  }

  close(): void {}
}
