import { invalidRequest, type WireFault } from '../wire/openai-error.ts'
import type { Exchange } from './exchange.ts'

/**
 * The whole body, or what is wrong with it. A body over the limit is refused as soon as its size is known. The rest is
 * not read, and the connection closes, because the next bytes are not a request.
 */
export type CollectedBody =
  | { readonly kind: 'ok'; readonly bytes: Buffer }
  | { readonly kind: 'fault'; readonly fault: WireFault }
  | { readonly kind: 'gone' }

export function collectBody(
  exchange: Exchange,
  bytesMax: number,
  wantedType: string = 'application/json',
): Promise<CollectedBody> {
  const { req, res } = exchange
  const refusal = unsupported(wantedType, req.headers['content-type'], req.headers['content-encoding'])
  if (refusal !== undefined) return Promise.resolve({ kind: 'fault', fault: refusal })
  const tooLarge = (): CollectedBody => {
    res.shouldKeepAlive = false
    req.pause()
    const message = `The request body is over the limit of ${bytesMax} bytes.`
    return { kind: 'fault', fault: invalidRequest(message, null, 'request-too-large') }
  }
  const declaredSize = Number(req.headers['content-length'] ?? Number.NaN)
  if (declaredSize > bytesMax) return Promise.resolve(tooLarge())
  return new Promise((resolve) => {
    const parts: Buffer[] = []
    let size = 0
    req.on('data', (part: Buffer) => {
      size += part.length
      if (size > bytesMax) {
        resolve(tooLarge())
        return
      }
      parts.push(part)
      // The parser passes no more bytes than were declared, so the body is complete before its end is announced.
      if (size === declaredSize) resolve(whole(parts))
    })
    if (!(declaredSize > 0)) req.on('end', () => resolve(whole(parts)))
    req.on('close', () => resolve({ kind: 'gone' }))
  })
}

function whole(parts: readonly Buffer[]): CollectedBody {
  return { kind: 'ok', bytes: parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts) }
}

function unsupported(
  wantedType: string,
  contentType: string | undefined,
  encoding: string | undefined,
): WireFault | undefined {
  if (encoding !== undefined && encoding !== 'identity') {
    const message = `Content-Encoding '${encoding}' is not supported; send the body as it is.`
    return invalidRequest(message, null, 'unsupported-content-encoding')
  }
  if (contentType === wantedType) return undefined
  const type = contentType?.split(';', 1)[0]?.trim().toLowerCase()
  if (type === wantedType || (wantedType === 'application/json' && type?.endsWith('+json'))) return undefined
  const message = `Content-Type '${type ?? 'none'}' is not supported; send ${wantedType}.`
  return invalidRequest(message, null, 'unsupported-content-type')
}
