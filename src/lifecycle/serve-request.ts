import type { Cancellation } from '../base/cancellation.ts'
import type { Settled } from '../domain/entry.ts'
import type { Request } from '../domain/request.ts'
import { admit } from './admit.ts'
import { answerFromCache } from './answers/answer-from-cache.ts'
import { auditedSink, refuseUnaudited } from './audit-request.ts'
import { refusePaused } from './change-terms.ts'
import { beginAttempt, generate } from './generate.ts'
import type { Platform } from './platform.ts'
import type { Sink } from './ports.ts'
import { Relay } from './relay.ts'
import { refuseUnknownCorpus, retrieve } from './retrieve.ts'
import { mirror } from './rollout/mirror.ts'
import { beginCheck, isBlocked, openGate, whenPassed } from './screening/screen-request.ts'
import { blockedUnread, endedBy, failed, notGranted, rejected, settle } from './settle.ts'
import { admitWithMore } from './sharing/admit-with-more.ts'
import { Ticket } from './ticket.ts'
import { tryAgain } from './try-again.ts'

/**
 * START HERE. The story of one request, from its arrival to its one ending:
 *
 *   arrive ─▶ known already? ─▶ admit ─▶ retrieve ─▶ take a turn ─▶ generate ─▶ settle
 *      │       (if its tenant           (in its lane)     ▲    ▲         │ refused or lost before the client saw anything:
 *      │        wants that)                               │    └─ again ─┘ elsewhere, at the head of its lane
 *      └─────▶ judged, meanwhile (if its tenant wants that) ┘ blocked: settle
 *
 * The live server and the simulator call this function; the world is whatever is plugged into `ports.ts`. Decisions are
 * `policy/`'s; this file only asks for them in order, and each step passes on what it made: a ticket, then what was
 * admitted, then the attempt (`ticket.ts`). Expected endings are values. Whatever happens, the ticket ends exactly once,
 * in `settle` (law L1).
 */
export async function serveRequest(
  platform: Platform,
  request: Request,
  cancellation: Cancellation,
  sink: Sink,
): Promise<Settled> {
  const ticket = new Ticket(request, cancellation)
  const relay = new Relay(platform.world.clock, ticket, auditedSink(platform, ticket, sink), platform)
  platform.arrive(ticket)
  try {
    const shut = refusePaused(platform, request.tenant) ?? refuseUnaudited(platform, ticket)
    if (shut !== undefined) return settle(platform, ticket, relay, rejected(shut))
    if (request.screening !== undefined) beginCheck(platform, ticket, request.screening, serveRequest)
    if (isBlocked(ticket)) return settle(platform, ticket, relay, blockedUnread(platform, ticket))
    const unknown = request.retrieval && (await refuseUnknownCorpus(platform, ticket, request.retrieval))
    if (unknown !== undefined) return settle(platform, ticket, relay, rejected(unknown))
    const known = request.cacheable && (await answerFromCache(platform, ticket, relay, request.cacheable))
    if (known !== undefined) return settle(platform, ticket, relay, known)
    if (isBlocked(ticket)) return settle(platform, ticket, relay, blockedUnread(platform, ticket))

    let admission = admit(platform, ticket)
    if (admission.kind === 'short') admission = await admitWithMore(platform, ticket, admission)
    if (admission.kind === 'rejected') return settle(platform, ticket, relay, rejected(admission.refusal))
    const { admitted } = admission
    if (request.retrieval !== undefined) await retrieve(platform, admitted, request.retrieval)
    else if (ticket.check !== undefined) openGate(platform, admitted)
    whenPassed(ticket, () => mirror(platform, admitted, relay, serveRequest))

    for (;;) {
      const turn = await platform.turnstile.takeTurn(ticket)
      if (turn.kind !== 'granted') return settle(platform, ticket, relay, notGranted(platform, admitted, turn))

      const attempt = beginAttempt(platform, admitted, turn)
      const ending = await generate(platform, attempt, relay)
      const isAgain = tryAgain(platform, attempt, ending, relay)
      if (!isAgain) {
        if (ticket.check?.isPending === true) await ticket.check.whenOver()
        if (ending.kind === 'finished') relay.flush()
        return settle(platform, ticket, relay, endedBy(ticket, ending))
      }
      relay.startOver()
    }
  } catch (error) {
    // A settled ticket is in the journal; what broke is how its client was told, which the caller counts.
    if (ticket.phase === 'settled') throw error
    return settle(platform, ticket, relay, failed(platform, ticket, error))
  }
}
