import type { Settled } from '../../domain/entry.ts'
import type { Platform } from '../platform.ts'
import type { FoundAnswer, KeptAnswer } from '../ports.ts'
import type { Ticket } from '../ticket.ts'

/**
 * Should this answer be given again? It has ended: one that is whole and gave up nothing is kept for whoever asks the
 * same next. If an answer was known already and this one was made to compare, the journal hears whether they agree.
 */
export function keepAnswer(platform: Platform, ticket: Ticket, settled: Settled): void {
  const { recording, plan, retrieved } = ticket
  if (recording === undefined || settled.outcome !== 'completed' || !recording.isWhole) return
  if (plan === undefined || plan.rung.depth > 0 || plan.releaseId !== recording.ask.releaseId) return
  // With passages from a worse moment than this it would be a worse answer than the next one could have.
  if (retrieved !== undefined && retrieved.outcome !== 'fresh' && retrieved.outcome !== 'cached') return
  const fresh = { content: recording.content, usage: settled.usage }
  platform.world.answers.keep(recording.ask, fresh)
  if (recording.known !== undefined) void compare(platform, recording.ask.tenantId, recording.known, fresh)
}

/** From here on two answers say the same: what paraphrases of one answer have with the embedder that is built in. */
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
