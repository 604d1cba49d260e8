import type { Instant } from '../base/clock.ts'
import type { Outcome } from '../domain/outcome.ts'
import type { Ticket } from './ticket.ts'

/**
 * Whether the promise to a ticket was kept: first token, time between tokens on the mean, and whole answer. Admission
 * makes the promise, so a refused ticket has none; nor has one whose client left, whose text was blocked, or that was the
 * platform's own.
 */
export function isPromiseKept(ticket: Ticket, outcome: Outcome, now: Instant): boolean | undefined {
  const { request, admitted, firstTokenAt, gaps } = ticket
  if (admitted === undefined || request.errand !== undefined) return undefined
  if (outcome === 'cancelled' || outcome === 'blocked' || outcome === 'rejected') return undefined
  if (outcome !== 'completed') return false
  const { ttftUs, interTokenUs, totalUs } = request.slo
  // What is not answered token by token has its one time.
  const firstUs = (firstTokenAt ?? now) - request.arrivedAt
  return firstUs <= ttftUs && now - request.arrivedAt <= totalUs && meanGapUs(gaps) <= interTokenUs
}

function meanGapUs(gaps: Ticket['gaps']): number {
  if (gaps === undefined) return 0
  let count = 0
  for (const each of gaps.counts) count += each
  return count === 0 ? 0 : gaps.sumUs / count
}
