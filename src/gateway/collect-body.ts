import type { Clock, Instant } from '../base/clock.ts'
import { TurnBatch } from '../base/live-turn-batch.ts'
import { invalidRequest, type WireFault } from '../wire/openai-error.ts'
import { tooComplex } from '../wire/scan-json.ts'
import type { ToldRefusal } from './error-table.ts'
import type { Exchange } from './exchange.ts'
import { HEAVY_BODY_BYTES, type Visit } from './ingress.ts'

/**
 * The whole body, or what is wrong with it. A body over the limit is read to its end and thrown away before it is
 * refused: most clients send all of it before they read the answer, and a connection that closes meanwhile breaks the
 * pipe in which the answer is. One that is much too large is refused at once, the rest is not read, and the connection
 * closes, because the next bytes are not a request.
 *
 * Bytes are taken from the caller's allowance before they are kept: all of them when the size is announced, else each
 * part as it comes. JSON is scanned before anybody may parse it. A large body waits for turns of its own, so that many
 * of them at once do not stop everything else.
 */
export type CollectedBody =
  | { readonly kind: 'ok'; readonly bytes: Buffer; readonly readAt?: Instant }
  | { readonly kind: 'fault'; readonly fault: WireFault }
  /** The client has gone, or has been answered already: nothing is left to do. */
  | { readonly kind: 'gone' }

const JSON_TYPE = 'application/json'
const GONE: CollectedBody = { kind: 'gone' }

/** Bodies that were read in one turn of the event loop go on together. */
const arrivals = new TurnBatch()

export async function collectBody(
  exchange: Exchange,
  bytesMax: number,
  { wantedType = JSON_TYPE, clock }: CollectOptions = {},
): Promise<CollectedBody> {
  const { req, res, visit } = exchange
  const refusal = unsupportedBody(wantedType, req.headers['content-type'], req.headers['content-encoding'])
  if (refusal !== undefined) return { kind: 'fault', fault: refusal }
  const declaredSize = Number(req.headers['content-length'] ?? Number.NaN)
  if (declaredSize > bytesMax) return tooLarge(exchange, bytesMax, declaredSize)
  const tooMuch = declaredSize > 0 ? visit?.expect(declaredSize) : undefined
  if (tooMuch !== undefined) {
    visit?.release()
    return turnAway(exchange, tooMuch)
  }
  const bytes = req.takeWhole?.()
  const collected = await (bytes === undefined
    ? receive(exchange, { bytesMax, declaredSize, clock })
    : passWhole(exchange, bytes, clock))
  const isHeavy = collected.kind === 'ok' && collected.bytes.length >= HEAVY_BODY_BYTES
  const bounded =
    isHeavy && visit !== undefined ? await scanInTurn(collected, visit, wantedType) : scan(collected, wantedType)
  visit?.release()
  return res.destroyed ? GONE : bounded
}

export interface CollectOptions {
  readonly wantedType?: string
  /** Tells when the last byte was read, which is before the body is handed on. */
  readonly clock?: Clock
}

/** A body that is not too much work to parse. */
function scan(collected: CollectedBody, wantedType: string): CollectedBody {
  const fault = collected.kind === 'ok' && wantedType === JSON_TYPE ? tooComplex(collected.bytes) : undefined
  return fault === undefined ? collected : { kind: 'fault', fault }
}

/** A large body has a turn to be scanned in, and one to be parsed in. */
async function scanInTurn(collected: CollectedBody, visit: Visit, wantedType: string): Promise<CollectedBody> {
  await visit.turn()
  const scanned = scan(collected, wantedType)
  if (scanned.kind === 'ok') await visit.turn()
  return scanned
}

interface Reception {
  readonly bytesMax: number
  readonly declaredSize: number
  readonly clock: Clock | undefined
}

/** A body that came with its head; its size is the declared one, which has been allowed. */
function passWhole(
  exchange: Exchange,
  bytes: Buffer,
  clock: Clock | undefined,
): CollectedBody | Promise<CollectedBody> {
  const refusal = bytes.length > 0 ? exchange.visit?.buffer(bytes.length) : undefined
  if (refusal !== undefined) return turnAway(exchange, refusal)
  const all = whole([bytes], clock?.now())
  return new Promise((resolve) => arrivals.add(() => resolve(all)))
}

