import { type PoolSetup, profileOf } from '../config/to-domain.ts'
import type { Replica } from '../domain/fleet.ts'
import { loadProfile } from './fs-profiles.ts'

/**
 * Dollars for an hour of a pool's replicas: what the pool says, else what the GPU profile of a simulated engine says.
 * Profiles are looked up once, because the question comes with every tick.
 */
export function replicaPrices(
  setup: Pick<PoolSetup, 'backend' | 'pool' | 'usdPerHour'>,
): (replica: Replica) => number | undefined {
  const known = new Map<string, number>()
  return (replica) => {
    const profile = profileOf(setup, replica)
    if (setup.usdPerHour !== undefined || profile === undefined) return setup.usdPerHour
    const usdPerHour = known.get(profile) ?? loadProfile(profile).usdPerHour
    known.set(profile, usdPerHour)
    return usdPerHour
  }
}
