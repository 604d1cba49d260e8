import { type Clock, secondsToUs } from '../base/clock.ts'
import type { SimulatedGateway } from './gateway.ts'
import type { SimulatedReplica } from './world.ts'

/**
 * Restarts one replica after the other: it is drained, restarts with an empty cache, comes back slowly, and then the
 * next one follows. Operators update a fleet under load this way.
 */
const LOOK_US = 100_000
/** Longest drain, and longest wait for a replica to come back; then the restart goes on. */
const PATIENCE_S = 120

export async function restartInTurn(
  clock: Clock,
  gateway: SimulatedGateway,
  targets: readonly SimulatedReplica[],
  downS: number,
): Promise<void> {
  for (const target of targets) {
    const { platform } = gateway
    const { health } = platform.policies
    const { id } = target.replica
    platform.applyHealth(health.drain(clock.now(), id))
    await until(clock, () => target.engine.running + target.engine.waiting === 0)
    target.crash()
    await clock.sleep(secondsToUs(downS))
    target.recover()
    platform.applyHealth(health.undrain(clock.now(), id))
    await until(clock, () => health.kindOf(id) === 'steady')
  }
}

async function until(clock: Clock, isSo: () => boolean): Promise<void> {
  const endsAt = clock.now() + secondsToUs(PATIENCE_S)
  while (!isSo() && clock.now() < endsAt) await clock.sleep(LOOK_US)
}
