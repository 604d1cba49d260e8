import type { SQSClient } from '@aws-sdk/client-sqs'
import type { MessageQueue, SinkAnswer, SourceMessage } from '../lifecycle/message-ports.ts'

/**
 * Queues of SQS, or of a server that speaks its language: messages come from one, answers go to the other. The package of
 * AWS is loaded when a queue is configured, and not before; it finds credentials as it does everywhere (environment,
 * profile, role of the machine or of the pod).
 */
export interface SqsQueueOptions {
  readonly url: string
  readonly answersUrl: string
  readonly region: string
}

type Sqs = typeof import('@aws-sdk/client-sqs')

const silence = (): void => {}
const SILENT = { debug: silence, info: silence, warn: silence, error: silence }
/** SQS takes no more in one call. */
const PER_CALL = 10
/** Older queues take 256 KiB, for a message and for all messages of a call; the attribute needs some of it. */
const BYTES_MAX = 262_144 - 1_024
/** Longest wait that SQS has. A call that takes much longer is lost. */
const WAIT_S = 20
const CALL_MS = 30_000
const CONNECT_MS = 5_000
/** The message that an answer is of. */
const ATTRIBUTE = 'message_id'

export async function openSqsQueue(options: SqsQueueOptions): Promise<MessageQueue> {
  const sqs = await loadSqs()
  const client = new sqs.SQSClient({
    region: options.region,
    maxAttempts: 2,
    // It would tell the console that a queue has an address of its own.
    logger: SILENT,
    requestHandler: { connectionTimeout: CONNECT_MS, requestTimeout: CALL_MS },
  })
  return new SqsQueue(sqs, client, options)
}

async function loadSqs(): Promise<Sqs> {
  try {
    return await import('@aws-sdk/client-sqs')
  } catch {
    throw new Error('the package @aws-sdk/client-sqs is not installed. Install it beside Spillway')
  }
}

class SqsQueue implements MessageQueue {
  readonly bytesMax = BYTES_MAX
  readonly #sqs: Sqs
  readonly #client: SQSClient
  readonly #options: SqsQueueOptions

  constructor(sqs: Sqs, client: SQSClient, options: SqsQueueOptions) {
    this.#sqs = sqs
    this.#client = client
    this.#options = options
  }

  async receive(limit: number, hiddenMs: number, stop: AbortSignal): Promise<readonly SourceMessage[]> {
    const command = new this.#sqs.ReceiveMessageCommand({
      QueueUrl: this.#options.url,
      MaxNumberOfMessages: Math.min(PER_CALL, limit),
      WaitTimeSeconds: WAIT_S,
      VisibilityTimeout: Math.ceil(hiddenMs / 1_000),
      MessageSystemAttributeNames: ['ApproximateReceiveCount'],
    })
    try {
      const { Messages = [] } = await this.#client.send(command, { abortSignal: stop })
      return Messages.map(({ MessageId = '', Body = '', ReceiptHandle = '', Attributes }) => ({
        id: MessageId,
        text: Body,
        receives: Number(Attributes?.ApproximateReceiveCount ?? 1),
        handle: ReceiptHandle,
      }))
    } catch (error) {
      if (stop.aborted) return []
      throw error
    }
  }

  /** A message that is not held any more is another receiver's by now; what its line is answered is kept once. */
  async hide(messages: readonly SourceMessage[], hiddenMs: number): Promise<void> {
    const VisibilityTimeout = Math.ceil(hiddenMs / 1_000)
    for (const some of inTens(messages)) {
      const Entries = some.map(({ handle }, n) => ({ Id: String(n), ReceiptHandle: handle, VisibilityTimeout }))
      await this.#client.send(
        new this.#sqs.ChangeMessageVisibilityBatchCommand({ QueueUrl: this.#options.url, Entries }),
      )
    }
  }

  async remove(messages: readonly SourceMessage[]): Promise<void> {
    for (const some of inTens(messages)) {
      const Entries = some.map(({ handle }, n) => ({ Id: String(n), ReceiptHandle: handle }))
      const command = new this.#sqs.DeleteMessageBatchCommand({ QueueUrl: this.#options.url, Entries })
      const { Failed = [] } = await this.#client.send(command)
      const [first] = Failed
      if (first !== undefined) throw new Error(`a message could not be removed: ${first.Code} ${first.Message ?? ''}`)
    }
  }

  async send(answers: readonly SinkAnswer[]): Promise<readonly string[]> {
    const taken: string[] = []
    for (const some of inCalls(answers)) {
      const Entries = some.map((answer, n) => entryOf(answer, n, this.#options.answersUrl.endsWith('.fifo')))
      const command = new this.#sqs.SendMessageBatchCommand({ QueueUrl: this.#options.answersUrl, Entries })
      const { Successful = [] } = await this.#client.send(command)
      for (const { Id } of Successful) {
        const answer = some[Number(Id)]
        if (answer !== undefined) taken.push(answer.id)
      }
    }
    return taken
  }

  close(): void {
    this.#client.destroy()
  }
}

/** A queue that keeps its order drops what comes twice within five minutes. */
const entryOf = ({ id, document }: SinkAnswer, n: number, isFifo: boolean) => ({
  Id: String(n),
  MessageBody: asMessage(document),
  MessageAttributes: { [ATTRIBUTE]: { DataType: 'String', StringValue: id } },
  ...(isFifo && { MessageGroupId: id, MessageDeduplicationId: id }),
})

/** Characters that a message may not have. They stand in texts of JSON, where their escapes mean the same. */
const asMessage = (document: string): string =>
  document
    .replaceAll(/[\uFFFE\uFFFF]/g, escapeOf)
    .replaceAll(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g, escapeOf)

const escapeOf = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

function* inTens<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < items.length; at += PER_CALL) yield items.slice(at, at + PER_CALL)
}

/** As many as one call takes, by number and by bytes. */
function* inCalls(answers: readonly SinkAnswer[]): Generator<readonly SinkAnswer[]> {
  let some: SinkAnswer[] = []
  let bytes = 0
  for (const answer of answers) {
    const size = Buffer.byteLength(answer.document) + ATTRIBUTE_BYTES
    if (some.length === PER_CALL || (some.length > 0 && bytes + size > BYTES_MAX)) {
      yield some
      some = []
      bytes = 0
    }
    some.push(answer)
    bytes += size
  }
  if (some.length > 0) yield some
}

const ATTRIBUTE_BYTES = 256
