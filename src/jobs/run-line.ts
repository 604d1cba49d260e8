import type { Cancellation } from '../base/cancellation.ts'
import { type Clock, msToUs, usToMs } from '../base/clock.ts'
import { type ClaimedLine, type LineAnswer, lineIdOf } from '../domain/job.ts'
import type { LineAsk, LineRunner, LineTerms } from '../lifecycle/job-ports.ts'
import { answerLine, readBatchLine } from '../wire/batch-line.ts'
import { TRIES_MAX, WAIT_MS_MAX } from './job-options.ts'

/**
 * One line, until it has an answer that counts: told to come back later, it does; failed by an engine, it tries again a
 * few times. Undefined when it was cancelled, or the job's window has closed: then it has no answer.
 */
export interface RunLineWorld {
  readonly clock: Clock
  readonly lines: LineRunner
  /** The line was told to come back later. */
  readonly onRefused: () => void
  /** The band of the next try. */
  readonly bandNow: () => LineAsk['band']
}

/** Between two tries of a line that an engine has failed. */
const TRY_AGAIN_MS = 1_000

export async function runLine(
  { clock, lines, onRefused, bandNow }: RunLineWorld,
  job: LineTerms,
  line: ClaimedLine,
  { text, stop }: { readonly text: string; readonly stop: Cancellation },
): Promise<LineAnswer | undefined> {
  const { no, attempt } = line
  const id = lineIdOf(job, no)
  const read = readBatchLine(text, no + 1)
  const answer = (isError: boolean, answered: string): LineAnswer => ({
    job: line.job,
    no,
    attempt,
    isError,
    text: answered,
  })
  // The file was good when it was validated: it has changed on its disk since.
  if ('code' in read) return answer(true, JSON.stringify({ id, custom_id: '', response: null, error: read }))
  const body = JSON.stringify(read.body)
  for (let tries = line.tries; ; ) {
    const leftMs = job.expiresAtMs - usToMs(clock.now())
    if (leftMs <= 0 || stop.isCancelled) return undefined
    const ticketId = ticketOf(id, tries)
    const run = lines.run({ job, ticketId, body, deadlineMs: Math.ceil(leftMs), band: bandNow() })
    const forget = stop.onCancel(() => run.cancel())
    const end = await run.done
    forget()
    if (end.kind === 'gone') return undefined
    const { status, retryAfterMs } = end
    const told = { status, requestId: ticketId, body: end.body }
    if (status < 300) return answer(false, answerLine(id, read.customId, told))
    const isLater = retryAfterMs !== undefined && (status === 429 || status === 503)
    if (!isLater && (status < 500 || tries - line.tries >= TRIES_MAX))
      return answer(true, answerLine(id, read.customId, told))
    if (isLater) onRefused()
    // A ticket that has ended keeps what was booked for it; the next try is another one.
    tries++
    await waited(clock, isLater ? Math.min(retryAfterMs, WAIT_MS_MAX) : TRY_AGAIN_MS, stop)
  }
}

/**
 * The ticket of a line has the same id when a lost line is run again: should the lost run have been charged before it
 * was lost, the ledger knows the ticket and charges it no second time.
 */
const ticketOf = (id: string, tries: number): string => (tries === 0 ? id : `${id}.${tries}`)

function waited(clock: Clock, ms: number, stop: Cancellation): Promise<void> {
  return new Promise((resolve) => {
    let forget = (): void => {}
    const end = clock.at(clock.now() + msToUs(ms), () => {
      forget()
      resolve()
    })
    forget = stop.onCancel(() => {
      end()
      resolve()
    })
  })
}
