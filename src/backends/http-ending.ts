import type { Refusal } from '../domain/outcome.ts'
import type { Ending } from '../lifecycle/ports.ts'
import { errorMessage, errorParam } from '../wire/upstream.ts'

/**
 * What an error status means to us: is the request at fault, the replica's room, or the replica itself? A fault of the
 * request's is told to the client; anything else may be tried elsewhere. The engine's own words are for the client
 * alone, and only where they are about the client's request.
 */

/** An engine's explanation goes into our error body, so it must not be a page. */
const SAID_LENGTH_MAX = 300
/** Seconds until a replica that refused is asked again, when it does not say. */
const RETRY_AFTER_S = 1
/** Our credentials or our address are wrong: that takes a person, not a second. */
const MISCONFIGURED_RETRY_AFTER_S = 5
/** The most that an engine may ask us to wait: a day's quota of a hosted one is no business of the next minutes'. */
const RETRY_AFTER_S_MAX = 300

/** Full, overloaded (529 at some hosts), not yet there, or in conflict with something passing. */
const NO_ROOM: ReadonlySet<number> = new Set([409, 425, 429, 503, 529])
const MISCONFIGURED: ReadonlySet<number> = new Set([401, 402, 403, 404, 405, 407])
/** It gave up in the middle: its own time limit, a client's that had gone (nginx), a failed generation (TGI). */
const GAVE_UP: ReadonlySet<number> = new Set([408, 424, 499])

export interface ErrorAnswer {
  readonly status: number
  /** The body, if it was JSON. */
  readonly json: unknown
  readonly retryAfterS: number | undefined
  /** Takes our credentials out of what the engine said. */
  readonly redact: (text: string) => string
}

export function endingOf(answer: ErrorAnswer): Ending {
  const { status, retryAfterS } = answer
  const because = `The engine answered ${status}.`
  const noRoom = (seconds: number): Ending => {
    const retryAfterUs = Math.round(Math.min(seconds, RETRY_AFTER_S_MAX) * 1_000_000)
    return { kind: 'refused', refusal: { code: 'replica-refused', because, blame: 'platform', retryAfterUs } }
  }
  if (NO_ROOM.has(status)) return noRoom(retryAfterS ?? RETRY_AFTER_S)
  if (MISCONFIGURED.has(status) || status < 400) return noRoom(MISCONFIGURED_RETRY_AFTER_S)
  if (GAVE_UP.has(status) || status >= 500) return { kind: 'lost', because: `the engine answered ${status}` }
  return { kind: 'refused', refusal: rejected(answer, because) }
}

function rejected({ json, redact }: ErrorAnswer, because: string): Refusal {
  const words = errorMessage(json)
  const said = words === undefined ? undefined : redact(words).replaceAll(/\s+/g, ' ').slice(0, SAID_LENGTH_MAX)
  const param = paramOf(json, redact)
  return {
    code: 'replica-rejected-request',
    because,
    blame: 'request',
    retryAfterUs: undefined,
    ...(said === undefined ? {} : { said }),
    ...(param === undefined ? {} : { param }),
  }
}

/** A name like `messages[0].content`; anything else in its place is not told on. */
function paramOf(json: unknown, redact: ErrorAnswer['redact']): string | undefined {
  const param = errorParam(json)
  return param !== undefined && PARAM_NAME.test(param) && redact(param) === param ? param : undefined
}

const PARAM_NAME = /^[\w.[\]-]{1,100}$/

/** `retry-after-ms`, or `retry-after` in seconds or as a date. */
export function retryAfterSeconds(headers: Readonly<Record<string, unknown>>, nowMs: number): number | undefined {
  const ms = Number(headers['retry-after-ms'] ?? Number.NaN)
  if (Number.isFinite(ms) && ms >= 0) return ms / 1_000
  const value = headers['retry-after']
  if (typeof value !== 'string') return undefined
  const seconds = Number(value)
  if (Number.isFinite(seconds)) return Math.max(0, seconds)
  const at = Date.parse(value)
  return Number.isFinite(at) ? Math.max(0, (at - nowMs) / 1_000) : undefined
}
