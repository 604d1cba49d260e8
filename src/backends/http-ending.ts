import type { Refusal } from '../domain/outcome.ts'
import type { Ending } from '../lifecycle/ports.ts'
import { engineErrorOf } from '../wire/engine-error.ts'
import { errorCode, isContextError } from '../wire/upstream.ts'
import { CredentialError } from './fresh-credential.ts'

/**
 * The meaning of an error status: is the request at fault, is the replica full, are we denied, or is the replica itself
 * at fault? A fault of the request is told to the client as the engine said it (`wire/engine-error.ts`). A full replica may be tried again after the time that it says.
 * A wrong key, a wrong address and a used-up quota stay as they are until a person mends them: such a replica is not
 * tried again, and the client is promised nothing. Everything else may be tried elsewhere. The engine's own message goes
 * to the client alone, and only where it is about the client's request.
 */

/** Seconds until a replica that refused is tried again, if it does not say. */
const RETRY_AFTER_S = 1
/** Longest wait that an engine may ask for: the daily quota of a hosted engine must not close it for hours. */
const RETRY_AFTER_S_MAX = 300

/** Full, overloaded (529 at some hosts), not loaded yet, or in a temporary conflict. */
const NO_ROOM: ReadonlySet<number> = new Set([409, 425, 429, 503, 529])
/** What a person has to mend, by status; a redirect is a wrong address too. */
const DENIED: Readonly<Record<number, string>> = {
  401: 'it does not accept our key',
  402: 'its account needs a payment',
  403: 'our key may not use it',
  404: 'it has no such address or model',
  405: 'it has no such address',
  407: 'a proxy before it wants a key',
}
/** TorchServe says 400 to a missing or wrong key, which it wants unless told otherwise. */
const TORCHSERVE_WRONG_KEY = 'InvalidKeyException'
const REDIRECTED = 'its address has moved'
const QUOTA_USED_UP = 'its quota is used up'
/** OpenAI's words, which other hosts use too, for a quota that no waiting refills. */
const QUOTA_CODES: ReadonlySet<string> = new Set([
  'insufficient_quota',
  'billing_hard_limit_reached',
  'billing_not_active',
  'account_deactivated',
])
/**
 * The engine gave up in the middle: its own time limit, a closed client connection (nginx), a failed generation (TGI).
 */
const GAVE_UP: ReadonlySet<number> = new Set([408, 424, 499])

export interface ErrorAnswer {
  readonly status: number
  /** The body, if it was JSON. */
  readonly json: unknown
  readonly retryAfterS: number | undefined
  /** Removes our credentials from the engine's message. */
  readonly redact: (text: string) => string
}

export function endingOf(answer: ErrorAnswer): Ending {
  const { status, retryAfterS } = answer
  const because = `The engine answered ${status}.`
  const denied = whyDenied(answer)
  if (denied !== undefined) {
    const words = `The engine answered ${status}: ${denied}.`
    const refusal: Refusal = { code: 'replica-denied', because: words, blame: 'platform', retryAfterUs: undefined }
    return { kind: 'refused', refusal }
  }
  if (NO_ROOM.has(status)) {
    const retryAfterUs = Math.round(Math.min(retryAfterS ?? RETRY_AFTER_S, RETRY_AFTER_S_MAX) * 1_000_000)
    return { kind: 'refused', refusal: { code: 'replica-refused', because, blame: 'platform', retryAfterUs } }
  }
  if (GAVE_UP.has(status) || status >= 500) return { kind: 'lost', because: `the engine answered ${status}` }
  return { kind: 'refused', refusal: rejected(answer, because) }
}

/** Why no replica with these settings would answer; undefined when another attempt may. */
function whyDenied({ status, json }: ErrorAnswer): string | undefined {
  if (status < 400) return REDIRECTED
  if (status === 400 && errorCode(json) === TORCHSERVE_WRONG_KEY) return DENIED[401]
  if (status === 429 && QUOTA_CODES.has(errorCode(json) ?? '')) return QUOTA_USED_UP
  return DENIED[status]
}

function rejected({ status, json, redact }: ErrorAnswer, because: string): Refusal {
  return {
    code: isContextError(json) ? 'context-length-exceeded' : 'replica-rejected-request',
    because,
    blame: 'request',
    retryAfterUs: undefined,
    told: engineErrorOf({ status, json, redact }),
  }
}

/** Why there is no answer: the connection's own word, or why nothing could be sent. */
export const whyLost = (error: Error): string =>
  error instanceof CredentialError
    ? `there is no credential for the engine: ${error.message}`
    : `the connection to the engine failed: ${(error as { code?: string }).code ?? error.name}`

/** Nothing listens at its address: no engine has seen the request. */
export const isUnreachable = (error: Error): boolean => (error as { code?: string }).code === 'ECONNREFUSED'

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