function receive(exchange: Exchange, { bytesMax, declaredSize, clock }: Reception): Promise<CollectedBody> {
  const { req, visit } = exchange
  const isDeclared = !Number.isNaN(declaredSize)
  return new Promise((resolve) => {
    let parts: Buffer[] = []
    let size = 0
    const end = (collected: CollectedBody): void => {
      // Parts that nobody waits for any more are let go at once, and not with the connection.
      parts = []
      req.off('data', take)
      resolve(collected)
    }
    const take = (part: Buffer): void => {
      size += part.length
      if (size > bytesMax) {
        const soFar = size
        // Parts that came before are let go now; what comes is counted and dropped.
        parts = []
        req.off('data', take)
        resolve(tooLarge(exchange, bytesMax, undefined, soFar))
        return
      }
      const refusal = (isDeclared ? undefined : visit?.expect(part.length)) ?? visit?.buffer(part.length)
      if (refusal !== undefined) {
        end(turnAway(exchange, refusal))
        return
      }
      parts.push(part)
      // The parser passes no more bytes than were declared, so the body is complete before its end is announced.
      if (size === declaredSize) pass()
    }
    /** The request closes as soon as it has been read; whether its client has gone is asked after the batch. */
    const pass = (): void => {
      const all = whole(parts, clock?.now())
      req.off('close', leave)
      arrivals.add(() => end(all))
    }
    const leave = (): void => end(GONE)
    req.on('data', take)
    if (!(declaredSize > 0)) req.on('end', pass)
    req.on('close', leave)
  })
}

/**
 * Bytes of a body over the limit that are read and thrown away: four of the largest bodies by default. Node's own limit
 * on the time of a request (`server.requestTimeoutMs`) ends slow ones.
 */
const THROWN_AWAY_BYTES_MAX = 64 * 1024 * 1024

async function tooLarge(
  exchange: Exchange,
  bytesMax: number,
  declaredSize: number | undefined,
  soFar = 0,
): Promise<CollectedBody> {
  const isWorthIt = (declaredSize ?? 0) <= THROWN_AWAY_BYTES_MAX
  if (!isWorthIt || !(await throwAway(exchange, soFar))) stopReading(exchange)
  if (exchange.res.destroyed) return GONE
  const message = `The request body is over the limit of ${bytesMax} bytes.`
  return { kind: 'fault', fault: invalidRequest(message, null, 'request-too-large') }
}

/** Reads the rest of a body. True when it has ended, or the client has gone; false when it goes on beyond the bound. */
function throwAway({ req }: Exchange, soFar: number): Promise<boolean> {
  return new Promise((resolve) => {
    let size = soFar
    const end = (isOver: boolean): void => {
      req.off('data', count)
      resolve(isOver)
    }
    const count = (part: Buffer): void => {
      size += part.length
      if (size > THROWN_AWAY_BYTES_MAX) end(false)
    }
    req.on('data', count)
    req.on('end', () => end(true))
    req.on('close', () => end(true))
  })
}

function turnAway(exchange: Exchange, refusal: ToldRefusal): CollectedBody {
  stopReading(exchange)
  exchange.sendRefusal(refusal)
  return GONE
}

function stopReading({ req, res }: Exchange): void {
  res.shouldKeepAlive = false
  req.pause()
}

function whole(parts: readonly Buffer[], readAt: Instant | undefined): CollectedBody {
  const bytes = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)
  return readAt === undefined ? { kind: 'ok', bytes } : { kind: 'ok', bytes, readAt }
}

/** What is wrong with a body before it is read. */
export function unsupportedBody(
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
  if (type === wantedType || (wantedType === JSON_TYPE && type?.endsWith('+json'))) return undefined
  const message = `Content-Type '${type ?? 'none'}' is not supported; send ${wantedType}.`
  return invalidRequest(message, null, 'unsupported-content-type')
}
