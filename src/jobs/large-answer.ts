import { type Clock, usToMs } from '../base/clock.ts'
import type { FileBytes, JobStore } from '../lifecycle/job-ports.ts'
import type { QueueRef, SourceMessage } from '../lifecycle/message-ports.ts'
import { ENDED_KEPT_MS } from './job-options.ts'
import type { MessageAnswer } from './run-message.ts'

/** Where answers go that are larger than a message may be. */
export interface LargeAnswerFiles {
  readonly clock: Clock
  readonly store: Pick<JobStore, 'addFile'>
  readonly files: FileBytes
}

/** Puts the answer into a file of its tenant, under an id that comes from the message's; gives the answer that names it. */
export async function putInFile(
  { clock, store, files }: LargeAnswerFiles,
  { tenantId, queueId }: QueueRef,
  { id }: SourceMessage,
  { lineId, customId, document }: MessageAnswer,
): Promise<string> {
  const fileId = `file-output-${queueId}-${id}`.replaceAll(/[^A-Za-z0-9_-]/g, '-').slice(0, 128)
  await files.remove(fileId)
  const appender = files.append(fileId)
  try {
    await appender.write(new TextEncoder().encode(`${document}\n`))
    const bytes = await appender.end()
    const createdAtMs = Math.floor(usToMs(clock.now()))
    await store.addFile({
      id: fileId,
      tenantId,
      name: `${queueId}_${id}_output.jsonl`,
      purpose: 'batch_output',
      bytes,
      createdAtMs,
      expiresAtMs: createdAtMs + ENDED_KEPT_MS,
    })
  } catch (error) {
    await appender.drop()
    throw error
  }
  const message = `The answer is larger than a message may be: it is in the file ${fileId}.`
  const error = { code: 'answer_too_large', message }
  return JSON.stringify({ id: lineId, custom_id: customId, response: null, error, output_file_id: fileId })
}
