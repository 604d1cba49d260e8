import { isGenerative } from '../../domain/request.ts'
import { compareAnswers, decideShadow } from '../../policy/rollout/shadow.ts'
import { AnswerText } from '../answers/answer-text.ts'
import type { Platform } from '../platform.ts'
import type { Relay } from '../relay.ts'
import type { Admitted, Ticket } from '../ticket.ts'
import { type ErrandRequest, errandTerms, hasLeftoverRoom } from './errands.ts'
import { type EndedShadow, keepOutputs } from './keep-outputs.ts'
import { runErrand, type ServeRequest } from './run-errand.ts'

/**
 * Shows a request that was admitted to a second release too, unseen by its client: a ticket of the platform's own, whose
 * answer is compared with the client's and thrown away, or kept where the tenant allows it (`keep-outputs.ts`). Nothing
 * here is awaited by the request, and whatever goes wrong is counted and forgotten: the primary can neither be delayed nor
 * fail by it.
 */
export function mirror(platform: Platform, { plan, ticket }: Admitted, relay: Relay, serve: ServeRequest): void {
  const { policies, world } = platform
  const { request } = ticket
  const rollout = policies.rollouts.get(request.model)
  const rule = rollout?.settings.shadow
  if (rule === undefined || request.errand !== undefined) return
  if (!isGenerative(request.kind)) return
  if (plan.releaseId === rule.release || rollout?.isRolledBack(rule.release) === true) return
  try {
    const decision = decideShadow(rule, {
      ticketId: ticket.id,
      tenantId: request.tenant.id,
      // Passages are their tenant's, and the copy is not that tenant's.
      hasTools: request.hasTools === true || request.retrieval !== undefined,
      inFlight: platform.errands.countOf('shadow', rule.release),
      hasLeftoverRoom: hasLeftoverRoom(policies, rule.release),
    })
    if (decision.kind === 'mirror') copy(platform, ticket, relay, serve, rule.release)
  } catch (error) {
    const because = String(error)
    world.journal.record({ kind: 'fault-seen', at: world.clock.now(), where: 'mirror', because, ticketId: ticket.id })
  }
}

function copy(platform: Platform, ticket: Ticket, relay: Relay, serve: ServeRequest, releaseId: string): void {
  const { journal, clock } = platform.world
  const primary = new AnswerText()
  const shadow = new AnswerText()
  const { epoch } = platform.outputs
  relay.readAlong(primary)
  // A copy has no deadline of its own, and is neither answered from a cache nor kept in one. Its request was judged
  // already; its answer is screened like the one that it is compared with.
  const { isCutOff: _isCutOff, cacheable: _cacheable, ...asked } = ticket.request
  const errand = { kind: 'shadow', releaseId, of: ticket.id } as const
  const request: ErrandRequest = {
    ...asked,
    id: `${ticket.id}~shadow`,
    ...errandTerms(errand, clock.now()),
  }
  runErrand(platform, serve, request, shadow)
    .then((settled) => primary.whenOver(() => endShadow(platform, ticket, { settled, primary, shadow, epoch })))
    .catch((error: unknown) => {
      journal.record({
        kind: 'fault-seen',
        at: clock.now(),
        where: 'mirror',
        because: String(error),
        ticketId: ticket.id,
      })
    })
}

/** The journal gets numbers only: no text of either. */
function endShadow(platform: Platform, ticket: Ticket, ended: Omit<EndedShadow, 'difference'>): void {
  const { world } = platform
  const { settled, primary, shadow } = ended
  const isWhole = settled.outcome === 'completed' && ticket.phase === 'settled' && ticket.outputTokens > 0
  const isCompared = isWhole && primary.hasText && shadow.hasText
  const difference = isCompared ? compareAnswers(primary.text, shadow.text) : undefined
  world.journal.record({
    kind: 'shadow-ended',
    at: world.clock.now(),
    ticketId: ticket.id,
    model: ticket.request.model,
    releaseId: settled.releaseId ?? '',
    outcome: settled.outcome,
    outputTokens: settled.usage.outputTokens,
    primaryOutputTokens: ticket.outputTokens,
    ...(difference !== undefined && { difference }),
    because: settled.because,
  })
  keepOutputs(platform, ticket, { ...ended, difference })
}
