import type { Screening } from '../../domain/screening.ts'
import type { ScreenedHead } from '../ports.ts'
import type { Ticket } from '../ticket.ts'

/** What the head of an answer tells its client of the screens: who found something, and whether anything was left out. */
export function screenedHead({ found, unscreened }: Screening, ticket: Ticket): ScreenedHead {
  const verdict = ticket.check?.verdict
  const findings = [...found, ...(verdict?.findings ?? []), ...ticket.passageFindings]
  const flagged = findings.flatMap(({ action, screen }) => (action === 'flag' ? [screen] : []))
  const isPartial = unscreened.length > 0 || verdict?.kind === 'partial' || ticket.passagesUnjudged
  return { flagged: [...new Set(flagged)], isPartial }
}
