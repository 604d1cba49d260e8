import { traceparentOf } from '../base/trace-context.ts'
import type { Call } from '../lifecycle/ports.ts'

/** Headers by which an engine finds a call again: in its log, and in the caller's trace. */
export function callHeaders({ request, lease, attempt = 1 }: Call): string[] {
  const headers = ['x-request-id', lease.ticketId]
  if (request.trace !== undefined) headers.push('traceparent', traceparentOf(lease.ticketId, attempt, request.trace))
  return headers
}
