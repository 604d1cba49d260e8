import { type Delta, NO_USAGE } from '../../domain/delta.ts'
import type { AnswerLookup } from '../../domain/entry.ts'
import type { Cacheable } from '../../domain/request.ts'
import type { AnswerCacheTerms } from '../../domain/tenant.ts'
import type { Platform } from '../platform.ts'
import type { AnswerAsk, FoundAnswer, KeptAnswer } from '../ports.ts'
import type { Relay } from '../relay.ts'
import { pickRelease } from '../rollout/pick-release.ts'
import { blockedAnswer, type Ended } from '../settle.ts'
import { spendOf } from '../spending.ts'
import type { Ticket } from '../ticket.ts'
import { AnswerRecording } from './answer-recording.ts'

/**
 * Has this tenant been answered this before? Asked before admission, because a known answer takes no turn, no engine and
 * no tokens; its request is counted all the same. A known answer belongs to one tenant, one release and one prompt
 * version, with passages of one version of one corpus; only the question itself may be in other words.
 *
 * Some known answers are made anew, and both are compared: the only way to learn of false hits while the cache is in
 * use. An answer that was not known is recorded, and kept if it ends whole and undegraded.
 *
 * However the cache fails, the request goes on as if there were none.
 */
export async function answerFromCache(
  platform: Platform,
  ticket: Ticket,
  relay: Relay,
  cacheable: Cacheable,
): Promise<Ended | undefined> {
  const { clock, journal } = platform.world
  const { request } = ticket
  const terms = request.tenant.answerCache
  const ask = terms && askOf(platform, ticket, cacheable, terms)
  if (terms === undefined || ask === undefined || !isAllowed(platform, ticket)) return undefined

  const startedAt = clock.now()
  const found = await find(platform, ticket, ask)
  // Nothing is answered before the verdict.
  if (ticket.check?.isPending === true) await ticket.check.whenOver()
  if (ticket.check?.isBlocked === true) return undefined
  const outcome = outcomeOf(platform, found, terms)
  journal.record({
    kind: 'answer-looked-up',
    at: clock.now(),
    ticketId: ticket.id,
    tenantId: request.tenant.id,
    outcome,
    similarity: found.similarity,
    tookUs: clock.now() - startedAt,
    saved: outcome === 'hit' && found.kind === 'hit' ? found.answer.usage : NO_USAGE,
    because: found.kind === 'hit' ? 'asked before' : found.because,
  })
  if (found.kind !== 'hit' || outcome !== 'hit') {
    const known = found.kind === 'hit' ? found : undefined
    if (outcome !== 'skipped') ticket.recording = new AnswerRecording(ask, known)
    return undefined
  }
  // Budget and client may have changed during the lookup; then admission decides.
  if (ticket.cancellation.isCancelled || !isAllowed(platform, ticket)) return undefined
  const { budgets, standings } = platform.policies
  const reservation = budgets.reserve(clock.now(), standings.scopesOf(request), 0, spendOf(ticket.price, 0, 0))
  ticket.cached = { ...found, reservation }
  await relay.write(deltaOf(found.answer))
  if (ticket.blockedBy !== undefined) return blockedAnswer(ticket.blockedBy, NO_USAGE)
  return { outcome: 'completed', because: 'answered from the cache', refusal: undefined, usage: NO_USAGE }
}

/** The port promises not to throw; a throw is our fault, counted in the journal, and the request goes on. */
async function find({ world }: Platform, ticket: Ticket, ask: AnswerAsk): Promise<FoundAnswer> {
  const { answers, clock, journal } = world
  try {
    return await answers.find(ask)
  } catch (error) {
    const because = String(error)
    journal.record({ kind: 'fault-seen', at: clock.now(), where: 'answer-cache', because, ticketId: ticket.id })
    return { kind: 'skipped', because: 'the answer cache broke' }
  }
}

/** What the answer depends on; undefined when that is not known, and then nothing is looked up or kept. */
function askOf(
  platform: Platform,
  { request, corpus, cancellation }: Ticket,
  { promptVersion, question }: Cacheable,
  terms: AnswerCacheTerms,
): AnswerAsk | undefined {
  const releaseId = pickRelease(platform.policies, request, request.model)?.release.id
  if (releaseId === undefined) return undefined
  const { retrieval } = request
  if (retrieval !== undefined && corpus === undefined) return undefined
  const corpusVersion =
    retrieval === undefined || corpus === undefined ? '' : `${corpus.id}@${corpus.version}/${retrieval.passagesMax}`
  return { tenantId: request.tenant.id, releaseId, promptVersion, corpusVersion, question, terms, cancellation }
}

/**
 * Known answers are not given to a tenant over its budget or by a server that drains: admission refuses these. Errands
 * are to find out what a release answers, not what it answered before.
 */
function isAllowed({ isDraining, policies, world }: Platform, { request, price }: Ticket): boolean {
  if (isDraining || request.errand !== undefined) return false
  const { budgets, standings } = policies
  return budgets.refusalFor(world.clock.now(), standings.scopesOf(request), 0, spendOf(price, 0, 0)) === undefined
}

function outcomeOf(platform: Platform, found: FoundAnswer, { checkRatio }: AnswerCacheTerms): AnswerLookup {
  if (found.kind !== 'hit') return found.kind
  return platform.policies.answerChecks() < checkRatio ? 'checked' : 'hit'
}

function deltaOf({ content, usage }: KeptAnswer): Delta {
  const tokens = usage.outputTokens
  return content === undefined ? { tokens } : { tokens, choices: [{ index: 0, content, finishReason: 'stop' }] }
}
