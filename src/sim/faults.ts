import { type Clock, secondsToUs } from '../base/clock.ts'
import type { Platform } from '../lifecycle/platform.ts'
import { restartInTurn } from './rolling-restart.ts'
import type { Fault } from './scenario.ts'
import type { SimulatedFleet, SimulatedReplica } from './world.ts'

/** Breaks replicas when the scenario says so, and mends them again. */
export function scheduleFaults(
  clock: Clock,
  platform: Platform,
  fleet: SimulatedFleet,
  faults: readonly Fault[],
): void {
  const startAt = clock.now()
  for (const fault of faults) {
    const targets = [...fleet.all()].filter(({ replica }) =>
      [replica.id, replica.poolId, replica.releaseId].includes(fault.target),
    )
    if (targets.length === 0)
      throw new Error(`a fault names ${fault.target}, but no replica, pool or release is called that`)
    if (fault.kind === 'rolling-restart') {
      clock.at(startAt + secondsToUs(fault.atS), () => void restartInTurn(clock, platform, targets, fault.forS))
      continue
    }
    clock.at(startAt + secondsToUs(fault.atS), () => {
      for (const target of targets) strike(fault, target)
    })
    clock.at(startAt + secondsToUs(fault.atS + fault.forS), () => {
      for (const target of targets) target.recover()
    })
  }
}

function strike(fault: Fault, target: SimulatedReplica): void {
  switch (fault.kind) {
    case 'rolling-restart':
      return
    case 'replica-crash':
    case 'pool-loss':
      target.crash()
      return
    case 'replica-hang':
      target.slowDown(Number.POSITIVE_INFINITY)
      return
    case 'replica-slow':
      target.slowDown(fault.factor ?? 4)
      return
    case 'replica-errors':
      target.misbehave({ errorRatio: fault.ratio ?? 1 })
      return
    case 'replica-refusals':
      target.misbehave({ refusalRatio: fault.ratio ?? 1 })
  }
}
