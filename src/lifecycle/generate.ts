import type { CancelTimer, Instant } from '../base/clock.ts'
import { isGenerative } from '../domain/request.ts'
import { openBooks } from './keep-books.ts'
import { auditEnd, auditGrant } from './learning/audit-refusals.ts'
import { learnFromAttempt, measure } from './learning/learn.ts'
import { beginLesson } from './learning/teach-twin.ts'
import { trimOf } from './plan-request.ts'
import type { Platform } from './platform.ts'
import type { Ending } from './ports.ts'
import type { Relay } from './relay.ts'
import { expect } from './rollout/judge-attempt.ts'
import { heldFromBackend } from './screening/screen-request.ts'
import { type Admitted, Attempt } from './ticket.ts'
import { ATTEMPTS_MAX } from './try-again.ts'
import type { Turn } from './turnstile.ts'

/**
 * One turn on one replica. However the attempt ends, its lease goes back and the meters learn from it. What an engine
 * reports of its own work is believed up to what was asked of it, and no further.
 */
type GrantedTurn = Extract<Turn, { kind: 'granted' }>

/** From here the attempt holds the lease: it goes back in `generate`, or in `Platform.release` when something throws. */
export function beginAttempt(platform: Platform, admitted: Admitted, turn: GrantedTurn): Attempt {
  const { clock, journal } = platform.world
  const { ticket } = admitted
  const { lease, because, placement } = turn
  const { replica } = lease
  const attempt = new Attempt(admitted, { lease, placement, grantedAt: clock.now(), nth: ++ticket.attempts })
  ticket.attempt = attempt
  ticket.phase = 'running'
  if (platform.policies.rollouts.get(replica.model)?.judged === replica.releaseId) ticket.canaryAttempts++
  journal.record({
    kind: 'granted',
    at: attempt.grantedAt,
    ticketId: ticket.id,
    releaseId: replica.releaseId,
    replicaId: replica.id,
    attempt: attempt.nth,
    waitedUs: attempt.grantedAt - admitted.at,
    because,
    placement,
    rung: attempt.plan.rung.name,
    region: replica.region,
    ...trimOf(platform, ticket.request, attempt.plan),
    ...(admitted.again !== undefined && { again: admitted.again }),
  })
  auditGrant(platform, attempt)
  openBooks(platform, attempt)
  return attempt
}

export async function generate(platform: Platform, attempt: Attempt, relay: Relay): Promise<Ending> {
  const { clock, journal, backends } = platform.world
  const { ticket, lease, plan } = attempt
  const { request, cancellation } = ticket
  const { replica } = lease
  const atGrant = expect(platform, attempt)
  beginLesson(platform, attempt)
  platform.costs.began(attempt)
  const forgetReading = supposeRead(platform, attempt)
  const forgetDeadline = request.isCutOff
    ? clock.at(request.deadlineAt, () => cancellation.cancel('deadline-passed'))
    : undefined
  const firstTokenBy = firstTokenByOf(attempt)
  const limit = firstTokenBy === undefined ? {} : { firstTokenBy }
  platform.policies.poolsById.get(replica.poolId)?.outlook?.of(replica.id).sent(plan.estimate.cost)
  let ending: Ending = { kind: 'lost', because: 'the backend threw' }
  try {
    const unsent = ticket.check && (await heldFromBackend(platform, attempt))
    const own = platform.liveness.begin(attempt, platform.offlineRuns.begin(attempt, relay) ?? cancellation)
    const call = { lease, request, plan, sink: relay, cancellation: own, attempt: attempt.nth, ...limit }
    ending = unsent ?? believable(platform, attempt, await backends.of(replica).generate(call))
    if (ending.kind === 'cancelled' && !cancellation.isCancelled) ending = stalled(attempt, ending)
    // What came after the call-off was dropped: whatever the engine says, this is no whole answer.
    if (attempt.isCalledOff) ending = takenBack(ending)
    // The end of an answer waits for the verdict too, after what the relay holds; one that is called off first is held for good.
    if (ending.kind === 'finished' && ticket.check?.isPending === true) {
      await ticket.check.whenOver()
      if (ticket.check.isPending) ending = takenBack(ending)
    }
    // Before anything is learned from the attempt: the deltas' own counts may have been guesses.
    if (ending.kind === 'finished' && ending.streamedTokens !== undefined) {
      attempt.lesson?.trueUp(ticket.trueUp(ending.streamedTokens))
    }
  } finally {
    forgetDeadline?.()
    forgetReading?.()
    attempt.isOver = true
    platform.offlineRuns.over(attempt)
    platform.liveness.over(attempt, ending)
    const atEnd = expect(platform, attempt)
    platform.turnstile.giveBack(lease, measure(platform, attempt, ending))
    platform.costs.over(attempt, ending)
    platform.offlineRuns.count(attempt, ending)
    auditEnd(platform, attempt)
    const usage = ending.kind === 'finished' ? ending.usage : undefined
    attempt.lesson?.over(clock.now(), ticket.lastTokenAt, attempt.tokensPerChoice, usage)
    if (ending.kind === 'finished' && request.isStreamed)
      attempt.lesson?.streamed(clock.now(), ticket, attempt.tokensPerChoice)
    learnFromAttempt(platform, attempt, { ending, atGrant, atEnd })
    tellDenial(platform, attempt, ending)
    journal.record({
      kind: 'attempt-ended',
      at: clock.now(),
      ticketId: ticket.id,
      releaseId: replica.releaseId,
      replicaId: replica.id,
      attempt: attempt.nth,
      ending: ending.kind,
      because: attempt.isCalledOff ? 'called off for an online request' : becauseOf(ending),
      unpaidCost: attempt.unpaidCost,
    })
  }
  return ending
}

