import { type Clock, secondsToUs } from '../base/clock.ts'
import type { SimulatedGateway } from './gateway.ts'
import type { SimulatedReplica } from './world.ts'

/**
 * Every replica in turn: nothing more goes there, what runs there ends, it restarts with an empty memory, comes back
 * slowly, and only then it is the next one's turn. What an operator does to update a fleet under load.
 */
const LOOK_US = 100_000
/** A drain that takes longer than this is cut short, as any operator would; so is waiting for one that stays away. */
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
