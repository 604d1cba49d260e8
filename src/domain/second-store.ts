import type { Fence } from './leader.ts'

/**
 * Where gateways of one cell tell what they had of each replica's seconds, and hear what that cost. The leader closes
 * seconds: what it writes carries its fence. Bodies are text; whoever reads them checks them.
 */
export interface SecondStore {
  /** Writes reports, each once; forgets answers that were heard; answers what is known of the others. */
  exchange(ask: ReportExchange): Promise<readonly ToldCharges[]>
  /** For the leader: where the last one ended, and all reports that are not answered yet, oldest first. */
  gather(): Promise<GatheredReports>
  /** Closes seconds: sums, answers and the next state in one act. False when the fence or the revision does not hold. */
  close(closing: SecondsClosing): Promise<boolean>
  /** What replicas cost, by hour: from the first, up to and without the last. */
  bills(fromHour: number, toHour: number): Promise<readonly BillHour[]>
}

export interface ReportExchange {
  readonly reporterId: string
  readonly told: readonly ToldReport[]
  /** Serials whose answer has come. */
  readonly heard: readonly number[]
}

export interface ToldReport {
  /** Grows with every report of one gateway: a report that is written twice counts once. */
  readonly serial: number
  readonly body: string
}

export interface ToldCharges {
  readonly serial: number
  readonly body: string
}

export interface GatheredReports {
  /** Counts closings: the next one must name it, so that one that is late closes nothing a second time. */
  readonly revision: number
  readonly state: string | undefined
  readonly reports: ReadonlyArray<ToldReport & { readonly reporterId: string }>
}

export interface SecondsClosing {
  readonly fence: Fence
  readonly revision: number
  readonly state: string
  readonly bills: readonly BillHour[]
  readonly answers: ReadonlyArray<ToldCharges & { readonly reporterId: string }>
}

/** Sums of one replica in one hour, in nano-dollars: `billNano` is the sum of all other lines (law L15). */
export interface BillHour {
  readonly replicaId: string
  readonly poolId: string
  /** Hours since the epoch, of the beginning of its seconds. */
  readonly hour: number
  readonly seconds: number
  readonly billNano: number
  /** What tenants paid for their requests, and for idle time. */
  readonly tenantsNano: number
  readonly tenantsIdleNano: number
  readonly idleNano: number
  readonly wasteNano: number
  readonly platformNano: number
  readonly crashedNano: number
  readonly lateNano: number
}

export function addBillHours(a: BillHour, b: BillHour): BillHour {
  return {
    ...a,
    seconds: a.seconds + b.seconds,
    billNano: a.billNano + b.billNano,
    tenantsNano: a.tenantsNano + b.tenantsNano,
    tenantsIdleNano: a.tenantsIdleNano + b.tenantsIdleNano,
    idleNano: a.idleNano + b.idleNano,
    wasteNano: a.wasteNano + b.wasteNano,
    platformNano: a.platformNano + b.platformNano,
    crashedNano: a.crashedNano + b.crashedNano,
    lateNano: a.lateNano + b.lateNano,
  }
}
