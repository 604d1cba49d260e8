import type { Passage } from '../../domain/corpus.ts'
import type { ScreenFinding, Screening } from '../../domain/screening.ts'
import type { Platform } from '../platform.ts'
import type { Retrieved } from '../retrieval-ports.ts'
import type { PassageFindings } from '../screening-ports.ts'
import type { Ticket } from '../ticket.ts'

/**
 * Passages on their way into a prompt, judged one by one: an instruction in a document is an ordinary sentence anywhere
 * else. A passage that the policy blocks (or redacts) is left out, and the request goes on without it: whoever wrote the
 * document is not who asks, and must not be able to have others refused. Only the embedded judge is asked.
 *
 * When the judge cannot say, `closed` leaves out all passages, and the other policies let them in and say so.
 */
export async function judgePassages(platform: Platform, ticket: Ticket, retrieved: Retrieved): Promise<Retrieved> {
  const { screening } = ticket.request
  const rule = screening && passageRule(screening)
  if (rule === undefined || retrieved.passages.length === 0) return retrieved
  const { passages } = retrieved
  const findings = await judged(platform, ticket, screening as Screening, passages)
  if (findings === undefined) {
    ticket.passagesUnjudged = true
    tell(platform, ticket, { findings: [], leftOut: rule.onFailure === 'closed' ? passages.length : 0 })
    return rule.onFailure === 'closed' ? { ...retrieved, passages: [] } : retrieved
  }
  const kept = passages.filter((_, i) => !isLeftOut(findings[i]))
  const found = findings.filter((finding) => finding !== undefined)
  if (found.length === 0) return retrieved
  ticket.passageFindings = found
  tell(platform, ticket, { findings: found, leftOut: passages.length - kept.length })
  return { ...retrieved, passages: kept }
}

const passageRule = ({ terms }: Screening) =>
  terms.rules.find(({ screen, direction }) => screen === 'passage-injection' && direction === 'input')

const isLeftOut = (finding: ScreenFinding | undefined): boolean =>
  finding?.action === 'block' || finding?.action === 'redact'

/** One finding or none for each passage; undefined when the judge could not say. */
async function judged(
  { world }: Platform,
  ticket: Ticket,
  screening: Screening,
  passages: readonly Passage[],
): Promise<PassageFindings | undefined> {
  const { screener, clock, journal } = world
  try {
    const texts = passages.map(({ text }) => text)
    return await screener?.judgePassages?.({ requestId: ticket.id, screening }, texts)
  } catch (error) {
    const because = String(error)
    journal.record({ kind: 'fault-seen', at: clock.now(), where: 'screen', because, ticketId: ticket.id })
    return undefined
  }
}

function tell(
  { world }: Platform,
  { id, request }: Ticket,
  told: { readonly findings: readonly ScreenFinding[]; readonly leftOut: number },
): void {
  const { tenant, screening } = request
  world.journal.record({
    kind: 'passages-judged',
    at: world.clock.now(),
    ticketId: id,
    tenantId: tenant.id,
    policy: screening?.terms.version ?? '',
    ...told,
  })
}
