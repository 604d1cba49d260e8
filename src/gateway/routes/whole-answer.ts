import { Cancellation } from '../../base/cancellation.ts'
import type { Clock } from '../../base/clock.ts'
import type { Request } from '../../domain/request.ts'
import type { Platform } from '../../lifecycle/platform.ts'
import { serveRequest } from '../../lifecycle/serve-request.ts'
import type { KeyDirectory, PeerDirectory } from '../authenticate.ts'
import type { Exchange } from '../exchange.ts'
import { WholeSink, type WholeSinkOptions } from '../http-whole-sink.ts'
import { rateLimitHeaders } from '../rate-limit-headers.ts'
import type { RequestRules } from '../to-request.ts'

/** What routes need whose answers are not streamed. */
export interface WholeDeps {
  readonly platform: Platform
  readonly clock: Clock
  readonly keys: KeyDirectory & PeerDirectory
  readonly rules: RequestRules
  readonly bodyBytesMax: number
  readonly stalledReaderUs: number
}

/** Serves the request; the answer comes back through the sink. */
export async function serveWhole(
  { platform, stalledReaderUs }: WholeDeps,
  exchange: Exchange,
  request: Request,
  encode: WholeSinkOptions['encode'],
): Promise<void> {
  const cancellation = new Cancellation()
  exchange.res.on('close', () => {
    if (!exchange.res.writableFinished) cancellation.cancel('client-gone')
  })
  const rateLimits = (): string[] => rateLimitHeaders(platform.rateLimits(request))
  await serveRequest(platform, request, cancellation, new WholeSink({ exchange, rateLimits, stalledReaderUs, encode }))
}
