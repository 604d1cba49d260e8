import { Rng } from '../../../src/base/rng.ts'
import type { Dispatcher } from '../../../src/policy/dispatch/dispatcher.ts'
import { NO_EFFECTS } from '../../../src/policy/dispatch/offer.ts'
import type { SimulatedFleet } from '../../../src/sim/world.ts'

/**
 * llm-d's probabilistic admitter, to compare with: what may be shed is refused with p = min(1, 300 · saturation⁵), where
 * saturation is the mean over replicas of max(waiting ÷ 5, KV use ÷ 0.8), as the engines report it. Here their gauges
 * are read live; in a cluster they are a scrape old.
 */
const WAITING_MAX = 5
const KV_MAX = 0.8

export function installProbabilisticAdmitter(
  dispatcher: Dispatcher,
  fleet: SimulatedFleet,
  how: { readonly sheddableTenant: string; readonly seed: number },
): void {
  const rng = Rng.stream(how.seed, 'admitter')
  const offer = dispatcher.offer.bind(dispatcher)
  dispatcher.offer = (now, asked) => {
    const isSheddable = how.sheddableTenant === 'all' || asked.tenant.id === how.sheddableTenant
    const isRefused = isSheddable && rng.next() < refusalRatio(fleet)
    if (!isRefused) return offer(now, asked)
    return { kind: 'refused', code: 'queue-full', because: 'the engines are saturated', effects: NO_EFFECTS }
  }
}

function refusalRatio(fleet: SimulatedFleet): number {
  const loads = [...fleet.all()].map(({ engine }) =>
    Math.max(engine.waiting / WAITING_MAX, engine.kvUsageRatio / KV_MAX),
  )
  const saturation = loads.reduce((sum, load) => sum + load, 0) / loads.length
  return Math.min(1, 300 * saturation ** 5)
}
