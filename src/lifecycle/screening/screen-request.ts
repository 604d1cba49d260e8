import type { Instant } from '../../base/clock.ts'
import { CONTENT_FILTER, type Refusal } from '../../domain/outcome.ts'
import { promptTokensOf } from '../../domain/request.ts'
import { isJudging, type ScreenFinding, type Screening } from '../../domain/screening.ts'
import type { Platform } from '../platform.ts'
import type { Ending } from '../ports.ts'
import type { ServeRequest } from '../rollout/run-errand.ts'
import type { ScreenVerdict } from '../screening-ports.ts'
import type { Admitted, Attempt, Ticket } from '../ticket.ts'
import { askGuard } from './ask-guard.ts'
import { Check } from './check.ts'

/**
 * May this be asked? Judging starts when the ticket arrives and runs while the ticket is admitted, its passages are
 * found and it waits for its turn. Where the two meet:
 *
 *   gate      the ticket stands in its lane and has no turn before the verdict: the first token comes
 *             max(0, check − wait) later than without screens
 *   overlap   on pools marked `inside` the ticket takes its turn, and the relay holds the first token until the
 *             verdict: max(0, check − wait − prefill). A block then has cost its prefill, which its tenant pays
 *
 * A block calls off the ticket's cancellation, so that it ends the same way wherever the ticket is: in its lane, at an
 * engine, before an answer from the cache. Before the verdict no mirror is started and no cached answer is given. A
 * ticket that ends for another reason meanwhile (a full queue, a lost client) does not wait for the verdict, and gives
 * back at once what it holds, wherever it is.
 *
 * A block before the prefill costs the tenant its request and no tokens: prompts cannot be tried out for nothing.
 */

/** Starts judging. A verdict that needs no waiting is there when this returns. */
export function beginCheck(platform: Platform, ticket: Ticket, screening: Screening, serve: ServeRequest): void {
  // A copy of a request was judged with it.
  if (ticket.request.errand !== undefined) return
  const { terms, found, unscreened } = screening
  const isJudged = terms.rules.some(({ screen, direction }) => direction === 'input' && isJudging(screen))
  if (!isJudged && found.length === 0 && unscreened.length === 0) return
  const startedAt = platform.world.clock.now()
  const check = new Check(terms.join === 'overlap', ticket.cancellation)
  ticket.check = check
  const verdict =
    foundVerdict(platform, ticket, screening) ?? (isJudged ? judge(platform, ticket, screening, serve) : NOT_JUDGED)
  if (!(verdict instanceof Promise)) {
    conclude(platform, ticket, check, { screening, verdict, startedAt })
    return
  }
  void verdict.then((given) => conclude(platform, ticket, check, { screening, verdict: given, startedAt }))
}

const NOT_JUDGED: ScreenVerdict = { kind: 'passed', findings: [], skipped: [], because: 'nothing is to be judged' }

/** What the gateway found while it rewrote the request needs no judge. */
function foundVerdict({ world }: Platform, { request }: Ticket, screening: Screening): ScreenVerdict | undefined {
  const by = screening.found.find(({ action }) => action === 'block')
  if (by === undefined) return undefined
  world.screener?.noteBlock?.({ tenantId: request.tenant.id, keyId: request.key.id, screening })
  return { kind: 'blocked', findings: [], skipped: [], because: `${by.screen} found ${by.category}` }
}

/** The port promises not to throw; a throw is our fault, counted in the journal, and the policy says what follows. */
function judge(
  platform: Platform,
  ticket: Ticket,
  screening: Screening,
  serve: ServeRequest,
): Promise<ScreenVerdict> | ScreenVerdict {
  const { screener, clock, journal } = platform.world
  const broke = (error: unknown): ScreenVerdict => {
    const because = String(error)
    journal.record({ kind: 'fault-seen', at: clock.now(), where: 'screen', because, ticketId: ticket.id })
    return unjudged(screening)
  }
  if (screener === undefined) return broke('a tenant has judges, and this server has no screener')
  const { request, cancellation } = ticket
  try {
    const verdict = screener.judge({
      requestId: ticket.id,
      tenantId: request.tenant.id,
      keyId: request.key.id,
      promptTokens: promptTokensOf(request),
      screening,
      cancellation,
      askGuard: (question) => askGuard(platform, serve, ticket, question),
    })
    return verdict instanceof Promise ? verdict.catch(broke) : verdict
  } catch (error) {
    return broke(error)
  }
}

