import { errorBody, type OpenAiError } from '../wire/openai-error.ts'
import {
  ERROR_TABLE,
  statusOf,
  statusOfFault,
  type ToldFault,
  type ToldRefusal,
  typeOfStatus,
  wireCode,
} from './error-table.ts'

/**
 * How an error is put to clients. Servers that speak another dialect than OpenAI's bring their own words: the Open
 * Inference Protocol's routes (oip-errors.ts), Anthropic's (anthropic-errors.ts) and the simulated engine's server
 * (engine-errors.ts).
 */
export interface ErrorWords {
  /** `requestId` is for words that have it in the body. */
  ofFault(fault: ToldFault, requestId?: string): ErrorReply
  ofRefusal(refusal: ToldRefusal, requestId?: string): ErrorReply
  /** A header with the request's id that clients of this dialect read beside `x-request-id`, on every answer. */
  readonly idHeader?: string
}

export interface ErrorReply {
  readonly status: number
  readonly body: string
  readonly headers: readonly string[]
}

export const OPENAI_ERRORS: ErrorWords = {
  ofFault: (fault) => ({ status: statusOfFault(fault), body: errorBody(faultError(fault)), headers: [] }),
  ofRefusal: (refusal) => ({
    status: statusOf(refusal),
    body: errorBody({ ...refusal.told?.error, ...toOpenAiError(refusal) }, refusalDetail(refusal)),
    headers: retryHeaders(refusal),
  }),
}

function faultError(fault: ToldFault): OpenAiError {
  const { code, message, param } = fault
  return { message, type: typeOfStatus(statusOfFault(fault)), param, code: code === null ? null : wireCode(code) }
}

/** An engine's own words stand alone: it said them to the client, and they need no advice of ours. */
export function toOpenAiError(refusal: ToldRefusal): OpenAiError {
  const { advice, param } = ERROR_TABLE[refusal.code]
  const { message, type, param: toldParam, code } = (refusal.told?.error ?? {}) as Partial<OpenAiError>
  return {
    message: message ?? `${sentence(refusal.because)} ${advice}`,
    type: type ?? typeOfStatus(statusOf(refusal)),
    param: toldParam ?? refusal.param ?? param ?? null,
    code: code === undefined ? wireCode(refusal.code) : code,
  }
}

/** A reason as a sentence: a capital letter in front, a full stop at the end. */
export function sentence(because: string): string {
  const text = because.charAt(0).toUpperCase() + because.slice(1)
  return /[.!?]$/.test(text) ? text : `${text}.`
}

/** The true time to come back is in the body too: headers stop at a minute, and an error frame has none. */
export function refusalDetail({ retryAfterUs, detail }: ToldRefusal): ToldRefusal['detail'] {
  return retryAfterUs === undefined ? detail : { ...detail, retry_after_ms: Math.ceil(retryAfterUs / 1_000) }
}

/**
 * SDKs sleep as long as they are told, up to a minute; told more, they come back after their own two seconds. Vercel's
 * counts the minute itself as more. A client that has to wait longer is told not to come back by itself.
 */
const RETRY_AFTER_S_MAX = 59

/** Headers that say truthfully when to come back: never sooner than true, in whole seconds and in milliseconds. */
export function retryHeaders({ retryAfterUs, slot }: Pick<ToldRefusal, 'retryAfterUs' | 'slot'>): string[] {
  if (retryAfterUs === undefined || slot === 'none') return ['x-should-retry', 'false']
  const ms = Math.max(1, Math.ceil(retryAfterUs / 1_000))
  const seconds = Math.max(1, Math.ceil(ms / 1_000))
  if (seconds > RETRY_AFTER_S_MAX) return ['retry-after', String(RETRY_AFTER_S_MAX), 'x-should-retry', 'false']
  return ['retry-after', String(seconds), 'retry-after-ms', String(ms)]
}
