import type { RefusalCode } from './outcome.ts'

/**
 * Why a ticket may not join the queue. The dispatcher says it, admission decides by it, and the codes are metric labels
 * and appear in error bodies.
 */
export interface NoPlace {
  readonly code: NoPlaceCode
  readonly because: string
}

export type NoPlaceCode = Extract<
  RefusalCode,
  'unknown-pool' | 'expired-on-arrival' | 'fits-no-replica' | 'lane-full' | 'lane-work-full' | 'queue-full'
>
