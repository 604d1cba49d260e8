import type { CallLine } from '../base/call-line.ts'
import { type Clock, secondsToUs } from '../base/clock.ts'
import { withinTime } from '../base/within-time.ts'
import type { Config } from '../config/schema.ts'
import type { Control } from '../control/control.ts'
import { SHARING_DEFAULTS } from '../policy/sharing/slice-book.ts'
import { LineSharing } from '../sharing/line-sharing.ts'
import { type LeaseStore, openLeaseStore } from './live-sharing.ts'

/** The place of a gateway among the processes of one host. A gateway that is the only one has none. */
export interface Seat {
  /** From 1; a process that replaces another has its number. */
  readonly number: number
  /** To the supervisor, and through it to the other processes. */
  readonly line: CallLine
  /** The supervisor owns the embedded database. */
  readonly hasStore: boolean
  /** The supervisor keeps the leases of budgets and room, because there is no Redis. */
  readonly hasSharing: boolean
  /** Sockets that the supervisor has bound. */
  readonly listenFd: number
  readonly metricsFd: number | undefined
}

/** For an answer of all other processes: each has two seconds, or less where it was told so. */
const OTHERS_US_MAX = secondsToUs(5)

/** What the other processes of the host answered, without those that had nothing to say or did not answer. */
export async function askOthers<T>({ line }: Seat, what: string, value: unknown): Promise<readonly T[]> {
  try {
    const answers = (await line.ask('host-ask', { what, value }, OTHERS_US_MAX)) as ReadonlyArray<T | undefined>
    return answers.filter((answer) => answer !== undefined)
  } catch {
    return []
  }
}

/** How long a process waits for the store before it joins the others; the keys of the file work without it. */
const JOIN_US_MAX = secondsToUs(10)

export interface SeatParts {
  readonly clock: Clock
  readonly control: Pick<Control, 'registry'>
  /** Reads what is stored. */
  readonly lookUp: () => Promise<unknown>
}

/** A process that joins others is asked nothing before it knows what they know. */
export async function takeSeat({ line }: Seat, { clock, control, lookUp }: SeatParts): Promise<void> {
  line.on('look-at-registry', () => control.registry.notice())
  await withinTime(clock, clock.now() + JOIN_US_MAX, lookUp())
}

/** The supervisor's leases, where there is one and no Redis; else the store that the settings name. */
export async function leaseStoreOf(
  config: Config,
  clock: Clock,
  seat: Seat | undefined,
): Promise<LeaseStore | undefined> {
  if (seat?.hasSharing !== true) return openLeaseStore(config, clock)
  const { line } = seat
  return {
    sharing: new LineSharing(line),
    shardCount: SHARING_DEFAULTS.shardCount,
    where: 'the supervisor of this host',
    problem: () => (line.isClosed ? 'the supervisor has ended' : undefined),
    close: () => {},
  }
}
