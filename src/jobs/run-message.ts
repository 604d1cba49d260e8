import type { Cancellation } from '../base/cancellation.ts'
import { usToMs } from '../base/clock.ts'
import { lineIdOf, messageJobId } from '../domain/job.ts'
import type { SourceMessage } from '../lifecycle/message-ports.ts'
import { readBatchLine, unrunLine } from '../wire/batch-line.ts'
import { BATCH_ENDPOINTS } from '../wire/batches.ts'
import { type RunLineWorld, runLine } from './run-line.ts'

/**
 * The line of one message, until it has an answer. Every message gets one: what cannot be read, and what was delivered too
 * often, is answered with an error, so that no message comes for ever. Undefined when it was cancelled.
 */
export interface MessageTerms {
  /** The queue. */
  readonly id: string
  /** Whose key the lines run with, as a job has it. */
  readonly caller: string
  /** Deliveries of one message; after that its line is answered with an error. */
  readonly receivesMax: number
  /** For how long a line is tried. */
  readonly windowMs: number
}

export interface MessageAnswer {
  readonly lineId: string
  readonly customId: string
  /** One JSON document, as a line of a file of answers. */
  readonly document: string
}

export async function runMessage(
  world: RunLineWorld,
  terms: MessageTerms,
  message: SourceMessage,
  stop: Cancellation,
): Promise<MessageAnswer | undefined> {
  const job = { tenantId: '', id: messageJobId(terms.id, message.id) }
  const lineId = lineIdOf(job, 0)
  const read = readBatchLine(message.text, 1)
  if ('code' in read) return refused(lineId, '', read)
  const { customId, url } = read
  if (message.receives > terms.receivesMax) {
    const because = `This message was delivered ${message.receives} times, and no answer of it was kept.`
    return refused(lineId, customId, { code: 'too_many_receives', message: because })
  }
  if (!BATCH_ENDPOINTS.includes(url)) {
    const because = `Invalid 'url': it must be one of ${BATCH_ENDPOINTS.join(', ')}.`
    return refused(lineId, customId, { code: 'invalid_url', message: because, param: 'url' })
  }
  const expiresAtMs = usToMs(world.clock.now()) + terms.windowMs
  const line = { job, no: 0, at: 0, length: message.text.length, attempt: message.receives, tries: 0 }
  const asked = { id: job.id, caller: terms.caller, endpoint: url, expiresAtMs }
  const answer = await runLine(world, asked, line, { text: message.text, stop })
  if (answer === undefined && stop.isCancelled) return undefined
  return { lineId, customId, document: answer?.text ?? unrunLine(lineId, customId, 'expired') }
}

const refused = (lineId: string, customId: string, error: object): MessageAnswer => ({
  lineId,
  customId,
  document: JSON.stringify({ id: lineId, custom_id: customId, response: null, error }),
})
