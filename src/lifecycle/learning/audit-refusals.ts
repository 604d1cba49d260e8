import type { Clock, Instant } from '../../base/clock.ts'
import type { Estimate } from '../../domain/plan.ts'
import type { Try } from '../../policy/admission/admission-world.ts'
import type { AuditedRefusal } from '../../policy/admission/refusal-audit.ts'
import type { Load } from '../../policy/limits/ledger.ts'
import { timesUnderLoad } from '../../policy/twin/times-under-load.ts'
import type { PoolPolicies } from '../fleet/pool-policies.ts'
import type { Policies } from '../policies.ts'
import type { Attempt, Ticket } from '../ticket.ts'

/**
 * What the audit of refusals is told (`policy/admission/refusal-audit.ts`): each refusal for lateness, and, while such
 * refusals are watched, each turn, first token and ending at their pool. After each of these the pool is looked at: is
 * there room that no ticket waits for? Looks cost nothing while nothing is watched, and change no decision.
 */
interface Audited {
  readonly policies: Policies
  readonly world: { readonly clock: Clock }
}

export function auditRefusal(platform: Audited, { request, id }: Ticket, nearest: Try): void {
  const { policies, world } = platform
  const { plan, patience } = nearest
  const { promptTokens, cachedTokens, outputTokens } = plan.estimate
  policies.lengths.count('refused-late', promptTokens)
  const known = policies.poolsById.get(nearest.pool.poolId)
  if (known === undefined) return
  const now = world.clock.now()
  const { speedAlone } = nearest.pool
  const outputPerChoice = outputTokens / request.choiceCount
  const readyReplicaCount = Math.max(1, policies.dispatcher.poolFacts(known.pool.id)?.readyReplicaCount ?? 1)
  known.audit.refused(now, {
    ticketId: id,
    laneId: laneIdOf(request),
    promptTokens,
    aloneUs: speedAlone.prefillUs(Math.max(0, promptTokens - cachedTokens), cachedTokens),
    decodeUs: Math.max(0, outputPerChoice - 1) * speedAlone.tokenUs(promptTokens + Math.round(outputPerChoice / 2)),
    ...roomOf(platform, request, known.pool.id, plan.estimate),
    delayUs: readUs(known, policies.dispatcher.likelyLoadAt(known.pool.id), plan.estimate) / readyReplicaCount,
    firstTokenBy: now + patience.ttftUs,
    finishBy: now + patience.finishUs,
  })
  lookForRoom(platform, known)
}

/** What the audit must know of room: whether the request finds any, and what taking it means for those behind. */
function roomOf(
  { policies: { dispatcher }, world: { clock } }: Audited,
  request: Ticket['request'],
  poolId: string,
  estimate: Estimate,
): Pick<AuditedRefusal, 'roomUs' | 'hasRoom'> {
  const seeker = { key: request.key, band: request.band }
  const look = (): number => dispatcher.roomWait(clock.now(), poolId, seeker, estimate).perAnswerUs
  const roomUs = look()
  return roomUs === 0 ? {} : { roomUs, hasRoom: () => look() === 0 }
}

/** A ticket has its turn. */
export function auditGrant(platform: Audited, { admitted, ticket, lease }: Attempt): void {
  const known = platform.policies.poolsById.get(lease.replica.poolId)
  if (known === undefined || !known.audit.isWatching) return
  known.audit.granted(ticket.id, laneIdOf(ticket.request), admitted.at)
  lookForRoom(platform, known)
}

/** A first token came. */
export function auditFirstToken(platform: Audited, attempt: Attempt, firstTokenAt: Instant): void {
  const { admitted, ticket, lease, plan } = attempt
  const known = platform.policies.poolsById.get(lease.replica.poolId)
  if (known === undefined || !known.audit.isWatching) return
  const { promptTokens, cachedTokens } = plan.estimate
  const slackUs = admitted.at + admitted.patience.ttftUs - firstTokenAt
  known.audit.began(firstTokenAt, {
    ticketId: ticket.id,
    admittedAt: admitted.at,
    aloneUs: known.speedAlone.prefillUs(Math.max(0, promptTokens - cachedTokens), cachedTokens),
    tookUs: firstTokenAt - attempt.grantedAt,
    expectedUs: attempt.firstTokenExpectedUs,
    slackUs: slackUs < 0 ? slackUs : slackUs + NOISE_RATIO * ticket.request.slo.ttftUs,
  })
  lookForRoom(platform, known)
}

/** An attempt is over, and its lease is back. */
export function auditEnd(platform: Audited, { ticket, lease }: Attempt): void {
  const known = platform.policies.poolsById.get(lease.replica.poolId)
  if (known === undefined || !known.audit.isWatching) return
  known.audit.ended(ticket.id)
  lookForRoom(platform, known)
}

function lookForRoom({ policies, world }: Audited, known: PoolPolicies): void {
  const { dispatcher } = policies
  const { id } = known.pool
  const facts = dispatcher.poolFacts(id)
  if (facts === undefined || facts.queuedCount > 0 || facts.openReplicaCount === 0) return
  const load = dispatcher.likelyLoadAt(id)
  if (load === undefined) return
  known.audit.sawRoom(world.clock.now(), load.prefillTokens === 0, ({ promptTokens }) =>
    prefillUnder(known, load, promptTokens),
  )
}

/** Time of the engine's steps in which the prompt is read, beside the tokens of those in flight. */
function readUs(known: PoolPolicies, load: Load | undefined, { promptTokens, cachedTokens }: Estimate): number {
  const toRead = Math.max(0, promptTokens - cachedTokens)
  if (load === undefined) return known.speedAlone.prefillUs(toRead, cachedTokens)
  const { sequences, contextTokens, kvTokens, prefillMilliPerToken, readTokens, engineUs } = load
  const running = { sequences, contextTokens, kvTokens, prefillMilliPerToken, readTokens, engineUs, prefillTokens: 0 }
  return prefillUnder(known, running, toRead)
}

/** As the engine's own step times have it: never what the refusal was predicted by. */
function prefillUnder({ pool, engineOf, speedAlone }: PoolPolicies, load: Load, promptTokens: number): number {
  const [replica] = pool.replicas
  const { alone, steps } = replica === undefined ? { alone: speedAlone } : engineOf(replica)
  if (steps === undefined) return alone.prefillUs(promptTokens, 0)
  return timesUnderLoad(alone, steps, load, { promptTokens, cachedTokens: 0, plannedTokens: undefined }).ttftUs
}

const laneIdOf = ({ key, band }: Ticket['request']): string => `${band} ${key.id}`

/** A promise that is missed by this share of it counts as kept, as in the replays: steps of two runs do not line up. */
const NOISE_RATIO = 0.01