/** No judge could say anything: each rule's own policy counts, and one that is closed closes. */
function unjudged({ terms }: Screening): ScreenVerdict {
  const skipped = terms.rules.flatMap(({ screen, direction }) =>
    direction === 'input' && isJudging(screen) ? [screen] : [],
  )
  const closed = terms.rules.find(
    ({ screen, direction, onFailure }) => direction === 'input' && isJudging(screen) && onFailure === 'closed',
  )
  if (closed === undefined) return { kind: 'partial', findings: [], skipped, because: 'the judges broke' }
  const finding: ScreenFinding = {
    screen: closed.screen,
    direction: 'input',
    category: 'unavailable',
    action: 'block',
    count: 1,
  }
  return { kind: 'blocked', findings: [finding], skipped, because: `${closed.screen} could not say` }
}

interface Concluding {
  readonly screening: Screening
  readonly verdict: ScreenVerdict
  readonly startedAt: Instant
}

function conclude(platform: Platform, ticket: Ticket, check: Check, { screening, verdict, startedAt }: Concluding) {
  const { clock, journal } = platform.world
  const { tenant, key } = ticket.request
  journal.record({
    kind: 'screened',
    at: clock.now(),
    ticketId: ticket.id,
    tenantId: tenant.id,
    keyId: key.id,
    verdict: verdict.kind,
    findings: [...screening.found, ...verdict.findings],
    skipped: verdict.skipped ?? [],
    join: screening.terms.join,
    policy: screening.terms.version,
    tookUs: clock.now() - startedAt,
    because: verdict.because,
  })
  check.conclude(verdict, () => ticket.cancellation.cancel(CONTENT_FILTER))
}

export const isBlocked = ({ check }: Ticket): boolean => check?.isBlocked === true

/** Whether the ticket may not have a turn yet in the pool that it stands in. */
export function isGated({ policies }: Platform, { check }: Ticket, poolId: string): boolean {
  if (check === undefined || !check.isPending) return false
  return !check.mayOverlap || policies.poolsById.get(poolId)?.pool.isInside !== true
}

/** What was to be waited for beside the verdict is there: the ticket may have its turn when the verdict lets it. */
export function openGate(platform: Platform, admitted: Admitted): void {
  const { ticket, poolId } = admitted
  const open = (): void => platform.turnstile.ready(admitted)
  if (isGated(platform, ticket, poolId)) ticket.check?.whenPassed(open)
  else open()
}

/** Calls `next` when the request is known to be let through: at once where nothing is judged. */
export function whenPassed({ check }: Ticket, next: () => void): void {
  if (check === undefined) next()
  else check.whenPassed(next)
}

/**
 * The last guard before an engine: a ticket that took its turn before its verdict, and whose pool is not inside because
 * it was moved meanwhile, waits here. Undefined: it may go.
 */
export async function heldFromBackend(platform: Platform, { ticket, lease }: Attempt): Promise<Ending | undefined> {
  if (isGated(platform, ticket, lease.replica.poolId)) await ticket.check?.whenOver()
  if (isBlocked(ticket)) return { kind: 'refused', refusal: blockRefusal(ticket) }
  return isGated(platform, ticket, lease.replica.poolId) ? { kind: 'cancelled' } : undefined
}

/** What the client is told: the screens and their categories, never the text. */
export function blockRefusal({ check, request }: Ticket): Refusal {
  const verdict = check?.verdict
  if (verdict?.retryAfterUs !== undefined)
    return { code: 'key-paused', because: verdict.because, blame: 'tenant', retryAfterUs: verdict.retryAfterUs }
  const findings = [...(request.screening?.found ?? []), ...(verdict?.findings ?? [])]
  const blocking = findings.filter(({ action }) => action === 'block')
  const screens = [...new Set(blocking.map(({ screen }) => screen))].join(', ') || 'screening'
  const categories = [...new Set(blocking.map(({ category }) => category))].join(', ') || 'unknown'
  return {
    code: 'content-filter',
    because: `The request was blocked by ${screens}: ${categories}.`,
    blame: 'request',
    retryAfterUs: undefined,
    detail: { screen: screens, category: categories },
  }
}
