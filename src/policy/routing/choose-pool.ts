/**
 * Which pool, in which region? A rule over the pools of one release.
 *
 * First who may use them: a pool dedicated to named tenants serves those and nobody else, and a tenant that has one
 * stays in it. Then where: the local one, unless another would answer sooner even with the round trip, by a margin
 * (or traffic would swing to and fro with every gust), or the local one sheds or has nobody left. A request that
 * already came from another region is not sent on (`hopsMax`), or two overloaded regions would play ping-pong.
 *
 * A region that was lost and is back gets its share little by little over `returnUs`: each request carries a random
 * number in [0, 1), and those below the elapsed part of the ramp come home first. No stampede.
 *
 * Deliberately not: it predicts nothing (the caller brings predicted times), keeps no state, and knows no replica.
 * Example: local 900 ms, remote 300 + 80 ms, margin 100 ms: 380 + 100 < 900, so it spills. Local 450: it stays.
 */
export const POOL_CHOICE_DEFAULTS = {
  /** How much sooner another region must be before traffic moves. */
  spillMarginUs: 100_000,
  /** Until a region that came back takes all of its own traffic again. */
  returnUs: 30_000_000,
  /** How often a request may be sent on from region to region. */
  hopsMax: 1,
}

export interface PoolOption {
  readonly poolId: string
  readonly region: string
  readonly isLocal: boolean
  readonly readyReplicaCount: number
  /** Wait and prefill, as predicted for this request. */
  readonly ttftUs: number
  readonly roundTripUs: number
  /** It would refuse this request now. */
  readonly isShedding: boolean
  /** Tenants that it is kept for; undefined when it is for everybody. */
  readonly dedicatedTo?: readonly string[]
  /** When it came back after it was lost; undefined when it never was. */
  readonly returnedAt?: number
}

export interface PoolAsk {
  readonly tenantId: string
  /** How often this request was sent on already. */
  readonly hops: number
  /** In [0, 1), the same for one request however often we ask. */
  readonly random: number
}

export interface PoolChoice {
  readonly option: PoolOption
  readonly because: string
}

export function choosePool(
  now: number,
  ask: PoolAsk,
  options: readonly PoolOption[],
  rules: typeof POOL_CHOICE_DEFAULTS = POOL_CHOICE_DEFAULTS,
): PoolChoice | undefined {
  const permitted = permittedPools(ask.tenantId, options).filter((option) => option.isLocal || ask.hops < rules.hopsMax)
  const alive = permitted.filter((option) => option.readyReplicaCount > 0)
  const local = best(alive.filter((option) => option.isLocal))
  const remote = best(alive.filter((option) => !option.isLocal))
  if (local === undefined) return remote === undefined ? asIs(permitted) : chosen(remote, 'no local replica is left')
  if (remote === undefined) return chosen(local, 'local')
  if (local.isShedding && !remote.isShedding) return chosen(remote, 'the local pool sheds')
  if (!isFullyBack(now, local, ask.random, rules.returnUs) && !remote.isShedding)
    return chosen(remote, 'the local pool has just come back and takes its traffic little by little')
  const isSooner = remote.ttftUs + remote.roundTripUs + rules.spillMarginUs < local.ttftUs
  if (isSooner && !remote.isShedding) return chosen(remote, 'another region would answer sooner')
  return chosen(local, 'local')
}

/** Its own pools where it has some; otherwise those that are for everybody. */
export function permittedPools(tenantId: string, options: readonly PoolOption[]): readonly PoolOption[] {
  const own = options.filter((option) => option.dedicatedTo?.includes(tenantId))
  return own.length > 0 ? own : options.filter((option) => option.dedicatedTo === undefined)
}

function best(options: readonly PoolOption[]): PoolOption | undefined {
  let found: PoolOption | undefined
  for (const option of options) if (found === undefined || costUs(option) < costUs(found)) found = option
  return found
}

/** Those that shed come last, whatever they predict. */
function costUs(option: PoolOption): number {
  return option.ttftUs + option.roundTripUs + (option.isShedding ? 1e12 : 0)
}

/** Nobody is alive: the local pool keeps the ticket, which waits for a replica or expires. */
function asIs(permitted: readonly PoolOption[]): PoolChoice | undefined {
  const option = permitted.find((known) => known.isLocal) ?? permitted[0]
  return option === undefined ? undefined : chosen(option, 'no replica is ready anywhere')
}

function isFullyBack(now: number, option: PoolOption, random: number, returnUs: number): boolean {
  return option.returnedAt === undefined || random < (now - option.returnedAt) / returnUs
}

const chosen = (option: PoolOption, because: string): PoolChoice => ({ option, because })
