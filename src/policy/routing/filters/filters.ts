import type { Filter } from '../room-view.ts'
import { hasAir } from './memory.ts'
import { isUnsuspected } from './suspect.ts'

/**
 * Which replicas come first? The one table that a new filter joins. Filters run in this order on the replicas that are
 * scored, and each is a preference: one that leaves nobody is passed over, because a ticket that has room is placed
 * (law L6). What must never be used is closed at the dispatcher (`health.ts`) or is another pool (`choose-pool.ts`).
 */
export const FILTERS = {
  suspect: isUnsuspected,
  memory: hasAir,
} as const satisfies Readonly<Record<string, Filter>>
