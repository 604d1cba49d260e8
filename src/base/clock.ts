/**
 * What time is it, and who wants to be called when?
 *
 * The one clock interface. Instants are integer microseconds: floating-point powers differ between processors, and
 * two machines that run the same seed must write the same journal. Live, an instant counts from the Unix epoch;
 * in virtual time, from the start of the run. Durations inside the project are microseconds too (`…Us`); only
 * configuration and wire formats speak milliseconds (`…Ms`).
 *
 * Policies and the engine never see a clock: they take `now`.
 */
export type Instant = number

export type CancelTimer = () => void

export interface Clock {
  now(): Instant
  /** Calls `fn` once, at `instant` or as soon after it as the clock can. The returned function cancels the timer. */
  at(instant: Instant, fn: () => void): CancelTimer
  sleep(durationUs: number): Promise<void>
}

export const US_PER_MS = 1_000
export const US_PER_S = 1_000_000

export const msToUs = (ms: number): number => Math.round(ms * US_PER_MS)
export const secondsToUs = (s: number): number => Math.round(s * US_PER_S)
export const usToMs = (us: number): number => us / US_PER_MS
export const usToSeconds = (us: number): number => us / US_PER_S
