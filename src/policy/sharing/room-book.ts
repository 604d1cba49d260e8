import type { Instant } from '../../base/clock.ts'
import type {
  LaneFigures,
  PoolFigures,
  PoolShare,
  ReplicaFigures,
  RoomAllowance,
  RoomShare,
  TurnsInFlight,
  WeightFactors,
} from '../../domain/pool-share.ts'
import { NO_FACTORS, NOTHING_IN_FLIGHT, turnsTogether } from '../../domain/pool-share.ts'
import { type PrefixesHeard, PrefixNews } from './prefix-news.ts'
import type { RoomAnswer, RoomAsk } from './room-grants.ts'
import { type DemandElsewhere, demandIn, type RoomReport, readRoomReport, writeRoomReport } from './room-report.ts'
import { type LaneDemand, poolTargets, slotsByReplica } from './room-targets.ts'
import type { Membership } from './shard-clock.ts'

/**
 * How much of one pool may this gateway use, and what must it tell and ask the store?
 *
 * The gateway's side of shared room (`room-grants.ts` has the store's). Ten times a second it computes its target from what
 * all gateways last told (`room-targets.ts`), lowers its own allowance to it at once, asks, and raises the allowance to what
 * is granted. Slots are asked for in sequences and in KV tokens, at each replica.
 *
 * One call is in flight at a time; an answer to a call that was given up is thrown away, because a later call may have asked
 * for less. What is told as held is never less than the allowance in force, so turns that begin while the call is on its way
 * are counted.
 *
 * While the store is silent the gateway keeps to the lesser of its grant and its safe share, limit ÷ N. A gateway that the
 * store has never answered begins with the safe share of `gatewaysMax` gateways after `startUs`: serving little is better
 * than nothing, and law L2 is over by that share at most. Slots of a gateway that has gone silent are held back by the store,
 * so the others divide what is left.
 *
 * Bound: reports of as many gateways as the store has in its roster; one record for each replica of the pool.
 */
export interface RoomOptions {
  readonly ttlMs: number
  readonly forgetMs: number
  readonly silentUs: number
  readonly gatewaysMax: number
  /** A call without an answer for this long is given up. */
  readonly callUs: number
  /** How long a gateway waits for its first answer before it begins alone. */
  readonly startUs: number
  /** `static`: 1 ÷ N for ever, and nothing is asked. `fallback`: the whole limit at each gateway while the store is away. */
  readonly way?: 'leased' | 'static' | 'fallback'
}

export interface RoomCall {
  readonly sentAt: Instant
  readonly member: Membership
  readonly told: { readonly topic: string; readonly text: string }
  readonly asks: readonly RoomAsk[]
}

interface Grant {
  sequences: number
  kvTokens: number
}

export class RoomBook {
  readonly #gatewayId: string
  readonly #poolId: string
  readonly #options: RoomOptions
  readonly #grants = new Map<string, Grant>()
  /** What others last told; those that have gone silent since are kept while the roster has them. */
  #reports = new Map<string, RoomReport>()
  #silent = new Map<string, RoomReport>()
  readonly #prefixes = new PrefixNews()
  /** Of the last answer, until it is taken. */
  #prefixesHeard: readonly PrefixesHeard[] = []
  #factors: WeightFactors = NO_FACTORS
  #told = 0
  #epoch = ''
  readonly #bornAt: Instant
  /** When the last call that was answered was sent. */
  #heardAt: Instant
  #inFlight: RoomCall | undefined
  #starvedSince: Instant | undefined

  constructor(now: Instant, gatewayId: string, poolId: string, options: RoomOptions) {
    this.#gatewayId = gatewayId
    this.#poolId = poolId
    this.#options = options
    this.#bornAt = now
    this.#heardAt = now
  }

  get gatewayCount(): number {
    return this.#told === 0 ? this.#options.gatewaysMax : this.#told
  }

  isSilent(now: Instant): boolean {
    return now - this.#heardAt > this.#options.silentUs
  }

