import type { AdminReload } from '../gateway/fleet-admin.ts'

/** `2 tenants, 1 key, 1 replica added`, or `nothing changed`; and what waits for a restart. */
export function describeReload({ changed, needsRestart }: AdminReload): string {
  const {
    tenants,
    keys,
    models,
    rollouts,
    poolsAdded,
    poolsRemoved,
    poolsDedicated,
    poolsScaled,
    poolsRekeyed,
    replicasAdded,
    replicasRemoved,
  } = changed
  const parts = [
    counted(tenants, 'tenant', 'changed'),
    counted(keys, 'key', 'changed'),
    counted(models, 'model', 'changed'),
    counted(rollouts, 'rollout or holdout set', 'changed'),
    counted(poolsAdded, 'pool', 'added'),
    counted(poolsRemoved, 'pool', 'removed'),
    counted(poolsDedicated, 'pool', 'dedicated anew'),
    counted(poolsScaled, 'pool', 'scaled otherwise'),
    counted(poolsRekeyed, 'pool', 'called with another key'),
    counted(replicasAdded, 'replica', 'added'),
    counted(replicasRemoved, 'replica', 'removed'),
  ].filter((part) => part !== '')
  const what = parts.length === 0 ? 'nothing changed' : parts.join(', ')
  return needsRestart.length === 0 ? what : `${what}; waiting for a restart: ${needsRestart.join(', ')}`
}

function counted(count: number, noun: string, what: string): string {
  return count === 0 ? '' : `${count} ${noun}${count === 1 ? '' : 's'} ${what}`
}
