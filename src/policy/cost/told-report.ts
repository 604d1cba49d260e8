import { spentUs } from '../../domain/engine-time.ts'
import type { AttemptSecond, ReplicaCharges, ReplicaSecond, SecondReport, TenantCredit } from './second-report.ts'
import { splitExactly } from './split-exactly.ts'

/**
 * A second's report as it goes to an owner elsewhere. Who pays needs tenants, not requests: the rows of a replica are added
 * up by tenant, so that a report is as long as there are tenants at work, however many requests they have. What comes back
 * is split over the gateway's own rows, exactly.
 */

/** Rows of one report: a few megabytes. What is beyond them is not told, and costs nothing. */
const ROWS_MAX = 50_000

interface ToldBody {
  readonly second: number
  readonly isLast: boolean
  readonly credits: readonly TenantCredit[]
  readonly replicas: ReadonlyArray<{
    readonly id: string
    readonly isMeasured: boolean
    readonly busyUs: number
    readonly rows: ReadonlyArray<readonly [tenantId: string, isErrand: boolean, usedUs: number, againUs: number]>
  }>
}

const payerOf = ({ tenantId, isErrand }: AttemptSecond): string => `${isErrand ? '!' : ''}${tenantId}`

const usedUs = ({ time }: AttemptSecond): number => spentUs(time) - time.againUs

/** By payer, in the order in which they come. */
function byPayer(rows: readonly AttemptSecond[]): Map<string, AttemptSecond[]> {
  const groups = new Map<string, AttemptSecond[]>()
  for (const row of rows) {
    const group = groups.get(payerOf(row))
    if (group === undefined) groups.set(payerOf(row), [row])
    else group.push(row)
  }
  return groups
}

const sumOf = (rows: readonly AttemptSecond[], of: (row: AttemptSecond) => number): number => {
  let sum = 0
  for (const row of rows) sum += of(row)
  return sum
}

/** `isLast`: the gateway stops, and reports no more. */
export function writeToldReport({ second, replicas, credits = [] }: SecondReport, isLast: boolean): string {
  let left = ROWS_MAX
  const told = replicas.map(({ replicaId, isMeasured, busyUs, rows }) => {
    const groups = [...byPayer(rows).values()].slice(0, left)
    left -= groups.length
    return {
      id: replicaId,
      isMeasured,
      busyUs,
      rows: groups.map(
        (own) =>
          [
            (own[0] as AttemptSecond).tenantId,
            (own[0] as AttemptSecond).isErrand,
            sumOf(own, usedUs),
            sumOf(own, ({ time }) => time.againUs),
          ] as const,
      ),
    }
  })
  return JSON.stringify({ second, isLast, credits, replicas: told } satisfies ToldBody)
}

/** Undefined where another version has written something that is not understood. */
export function readToldReport(
  reporterId: string,
  body: string,
): { readonly report: SecondReport; readonly isLast: boolean } | undefined {
  try {
    const { second, isLast, credits, replicas } = JSON.parse(body) as ToldBody
    if (!Number.isSafeInteger(second)) return undefined
    const read = replicas.map(
      ({ id, isMeasured, busyUs, rows }): ReplicaSecond => ({
        replicaId: id,
        isMeasured,
        busyUs,
        rows: rows.map(([tenantId, isErrand, prefillUs, againUs]) => ({
          ticketId: '',
          attempt: 0,
          tenantId,
          isErrand,
          time: { prefillUs, decodeUs: 0, againUs, aloneUs: 0, prefixSavedUs: 0, kvTokenUs: 0 },
        })),
      }),
    )
    return { report: { reporterId, second, replicas: read, wasted: [], ended: [], credits }, isLast }
  } catch {
    return undefined
  }
}

export const writeToldCharges = (charges: readonly ReplicaCharges[]): string => JSON.stringify(charges)

/** What the rows of this gateway's own report were charged with, from what its payers were. */
export function readToldCharges(report: SecondReport, body: string): ReplicaCharges[] {
  const told = JSON.parse(body) as readonly ReplicaCharges[]
  return told.map((part) => {
    const rows = report.replicas.find(({ replicaId }) => replicaId === part.replicaId)?.rows ?? []
    const [usedNano, againNano] = [rows.map(() => 0), rows.map(() => 0)]
    const places = new Map<string, number[]>()
    for (const [i, row] of rows.entries()) {
      const own = places.get(payerOf(row))
      if (own === undefined) places.set(payerOf(row), [i])
      else own.push(i)
    }
    let payer = 0
    for (const own of places.values()) {
      spread(part.usedNano[payer] ?? 0, own, usedNano, (i) => usedUs(rows[i] as AttemptSecond))
      spread(part.againNano[payer] ?? 0, own, againNano, (i) => (rows[i] as AttemptSecond).time.againUs)
      payer++
    }
    return { ...part, usedNano, againNano }
  })
}

function spread(nano: number, places: readonly number[], into: number[], weightOf: (place: number) => number): void {
  if (nano === 0) return
  const parts = splitExactly(nano, places.map(weightOf))
  for (const [i, place] of places.entries()) into[place] = parts[i] ?? 0
}
