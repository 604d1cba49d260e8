import type { Problem } from './explain.ts'
import type { PoolConfig, Settings } from './schema.ts'

/**
 * Which replicas of several pools are one engine? Those at the same address: several models on one server have one room,
 * one memory and one limit. Simulated engines have no address; they are one where their pools give the same `engineName`,
 * the first with the first, the second with the second. Pools that have the same address and are still to be counted each
 * for itself (a balancer in front of many engines) give different names.
 *
 * Hosted APIs are not engines of ours: what they allow they allow for each model, so their address says nothing.
 */
type NamedPool = Pick<PoolConfig, 'backend' | 'replicas' | 'engineName'>

const HOSTED: ReadonlySet<string> = new Set(['openai', 'azure'])

/** The engine at an address, or the nth simulated one; undefined: an engine of the replica's own. */
export function engineIdOf(
  { backend, engineName }: { readonly backend: { readonly kind: string }; readonly engineName?: string | undefined },
  address: string | number,
): string | undefined {
  if (engineName !== undefined) return `${engineName} ${typeof address === 'number' ? address : comparable(address)}`
  const isHosted = 'engine' in backend && HOSTED.has(String(backend.engine))
  return typeof address === 'number' || isHosted ? undefined : comparable(address)
}

/** An address that a pool lists twice is two engines: the second of the one pool and the second of another are one. */
export function engineIdsOf(pool: NamedPool, addresses: readonly (string | undefined)[]): (string | undefined)[] {
  const seen = new Map<string, number>()
  return addresses.map((url, i) => {
    const id = engineIdOf(pool, url ?? i)
    if (id === undefined) return undefined
    const count = (seen.get(id) ?? 0) + 1
    seen.set(id, count)
    return count === 1 ? id : `${id}#${count}`
  })
}

/**
 * An engine has one limit, and a simulated one is one engine of one kind: pools that name it must agree. Which of two
 * limits an operator means cannot be told: the whole of the engine in both pools, or a part for each.
 */
export function commonEngineProblems(
  { models, pools }: Pick<Settings, 'models' | 'pools'>,
  poolIdOf: (pool: PoolConfig) => string,
): Problem[] {
  const first = new Map<string, PoolConfig>()
  return pools.flatMap((pool, i): Problem[] => {
    for (const id of engineIdsOf(pool, addressesOf(pool))) {
      const other = id === undefined ? undefined : first.get(id)
      if (id !== undefined && other === undefined) first.set(id, pool)
      if (other === undefined || other === pool) continue
      const differing = differenceOf(pool, other, models)
      if (differing === undefined) continue
      const text = `has another ${differing} than the pool ${poolIdOf(other)}, which names the same engine: it has one room for both. Make them equal, or give the pools different engineName to count the engine for each`
      return [{ path: ['pools', i], text }]
    }
    return []
  })
}

function differenceOf(a: PoolConfig, b: PoolConfig, models: Settings['models']): string | undefined {
  // A later pool that says nothing takes the limit that the engine has.
  const isSilent = a.limit.kind === 'auto'
  const isAlike = a.limit.kind === b.limit.kind && a.limit.concurrencyMax === b.limit.concurrencyMax
  if (!isSilent && !isAlike) return 'limit'
  if (a.backend.kind !== 'simulated') return undefined
  if (gpuOf(a) !== gpuOf(b)) return 'backend'
  const isChat = ({ model }: PoolConfig): boolean =>
    (models.find(({ name }) => name === model)?.kind ?? 'chat') === 'chat'
  return isChat(a) && isChat(b) ? undefined : 'kind of model, and simulated engines in common are for chat models,'
}

const gpuOf = ({ backend }: PoolConfig): string =>
  backend.kind === 'simulated' ? JSON.stringify([backend.profile, backend.profiles, backend.hidden]) : backend.kind

/** The address of each replica; undefined for simulated ones. Those that are discovered are not there yet. */
export function addressesOf({ backend, replicas }: Pick<PoolConfig, 'backend' | 'replicas'>): (string | undefined)[] {
  if (typeof replicas !== 'number') return [...replicas]
  if (backend.kind !== 'simulated' && backend.url === undefined) return []
  return Array.from({ length: replicas }, () => (backend.kind === 'simulated' ? undefined : backend.url))
}

/** One engine written in two ways: upper case in the host, the scheme's own port, a slash at the end, a password. */
function comparable(text: string): string {
  if (!URL.canParse(text)) return text
  const { origin, pathname, search } = new URL(text)
  return `${origin}${pathname.replace(/\/+$/, '')}${search}`
}
