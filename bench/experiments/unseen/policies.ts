import { COMPARISONS } from '../../../src/sim/scenario/comparisons.ts'
import { installProbabilisticAdmitter } from '../kit/probabilistic-admitter.ts'
import type { Way } from './play-cell.ts'

/** What is compared, by the names of `--policies`; the first is the one that the others are compared with. */
export interface Policy {
  readonly name: string
  readonly label: string
  /** Absent for the yardstick, which is played in rounds (`clairvoyant.ts`). */
  readonly way?: (seed: number) => Way
  /** Admission refuses; where it only watches, its audit says nothing about the policy. */
  readonly isEnforced?: true
}

/** As llm-d does it: the queue is in the engines, which take whatever is not shed. */
const TO_THE_ENGINES = {
  ...COMPARISONS['fifo'],
  'platform.pools.0.limit': { kind: 'fixed', concurrencyMax: 4_096 },
}

const as = (name: string) => (): Way => ({ set: COMPARISONS[name] as Record<string, unknown> })

export const POLICIES: readonly Policy[] = [
  { name: 'ours', label: 'spillway, nothing degraded', way: as('no-ladder'), isEnforced: true },
  { name: 'ladder', label: 'spillway, with the ladder', way: as('spillway'), isEnforced: true },
  { name: 'codel', label: 'CoDel (5 ms, 100 ms)', way: as('codel') },
  { name: 'vtc', label: 'virtual token counter', way: as('vtc') },
  { name: 'bounded', label: 'FIFO, queue of 64', way: as('bounded') },
  {
    name: 'llm-d',
    label: 'like llm-d, all sheddable',
    way: (seed) => ({
      set: TO_THE_ENGINES,
      install: ({ policies }, fleet) =>
        installProbabilisticAdmitter(policies.dispatcher, fleet, { sheddableTenant: 'all', seed }),
    }),
  },
  { name: 'clairvoyant', label: 'yardstick: hindsight' },
]
