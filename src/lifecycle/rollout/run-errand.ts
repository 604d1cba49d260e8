import type { Cancellation } from '../../base/cancellation.ts'
import type { Settled } from '../../domain/entry.ts'
import type { Request } from '../../domain/request.ts'
import type { Platform } from '../platform.ts'
import type { Sink } from '../ports.ts'
import type { ErrandRequest } from './errands.ts'

/** `serveRequest`, handed in: it shows requests to second releases itself, and so cannot be imported here. */
export type ServeRequest = (
  platform: Platform,
  request: Request,
  cancellation: Cancellation,
  sink: Sink,
) => Promise<Settled>

/** The same story as for everybody, except that it can be called off when somebody wants its room. */
export function runErrand(
  platform: Platform,
  serve: ServeRequest,
  request: ErrandRequest,
  sink: Sink,
): Promise<Settled> {
  return platform.errands.run(request, (cancellation) => serve(platform, request, cancellation, sink))
}
