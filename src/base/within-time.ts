import type { Clock, Instant } from './clock.ts'

/** How a bounded wait ended. */
export type Waited<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'late' }

/** Waits for a promise until `instant` at most. A later result is ignored. */
export function withinTime<T>(clock: Clock, instant: Instant, promise: Promise<T>): Promise<Waited<T>> {
  return new Promise((resolve) => {
    const forget = clock.at(instant, () => resolve({ kind: 'late' }))
    promise.then(
      (value) => {
        forget()
        resolve({ kind: 'done', value })
      },
      (error: unknown) => {
        forget()
        resolve({ kind: 'failed', error })
      },
    )
  })
}
