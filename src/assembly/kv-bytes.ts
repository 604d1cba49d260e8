import type { PoolSetup } from '../config/to-domain.ts'
import { loadProfile } from './fs-profiles.ts'

/**
 * Bytes of GPU memory that a token's keys and values take in a pool's engines: a fact of the model, from the profile of
 * simulated engines or the one that a pool of other engines declares. Undefined where no profile is declared: a guess
 * from answer times says nothing about memory.
 */
export function kvBytesPerTokenOf({ backend, kind }: Pick<PoolSetup, 'backend' | 'kind'>): number | undefined {
  if (kind !== 'chat' || backend.kind === 'peer') return undefined
  if (backend.kind === 'simulated' && backend.hidden === true) return undefined
  const profile = backend.kind === 'simulated' ? (backend.profiles?.[0] ?? backend.profile) : backend.profile
  return profile === undefined ? undefined : loadProfile(profile).memory.kvBytesPerToken
}
