import type { Refusal } from '../domain/outcome.ts'
import type { Ending } from '../lifecycle/ports.ts'

/** What an error status means to us: is the request at fault, the replica's room, or the replica itself? */
export function endingOf(status: number, message: string, retryAfterS: number | undefined): Ending {
  const refused = (code: string, blame: Refusal['blame'], retryAfterUs: number | undefined): Ending => ({
    kind: 'refused',
    refusal: { code, because: `The engine answered ${status}: ${message}.`, blame, retryAfterUs },
  })
  if (status === 429 || status === 503) return refused('replica-refused', 'platform', (retryAfterS ?? 1) * 1_000_000)
  // Our credentials or our URL are wrong: nothing that the client could change.
  if (status === 401 || status === 403 || status === 404) return refused('replica-refused', 'platform', 5_000_000)
  if (status >= 400 && status < 500) return refused('replica-rejected-request', 'request', undefined)
  return { kind: 'lost', because: `the engine answered ${status}` }
}
