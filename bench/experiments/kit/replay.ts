import type { Settled } from '../../../src/domain/entry.ts'
import type { Slo } from '../../../src/domain/tenant.ts'
import type { Platform } from '../../../src/lifecycle/platform.ts'
import type { Ticket } from '../../../src/lifecycle/ticket.ts'
import type { AdmissionPool } from '../../../src/policy/admission/admission-world.ts'
import { checkScenario, loadScenario } from '../../../src/sim/scenario/fs-scenario.ts'
import { withPaths } from '../../../src/sim/scenario/variants.ts'
import { simulate } from '../../../src/sim/simulate.ts'

/**
 * The same run once more, with every request admitted or refused as before, and one that was refused admitted.
 *
 * Decisions are those of the first run: were they made anew, the one request would change who is refused after it, and
 * nobody could say whether promises were kept because there was room or because somebody else was sent away. Everything
 * else (turns, engines, lengths that are learned) runs as always, and without a request to admit the replay is the first
 * run to the microsecond. A run ends `cutS` after its start: no request comes after that, and those that are there are
 * served to their ends, in both of the runs that are compared.
 */
export interface Setting {
  readonly scenario: string
  readonly set: Readonly<Record<string, unknown>>
  readonly seed: number
  readonly install?: ((platform: Platform) => void) | undefined
}

/** The rung's depth of each request that was admitted, by its name; of those refused there is none. */
export type Decisions = ReadonlyMap<string, number>

export interface Played {
  readonly decisions: Decisions
  readonly settled: ReadonlyMap<string, Settled>
  /** By how much each request missed its promises, as a share of them: 0 when it kept them. */
  readonly missed: ReadonlyMap<string, number>
}

export async function playRun(
  { scenario: name, set, seed, install }: Setting,
  options: {
    readonly cutS: number
    readonly decisions?: Decisions | undefined
    readonly forcedId?: string | undefined
  },
): Promise<Played> {
  const { file } = loadScenario(name)
  const scenario = checkScenario(file, withPaths(file.tree, { ...set, durationS: options.cutS, parts: {} }))
  const decisions = new Map<string, number>()
  const settled = new Map<string, Settled>()
  const missed = new Map<string, number>()
  const sloOf = new Map<string, Slo>()
  let platform: Platform | undefined
  await simulate(scenario, {
    seed,
    onAssembled: (assembled) => {
      platform = assembled
      onArrival(assembled, ({ id, request }) => sloOf.set(id, request.slo))
      install?.(assembled)
      if (options.decisions !== undefined) decideAs(assembled, options.decisions, options.forcedId)
    },
    onEntry: (entry) => {
      if (entry.kind === 'admitted') decisions.set(entry.ticketId, depthOf(platform as Platform, entry.rung))
      if (entry.kind !== 'settled') return
      settled.set(entry.ticketId, entry)
      const slo = sloOf.get(entry.ticketId)
      if (slo !== undefined) missed.set(entry.ticketId, missedRatio(entry, slo))
    },
  })
  return { decisions, settled, missed }
}

/** Infinity for an answer that did not come at all. */
function missedRatio({ outcome, firstTokenAt, arrivedAt, deadlineAt, at, band }: Settled, slo: Slo): number {
  if (outcome !== 'completed' || firstTokenAt === undefined) return Number.POSITIVE_INFINITY
  const firstToken = band === 'offline' ? 0 : (firstTokenAt - arrivedAt) / slo.ttftUs - 1
  return Math.max(0, firstToken, (at - arrivedAt) / (deadlineAt - arrivedAt) - 1)
}

const depthOf = ({ policies }: Platform, name: string): number =>
  policies.rungs.find((rung) => rung.name === name)?.depth ?? 0

function onArrival(platform: Platform, hear: (ticket: Ticket) => void): void {
  const arrive = platform.arrive.bind(platform)
  platform.arrive = (ticket) => {
    hear(ticket)
    arrive(ticket)
  }
}

/** Puts the decisions of another run in the place of admission's own. */
function decideAs(platform: Platform, decisions: Decisions, forcedId: string | undefined): void {
  const { admission, policies } = platform
  const { ladder } = policies
  let asking = ''
  onArrival(platform, ({ id }) => {
    asking = id
  })
  ladder.depthOf = () => decisions.get(asking) ?? 0
  ladder.observe = () => undefined
  ladder.tick = () => []
  const poolFor = admission.poolFor.bind(admission)
  admission.poolFor = (now, asked, plan) => {
    const pool = poolFor(now, asked, plan)
    const { id } = asked.request
    const isIn = decisions.has(id) || id === forcedId
    return pool && (isIn ? { ...pool, ...AT_ONCE } : { ...pool, ...NEVER })
  }
}

const AT_ONCE: Pick<AdmissionPool, 'hasIdleReplica' | 'speedAlone'> = {
  hasIdleReplica: true,
  speedAlone: { prefillUs: () => 0, tokenUs: () => 0 },
}
const NEVER: Pick<AdmissionPool, 'hasIdleReplica' | 'speed'> = {
  hasIdleReplica: false,
  speed: { prefillUs: () => 1e15, tokenUs: () => 0 },
}
