import type { Entry } from '../../domain/entry.ts'
import { invalidRequest } from '../../wire/openai-error.ts'
import { authenticate, type KeyDirectory, NO_VALID_KEY } from '../authenticate.ts'
import type { Route } from '../http-server.ts'

/**
 * GET /spillway/requests/ID: all journal entries of a ticket with their reasons, for the ticket's tenant only. Another
 * tenant's ticket gets the same answer as an unknown one.
 */
export function explainRoute(keys: KeyDirectory, storyOf: (ticketId: string) => readonly Entry[] | undefined): Route {
  return {
    method: 'GET',
    path: '/spillway/requests/*',
    handle(exchange, ticketId) {
      const caller = authenticate(keys, exchange)
      if (caller === undefined) {
        exchange.sendRefusal(NO_VALID_KEY)
        return
      }
      const story = storyOf(ticketId)
      const isOwn = story?.some((entry) => 'tenantId' in entry && entry.tenantId === caller.tenant.id)
      if (story === undefined || isOwn !== true) {
        const message =
          'No such request is remembered. The last 1,000 requests are, at most 100 of each second, each for its own tenant only.'
        exchange.sendFault(invalidRequest(message, null, 'request-not-found'))
        return
      }
      exchange.sendJson(200, JSON.stringify({ object: 'spillway.request', id: ticketId, entries: story.map(shown) }))
    },
  }
}

/** The entry with typed arrays as plain arrays, which JSON shows better. */
function shown(entry: Entry): object {
  if (entry.kind !== 'settled' || entry.gaps === undefined) return entry
  const { counts, sumUs, maxUs } = entry.gaps
  return { ...entry, gaps: { counts: [...counts], sumUs, maxUs } }
}