/**
 * A whole answer in one piece does not say when its prompt was read: that is when it should have been. Else prompts of whole
 * answers would count as unread until their ends, and two long ones would keep everybody from an engine that is half idle.
 */
function supposeRead({ world, turnstile }: Platform, attempt: Attempt): CancelTimer | undefined {
  const { firstTokenExpectedUs, lease, isTelling } = attempt
  if (isTelling || firstTokenExpectedUs === undefined) return undefined
  return world.clock.at(world.clock.now() + Math.ceil(firstTokenExpectedUs), () => turnstile.begin(lease))
}

/**
 * What an engine reports of its work is believed up to what was asked of it: the bound on the answer, for each choice, and
 * the context window. The tokens that were seen are no bound, because tokens of reasoning need not be streamed.
 */
function believable({ policies }: Platform, { plan, ticket }: Attempt, ending: Ending): Ending {
  if (ending.kind !== 'finished' || ending.usage === undefined) return ending
  const { request } = ticket
  const { promptTokens, cachedTokens, outputTokens } = ending.usage
  const window = policies.releases.get(plan.releaseId)?.contextTokensMax ?? Number.POSITIVE_INFINITY
  // Some engines count the prompt once for each choice; texts to embed are each as long as the window at most.
  const windowCount = isGenerative(request.kind) ? request.choiceCount : request.segments.length
  const promptTokensMax = window * windowCount
  const outputTokensMax = plan.outputTokensMax * request.choiceCount
  if (promptTokens <= promptTokensMax && outputTokens <= outputTokensMax && cachedTokens <= promptTokens) return ending
  const believed = Math.min(promptTokens, promptTokensMax)
  const usage = {
    ...ending.usage,
    promptTokens: believed,
    cachedTokens: Math.min(cachedTokens, believed),
    outputTokens: Math.min(outputTokens, outputTokensMax),
  }
  return { ...ending, usage }
}

/** The platform ended the attempt because its replica makes no progress; the ticket itself goes on. */
function stalled({ watch }: Attempt, ending: Ending): Ending {
  const because = watch?.stalledBecause
  if (because === undefined) return ending
  return { kind: 'lost', because, isStalled: true, ...(ending.engineTime && { engineTime: ending.engineTime }) }
}

const takenBack = ({ engineTime }: Ending): Ending => ({
  kind: 'cancelled',
  ...(engineTime !== undefined && { engineTime }),
})

/** The operator is told once that an engine denies us, and once that the engine answers again. */
function tellDenial({ policies, world }: Platform, { lease, ticket }: Attempt, ending: Ending): void {
  const { id, poolId } = lease.replica
  const isDenied = ending.kind === 'refused' && ending.refusal.code === 'replica-denied'
  if (!isDenied && ending.kind !== 'finished') return
  const because = isDenied ? ending.refusal.because : undefined
  policies.poolsById.get(poolId)?.denial.observe(world.clock.now(), ticket.request.kind, because)
  if (!policies.health.noteDenial(id, because)) return
  const told = because ?? 'The engine answers again.'
  world.journal.record({
    kind: 'replica-denied',
    at: world.clock.now(),
    replicaId: id,
    poolId,
    isDenied,
    because: told,
  })
}

/** Share of the time left that the first token may take: the other half is for a second attempt. */
const FIRST_TOKEN_RATIO = 0.5
/** Microseconds. With less time left than this a second attempt has no chance, and half of it would cut off the first. */
const SPLIT_US_MIN = 2_000_000

/** The instant until which a stream may stay silent; undefined (no limit) when no attempt is left after this one. */
function firstTokenByOf({ ticket, grantedAt, nth }: Attempt): Instant | undefined {
  const { request } = ticket
  const leftUs = request.deadlineAt - grantedAt
  if (!request.isStreamed || nth - ticket.callOffs >= ATTEMPTS_MAX || leftUs < SPLIT_US_MIN) return undefined
  return grantedAt + Math.round(leftUs * FIRST_TOKEN_RATIO)
}

function becauseOf(ending: Ending): string {
  switch (ending.kind) {
    case 'finished':
    case 'cancelled':
      return ending.kind
    case 'refused':
      return ending.refusal.because
    case 'lost':
      return ending.because
  }
}
