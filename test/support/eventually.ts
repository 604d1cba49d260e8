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
  let leftMs = withinMs
  let lookedAt = performance.now()
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (leftMs <= 0) throw new Error(`not within ${withinMs} ms: ${what}`)
    await pause(POLL_MS)
    const now = performance.now()
    leftMs -= Math.min(now - lookedAt, STALL_MS)
    lookedAt = now
  }
}

/** Under the suite's own limit of 60 s, so that the sentence is seen. */
const WITHIN_MS = 30_000
const WITHIN_MS_MIN = 10_000
const POLL_MS = 2
/** Two looks further apart than this mean that we were not running. */
const STALL_MS = 25

/** For fakes that act slowly on purpose, and clients that come late. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
