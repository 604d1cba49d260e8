import type { Settled } from '../../domain/entry.ts'
import type { Platform } from '../platform.ts'
import type { FoundAnswer, KeptAnswer } from '../ports.ts'
import type { Admitted } from '../ticket.ts'

/**
 * Should this answer be given again? An answer that is whole and gave up nothing is kept for the next request that asks
 * the same. Where an answer was known already and this one was made to compare, the journal hears whether they agree.
 */
export function keepAnswer(platform: Platform, { plan, retrieved, ticket }: Admitted, settled: Settled): void {
  const { recording } = ticket
  if (recording === undefined || settled.outcome !== 'completed' || !recording.isWhole) return
  if (plan.rung.depth > 0 || plan.releaseId !== recording.ask.releaseId) return
  // An answer made without fresh passages is worse than the next request could have, and is not kept.
  if (retrieved !== undefined && retrieved.outcome !== 'fresh' && retrieved.outcome !== 'cached') return
  const fresh = { content: recording.content, usage: settled.usage }
  platform.world.answers.keep(recording.ask, fresh)
  if (recording.known !== undefined) void compare(platform, recording.ask.tenantId, recording.known, fresh)
}

/** Cosine from which two answers say the same: what paraphrases of one answer have with the built-in embedder. */
const LIKENESS_MIN = 0.8

async function compare(
  { world }: Platform,
  tenantId: string,
  known: Extract<FoundAnswer, { kind: 'hit' }>,
  fresh: KeptAnswer,
): Promise<void> {
  const { similarity, answer } = known
  const isEqual = answer.content !== undefined && answer.content === fresh.content
  const likeness = isEqual ? 1 : await world.answers.likeness(answer, fresh).catch(() => undefined)
  if (likeness === undefined) return
  const isSame = likeness >= LIKENESS_MIN
  world.journal.record({ kind: 'answer-checked', at: world.clock.now(), tenantId, isSame, similarity, likeness })
}
