/**
 * Polls until `look` gives something, and fails with a sentence when it has not by then. No test sleeps for luck.
 *
 * Time in which this process did not get to run (a busy machine, a long collection of garbage) does not count: what is
 * promised within 100 ms is promised to somebody whose machine runs.
 */
export async function eventually<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  withinMs = 5_000,
): Promise<T> {
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

const POLL_MS = 2
/** Two looks further apart than this mean that we were not running. */
const STALL_MS = 25

/** For fakes that act slowly on purpose, and clients that come late. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
