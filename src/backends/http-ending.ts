import type { Refusal } from '../domain/outcome.ts'
import type { Ending } from '../lifecycle/ports.ts'
import { errorMessage, errorParam } from '../wire/upstream.ts'

/** An engine's explanation goes into our error body, so it must not be a page. */
const SAID_LENGTH_MAX = 300

/**
 * What an error status means to us: is the request at fault, the replica's room, or the replica itself? The engine's
 * own words are for the client alone.
 */
export function endingOf(status: number, json: unknown, retryAfterS: number | undefined): Ending {
  const refused = (code: string, blame: Refusal['blame'], retryAfterUs: number | undefined): Ending => {
    const because = `The engine answered ${status}.`
    const said = errorMessage(json)?.replaceAll(/\s+/g, ' ').slice(0, SAID_LENGTH_MAX)
    const param = blame === 'request' ? errorParam(json) : undefined
    return {
      kind: 'refused',
      refusal: {
        code,
        because,
        blame,
        retryAfterUs,
        ...(said === undefined ? {} : { said }),
        ...(param === undefined ? {} : { param }),
      },
    }
  }
  if (status === 429 || status === 503) return refused('replica-refused', 'platform', (retryAfterS ?? 1) * 1_000_000)
  // Our credentials or our URL are wrong: nothing that the client could change.
  if (status === 401 || status === 403 || status === 404) return refused('replica-refused', 'platform', 5_000_000)
  if (status >= 400 && status < 500) return refused('replica-rejected-request', 'request', undefined)
  return { kind: 'lost', because: `the engine answered ${status}` }
}
