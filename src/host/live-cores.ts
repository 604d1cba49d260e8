import { availableParallelism } from 'node:os'
import { type Config, PROCESSES_MAX } from '../config/schema.ts'

/** How many processes the settings mean here; `auto` is one for each core of the affinity and quota of this process. */
export function processCountOf({ server: { processes } }: Config): number {
  return processes === 'auto' ? Math.max(1, Math.min(PROCESSES_MAX, availableParallelism())) : processes
}
