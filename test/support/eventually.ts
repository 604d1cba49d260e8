/**
 * Polls until `look` gives something, and fails with a sentence when it has not by then. No test sleeps for luck, and
 * none asserts how fast this machine is: the limit only ends a wait that would never end. What must come before something
 * else is asserted by its order.
 *
 * Time in which this process did not get to run (a busy machine, a long collection of garbage) does not count.
 */
export async function eventually<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  withinMs = WITHIN_MS,
): Promise<T> {
  if (withinMs < WITHIN_MS_MIN) throw new Error(`a limit of ${withinMs} ms would test the machine: ${what}`)
  let waitedMs = 0
  let lookedAt = performance.now()
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (waitedMs >= withinMs) throw new Error(`not within ${withinMs} ms: ${what}`)
    const pauseMs = Math.min(Math.max(waitedMs * PAUSE_SHARE, PAUSE_MS_MIN), PAUSE_MS_MAX)
    await pause(pauseMs)
    const now = performance.now()
    waitedMs += Math.min(now - lookedAt, pauseMs + STALL_MS)
    lookedAt = now
  }
}

/** Under the suite's own limit of 60 s, so that the sentence is seen. */
const WITHIN_MS = 30_000
const WITHIN_MS_MIN = 10_000
/**
 * The pause between two looks is this share of the wait so far: a look is often a request, and looks in quick succession
 * would keep the processor from what they wait for.
 */
const PAUSE_SHARE = 0.1
const PAUSE_MS_MIN = 2
const PAUSE_MS_MAX = 50
/** A look that comes this much later than its pause means that we were not running. */
const STALL_MS = 25

/** For fakes that act slowly on purpose, and clients that come late. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