  /** The share in force from now on, and the call that should be made; no call while one is on its way. */
  renew(now: Instant, figures: PoolFigures): { readonly share: PoolShare; readonly call: RoomCall | undefined } {
    const { way = 'leased' } = this.#options
    this.#forgetReplicas(figures)
    this.#noteStarving(now, figures)
    if (way === 'static') {
      for (const replica of figures.replicas) Object.assign(this.#grantAt(replica.replicaId), this.#safeShare(replica))
      return { share: this.#share(figures, now), call: undefined }
    }
    if (this.isSilent(now)) this.#live(now, figures)
    const isBusy = this.#inFlight !== undefined && now - this.#inFlight.sentAt < this.#options.callUs
    if (isBusy) return { share: this.#share(figures, now), call: undefined }
    const targets = this.#targets(figures)
    for (const [replicaId, target] of targets) {
      if (way === 'leased' || !this.isSilent(now)) lower(this.#grantAt(replicaId), target)
    }
    const call: RoomCall = {
      sentAt: now,
      member: this.#member(),
      told: {
        topic: this.#poolId,
        text: writeRoomReport(
          figures,
          (id) => this.#grants.get(id)?.sequences ?? 0,
          this.#starvedMs(now),
          this.#prefixes.tell(new Set(figures.replicas.map(({ replicaId }) => replicaId))),
        ),
      },
      asks: figures.replicas.flatMap((replica) => this.#asks(now, replica, targets.get(replica.replicaId))),
    }
    this.#inFlight = call
    return { share: this.#share(figures, now), call }
  }

  /** Undefined: there was no answer. The share in force from now on; undefined when nothing has changed. */
  answered(now: Instant, call: RoomCall, answer: RoomAnswer | undefined, figures: PoolFigures): PoolShare | undefined {
    if (this.#inFlight !== call) return undefined
    this.#inFlight = undefined
    if (answer === undefined) return undefined
    this.#heardAt = call.sentAt
    this.#told = answer.gatewayCount
    this.#epoch = answer.epoch
    this.#hear(answer)
    for (const [i, ask] of call.asks.entries()) {
      const granted = answer.granted[i] ?? -1
      if (granted < 0) continue
      const [, kind, replicaId] = splitName(ask.name)
      const grant = this.#grantAt(replicaId)
      if (kind === 'kv') grant.kvTokens = granted
      else grant.sequences = granted
    }
    return this.#share(figures, now)
  }

  /** A prompt was given to a replica of the pool: the others will hear which. */
  placed(replicaId: string, blocks: number, hashes: readonly number[]): void {
    if (this.#options.way !== 'static') this.#prefixes.placed(replicaId, blocks, hashes)
  }

  /** What the others gave to the replicas, of the last answer; once. */
  takePrefixes(): readonly PrefixesHeard[] {
    const heard = this.#prefixesHeard
    this.#prefixesHeard = []
    return heard
  }

  /** What the others were offered so far, and what waits there, as they last told. */
  demandElsewhere(): DemandElsewhere {
    return demandIn(this.#reports)
  }

  #hear({ reports, silentCount }: RoomAnswer): void {
    const heard = new Map<string, RoomReport>()
    for (const [id, text] of reports) {
      const report = readRoomReport(text)
      if (report !== undefined) heard.set(id, report)
    }
    // Of those that are gone the roster still counts `silentCount`: the last that were heard.
    for (const [id, report] of this.#reports) if (!heard.has(id)) this.#silent.set(id, report)
    for (const id of this.#silent.keys()) {
      if (heard.has(id) || this.#silent.size > silentCount) this.#silent.delete(id)
    }
    this.#reports = heard
    this.#prefixesHeard = this.#prefixes.hear(heard)
  }

  #asks(now: Instant, { replicaId, inFlight, sequencesMax, kvTokensMax }: ReplicaFigures, target = NO_ROOM): RoomAsk[] {
    const grant = this.#grantAt(replicaId)
    const asks = [
      {
        name: nameOf('seq', replicaId),
        limit: Math.floor(sequencesMax),
        held: Math.max(inFlight.sequences, grant.sequences),
        granted: grant.sequences,
        target: target.sequences,
        sequence: now,
      },
    ]
    if (!Number.isFinite(kvTokensMax)) return asks
    asks.push({
      name: nameOf('kv', replicaId),
      limit: Math.floor(kvTokensMax),
      held: Math.max(inFlight.kvTokens, grant.kvTokens),
      granted: grant.kvTokens,
      target: target.kvTokens,
      sequence: now,
    })
    return asks
  }

  /** What this gateway should have at each replica; also sets the factors of weights. */
  #targets(figures: PoolFigures): ReadonlyMap<string, RoomAllowance> {
    // Before the first answer nobody knows how many there are.
    if (this.#told === 0)
      return new Map(figures.replicas.map((replica) => [replica.replicaId, this.#safeShare(replica)]))
    const gatewayIds = [this.#gatewayId, ...this.#reports.keys()]
    const limits = new Map(
      figures.replicas.map((r) => [
        r.replicaId,
        Math.max(0, Math.floor(r.sequencesMax) - this.#heldBackAt(r.replicaId)),
      ]),
    )
    const total = [...limits.values()].reduce((sum, limit) => sum + limit, 0)
    const all = [figures.lanes, ...[...this.#reports.values()].map(({ lanes }) => lanes)]
    const slots = slotsInUse(all, total, gatewayIds.length)
    const demands = demandsOf(gatewayIds, all)
    const question = { gatewayIds, ownId: this.#gatewayId, gatewayCount: this.gatewayCount, slots }
    const { parts, factors } = poolTargets(demands, question)
    this.#factors = factors
    const starvedS = new Map([...this.#reports].map(([id, { starvedMs }]) => [id, starvedMs / 1_000]))
    starvedS.set(this.#gatewayId, this.#starvedMs(this.#heardAt) / 1_000)
    const byReplica = slotsByReplica({ parts, limits, starvedS })
    return new Map(
      figures.replicas.map(({ replicaId, sequencesMax, kvTokensMax }) => {
        const sequences = byReplica.get(replicaId)?.get(this.#gatewayId) ?? 0
        const part = sequencesMax === 0 ? 0 : sequences / Math.floor(sequencesMax)
        const kvTokens = Number.isFinite(kvTokensMax) ? Math.floor(kvTokensMax * part) : Number.POSITIVE_INFINITY
        return [replicaId, { sequences, kvTokens }]
      }),
    )
  }

  /** Alone: no more than the safe share. */
  #live(now: Instant, { replicas }: PoolFigures): void {
    const { way = 'leased', startUs } = this.#options
    for (const replica of replicas) {
      const grant = this.#grantAt(replica.replicaId)
      const safe = this.#safeShare(replica)
      if (way === 'fallback') Object.assign(grant, wholeOf(replica))
      else if (way === 'leased' && this.#told > 0) lower(grant, safe)
      else if (now - this.#bornAt >= startUs) Object.assign(grant, safe)
    }
  }

  #safeShare({ sequencesMax, kvTokensMax }: ReplicaFigures): RoomAllowance {
    const n = this.gatewayCount
    return { sequences: Math.max(1, Math.floor(sequencesMax / n)), kvTokens: Math.floor(kvTokensMax / n) }
  }

  #heldBackAt(replicaId: string): number {
    let sum = 0
    for (const { replicas } of this.#silent.values()) {
      const at = replicas.get(replicaId)
      if (at !== undefined) sum += Math.max(at.granted, at.inFlight.sequences)
    }
    return sum
  }

  #share(figures: PoolFigures, now: Instant): PoolShare {
    const isSilent = this.isSilent(now)
    const rooms = new Map<string, RoomShare>()
    for (const { replicaId, kvTokensMax } of figures.replicas) {
      const { sequences, kvTokens } = this.#grantAt(replicaId)
      const allowance = { sequences, kvTokens: Number.isFinite(kvTokensMax) ? kvTokens : Number.POSITIVE_INFINITY }
      rooms.set(replicaId, { allowance, others: isSilent ? NOTHING_IN_FLIGHT : this.#othersAt(replicaId) })
    }
    return { rooms, factors: this.#factors, partMin: 1 / (2 * this.gatewayCount) }
  }

  #othersAt(replicaId: string): TurnsInFlight {
    let sum: TurnsInFlight = NOTHING_IN_FLIGHT
    for (const { replicas } of this.#reports.values()) {
      const at = replicas.get(replicaId)?.inFlight
      if (at !== undefined) sum = turnsTogether(sum, at)
    }
    return sum
  }

  #grantAt(replicaId: string): Grant {
    const known = this.#grants.get(replicaId) ?? { sequences: 0, kvTokens: 0 }
    this.#grants.set(replicaId, known)
    return known
  }

  #forgetReplicas({ replicas }: PoolFigures): void {
    if (this.#grants.size <= replicas.length) return
    const present = new Set(replicas.map(({ replicaId }) => replicaId))
    for (const replicaId of this.#grants.keys()) if (!present.has(replicaId)) this.#grants.delete(replicaId)
  }

  #noteStarving(now: Instant, { lanes, replicas }: PoolFigures): void {
    const isWaiting = lanes.some(({ waitingCount, offlineCount }) => waitingCount + offlineCount > 0)
    const hasRoom = replicas.some(
      ({ replicaId, inFlight }) => inFlight.sequences > 0 || this.#grantAt(replicaId).sequences > 0,
    )
    this.#starvedSince = isWaiting && !hasRoom ? (this.#starvedSince ?? now) : undefined
  }

  #starvedMs(now: Instant): number {
    return this.#starvedSince === undefined ? 0 : Math.max(0, Math.floor((now - this.#starvedSince) / 1_000))
  }

  #member(): Membership {
    const { ttlMs, forgetMs } = this.#options
    return { id: this.#gatewayId, epoch: this.#epoch, told: this.#told, ttlMs, forgetMs }
  }
}

const NO_ROOM: RoomAllowance = { sequences: 0, kvTokens: 0 }

const wholeOf = ({ sequencesMax, kvTokensMax }: ReplicaFigures): RoomAllowance => ({
  sequences: Math.floor(sequencesMax),
  kvTokens: kvTokensMax,
})

const nameOf = (kind: 'seq' | 'kv', replicaId: string): string => `room:${kind}:${replicaId}`

/** A replica's name may have colons in it. */
function splitName(name: string): [string, string, string] {
  const [word = '', kind = ''] = name.split(':', 2)
  return [word, kind, name.slice(word.length + kind.length + 2)]
}

function lower(grant: Grant, to: RoomAllowance): void {
  grant.sequences = Math.min(grant.sequences, to.sequences)
  grant.kvTokens = Math.min(grant.kvTokens, to.kvTokens)
}

/** Growth that is allowed for where a limit is not a number of slots. */
const GROWTH_RATIO = 1.1

/**
 * Slots that the pool runs at once. A limit by the time per token has a number of sequences that it never reaches, so while
 * anything waits, the pool is taken to be as large as what runs, and a little more.
 */
function slotsInUse(all: ReadonlyArray<readonly LaneFigures[]>, total: number, gatewayCount: number): number {
  let [held, waiting] = [0, 0]
  for (const lanes of all) {
    for (const { heldCount, waitingCount, offlineCount } of lanes) {
      held += heldCount
      waiting += waitingCount + offlineCount
    }
  }
  return waiting === 0 || held === 0 ? total : Math.min(total, Math.ceil(GROWTH_RATIO * held) + gatewayCount)
}

/** Each key's demand at every gateway. Offline work asks for slots only where nothing else waits anywhere. */
function demandsOf(gatewayIds: readonly string[], all: ReadonlyArray<readonly LaneFigures[]>): LaneDemand[] {
  const isBusy = all.some((lanes) => lanes.some(({ waitingCount }) => waitingCount > 0))
  const byKey = new Map<string, { first: LaneFigures; demand: Map<string, number>; cost: number; us: number }>()
  let [allCost, allUs] = [0, 0]
  for (const [i, lanes] of all.entries()) {
    for (const lane of lanes) {
      const slots = lane.heldCount + lane.waitingCount + (isBusy ? 0 : lane.offlineCount)
      if (slots === 0) continue
      const known = byKey.get(lane.keyId) ?? { first: lane, demand: new Map<string, number>(), cost: 0, us: 0 }
      byKey.set(lane.keyId, known)
      known.demand.set(gatewayIds[i] ?? '', slots)
      known.cost += lane.waitingCost
      known.us += lane.waitingUs
      allCost += lane.waitingCost
      allUs += lane.waitingUs
    }
  }
  const usual = allCost === 0 ? 1 : allUs / allCost
  // In the order of names, so that sums are the same at every gateway.
  return [...byKey.entries()]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { first, demand, cost, us }]) => ({
      ...first,
      usPerCost: usual === 0 ? 1 : (cost === 0 ? usual : us / cost) / usual || 1,
      demand,
    }))
}
