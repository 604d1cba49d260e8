/**
 * Ports of queues: where messages with lines come from, where their answers go, and what is remembered of them.
 *
 * Obligations. A source gives a message to one receiver at a time, for as long as it is hidden, and again to anyone when
 * that time is over, until it is removed. A sink may be given an answer twice, under the same id. The store keeps the
 * first answer of a message; a second one is not kept.
 */
export interface SourceMessage {
  /** The same at every delivery. */
  readonly id: string
  readonly text: string
  /** How often the message was delivered, this time included. */
  readonly receives: number
  /** Names this delivery. */
  readonly handle: string
}

export interface MessageSource {
  /** Waits a while for messages; none when none came, or when `stop` is aborted. Messages are hidden for `hiddenMs`. */
  receive(limit: number, hiddenMs: number, stop: AbortSignal): Promise<readonly SourceMessage[]>
  /** Hides messages for this long from now; 0: they may be delivered again at once. */
  hide(messages: readonly SourceMessage[], hiddenMs: number): Promise<void>
  remove(messages: readonly SourceMessage[]): Promise<void>
}

export interface SinkAnswer {
  /** The message's id. */
  readonly id: string
  readonly document: string
}

export interface MessageSink {
  /** Ids of the answers that are durable there; the others are to be sent again. */
  send(answers: readonly SinkAnswer[]): Promise<readonly string[]>
  /** Bytes of one answer. */
  readonly bytesMax: number
}

/** A queue in both directions. */
export interface MessageQueue extends MessageSource, MessageSink {
  close(): void
}

/** What is remembered of messages, so that none is answered twice. */
export interface MessageStore {
  /** Keeps answers that are not there yet; tells of all of these messages what is kept. Durable when it returns. */
  keepAnswers(queue: QueueRef, answers: readonly SinkAnswer[], nowMs: number): Promise<readonly RememberedAnswer[]>
  /** What is kept of these messages. */
  keptAnswers(queue: QueueRef, ids: readonly string[]): Promise<readonly RememberedAnswer[]>
  /** The sink has these answers: their texts go. */
  markSent(queue: QueueRef, ids: readonly string[]): Promise<void>
  /** The source has removed these messages. */
  markRemoved(queue: QueueRef, ids: readonly string[], nowMs: number): Promise<void>
  /** Forgets what nobody will ask for; tells how many rows went. */
  sweepMessages(bounds: MessageSweep): Promise<number>
}

export interface QueueRef {
  readonly tenantId: string
  readonly queueId: string
}

export interface RememberedAnswer {
  readonly id: string
  /** Absent: the sink has it. */
  readonly document: string | undefined
}

export interface MessageSweep {
  /** Removed messages may be delivered once more for a while: a queue's servers do not agree at once. */
  readonly removedBeforeMs: number
  /** No queue keeps a message for longer. */
  readonly createdBeforeMs: number
  readonly limit: number
}
