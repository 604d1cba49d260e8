import type { LaneFigures, OfferedFigures, PoolFigures, TurnsInFlight } from '../../domain/pool-share.ts'
import { type PrefixesTold, readPrefixes, writePrefixes } from './prefix-news.ts'

/**
 * What does one gateway tell the others about a pool? One text, which the store passes on unread: what is in flight at each
 * replica with the slots granted there, each key's demand, for how long the gateway has waited without any slot, which
 * prompts' beginnings it gave to which replica (`prefix-news.ts`), and how much work it was offered so far.
 *
 * A text that cannot be read counts as nothing said: a gateway of another version must not stop this one. Bound: a text
 * longer than REPORT_CHARS_MAX is not read; the dispatcher tells at most 512 keys.
 */
export interface RoomReport {
  readonly replicas: ReadonlyMap<string, { readonly inFlight: TurnsInFlight; readonly granted: number }>
  readonly lanes: readonly LaneFigures[]
  readonly starvedMs: number
  readonly prefixes: PrefixesTold | undefined
  readonly offered: OfferedFigures | undefined
}

/** What other gateways are asked for at a pool. */
export interface DemandElsewhere {
  readonly offered: ReadonlyMap<string, OfferedFigures>
  /** Tickets of keys that have interactive or standard ones waiting, and their work. */
  readonly waiting: { readonly cost: number; readonly count: number }
}

export function demandIn(reports: ReadonlyMap<string, RoomReport>): DemandElsewhere {
  const told = new Map<string, OfferedFigures>()
  let [cost, count] = [0, 0]
  for (const [gatewayId, { offered, lanes }] of reports) {
    if (offered !== undefined) told.set(gatewayId, offered)
    for (const { waitingCount, waitingCost } of lanes) {
      count += waitingCount
      cost += waitingCount === 0 ? 0 : waitingCost
    }
  }
  return { offered: told, waiting: { cost, count } }
}

const REPORT_CHARS_MAX = 256 * 1_024
const VERSION = 1

export function writeRoomReport(
  { replicas, lanes, offered }: PoolFigures,
  grantedAt: (replicaId: string) => number,
  starvedMs: number,
  prefixes: PrefixesTold,
): string {
  return JSON.stringify([
    VERSION,
    starvedMs,
    replicas.map(({ replicaId, inFlight: f }) => [
      replicaId,
      grantedAt(replicaId),
      f.sequences,
      f.kvTokens,
      f.contextTokens,
      f.prefillMilli,
      f.prefillTokens,
      f.engineUs,
    ]),
    lanes.map((l) => [
      l.orgId,
      l.orgWeight ?? null,
      l.tenantId,
      l.tenantWeight,
      l.keyId,
      l.keyWeight,
      l.heldCount,
      l.waitingCount,
      l.offlineCount,
      l.waitingCost,
      l.waitingUs,
    ]),
    writePrefixes(prefixes),
    offered === undefined ? null : [Math.round(offered.online), Math.round(offered.offline)],
  ])
}

export function readRoomReport(text: string): RoomReport | undefined {
  if (text.length > REPORT_CHARS_MAX) return undefined
  try {
    const said = JSON.parse(text) as [number, number, unknown[][], unknown[][], unknown, unknown]
    const [version, starvedMs, replicas, lanes, prefixes, offered] = said
    if (version !== VERSION) return undefined
    return {
      starvedMs: amount(starvedMs),
      replicas: new Map(replicas.map((row) => [String(row[0]), readReplica(row)])),
      lanes: lanes.map(readLane),
      prefixes: readPrefixes(prefixes),
      offered: readOffered(offered),
    }
  } catch {
    return undefined
  }
}

/** Gateways of an older version do not tell it. */
function readOffered(told: unknown): OfferedFigures | undefined {
  return Array.isArray(told) ? { online: amount(told[0]), offline: amount(told[1]) } : undefined
}

function readReplica(row: readonly unknown[]): { inFlight: TurnsInFlight; granted: number } {
  return {
    granted: amount(row[1]),
    inFlight: {
      sequences: amount(row[2]),
      kvTokens: amount(row[3]),
      contextTokens: amount(row[4]),
      prefillMilli: amount(row[5]),
      prefillTokens: amount(row[6]),
      engineUs: amount(row[7]),
    },
  }
}

const readLane = (row: readonly unknown[]): LaneFigures => ({
  orgId: String(row[0]),
  orgWeight: row[1] === null ? undefined : amount(row[1]),
  tenantId: String(row[2]),
  tenantWeight: amount(row[3]),
  keyId: String(row[4]),
  keyWeight: amount(row[5]),
  heldCount: amount(row[6]),
  waitingCount: amount(row[7]),
  offlineCount: amount(row[8]),
  waitingCost: amount(row[9]),
  waitingUs: amount(row[10]),
})

function amount(value: unknown): number {
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) throw new Error('not an amount')
  return value
}
