import type { Clock } from '../base/clock.ts'
import type { ScaleAnswer } from '../lifecycle/autoscale-ports.ts'

/** One try: it is done, it failed for good, or it may only have been unlucky. */
export type TryAnswer = ScaleAnswer | { readonly kind: 'unlucky'; readonly because: string }

/** Three tries, half a second and then a second apart: an order is asked for again in seconds anyway. */
const TRIES_MAX = 3
const PAUSE_US = 500_000

/** What may only have been unlucky is tried again, unless the order is over; an exception counts as unlucky. */
export async function callAgain(
  clock: Clock,
  once: () => Promise<TryAnswer>,
  isOver: () => boolean = () => false,
): Promise<ScaleAnswer> {
  let because = ''
  for (let tries = 1; tries <= TRIES_MAX; tries++) {
    const answer = await once().catch((error: unknown): TryAnswer => ({ kind: 'unlucky', because: wordOf(error) }))
    if (answer.kind !== 'unlucky') return answer
    because = answer.because
    if (tries < TRIES_MAX) await clock.sleep(tries * PAUSE_US)
    if (isOver()) return { kind: 'failed', because: `${because}, and another gateway may order now` }
  }
  return { kind: 'failed', because: `${because}, ${TRIES_MAX} times in a row` }
}

/** A word that names the failure: a message may quote an address with a password in it. */
function wordOf(error: unknown): string {
  const { code, name } = error as { code?: string; name?: string }
  return code ?? name ?? 'unknown error'
}

/** What an HTTP status means for an order. */
export function answerOfStatus(status: number, who: string): TryAnswer {
  if (status >= 200 && status < 300) return { kind: 'done' }
  const because = `${who} answered ${status}`
  return status === 429 || status >= 500 ? { kind: 'unlucky', because } : { kind: 'failed', because }
}
