import type { Refusal } from '../domain/outcome.ts'
import type { OpenAiError } from '../wire/openai-error.ts'

/**
 * Every refusal that a client can meet: its code, its HTTP status, and what the client should do. 429 says "you are
 * over your share or limit", 503 says "the platform is"; never 408, which SDKs answer by hammering.
 */
interface Row {
  readonly status: number
  readonly type: string
  readonly advice: string
}

export const ERROR_TABLE: Readonly<Record<string, Row>> = {
  'invalid-api-key': {
    status: 401,
    type: 'invalid_request_error',
    advice: 'Send a valid key: Authorization: Bearer sk-…',
  },
  'queue-full': { status: 503, type: 'server_error', advice: 'Come back after the time in Retry-After.' },
  'tenant-queue-full': {
    status: 429,
    type: 'rate_limit_error',
    advice: 'Send less at once, or come back after the time in Retry-After.',
  },
  'too-many-at-once': {
    status: 429,
    type: 'rate_limit_error',
    advice: 'Wait for one of your running requests to end.',
  },
  'waited-too-long': { status: 503, type: 'server_error', advice: 'Come back after the time in Retry-After.' },
  'no-replica': {
    status: 503,
    type: 'server_error',
    advice: 'No engine can take the request now; come back after the time in Retry-After.',
  },
  'context-too-long': {
    status: 400,
    type: 'invalid_request_error',
    advice: 'Shorten the prompt or ask for fewer tokens.',
  },
  'replica-refused': {
    status: 503,
    type: 'server_error',
    advice: 'The engines are full; come back after the time in Retry-After.',
  },
  'replica-rejected-request': {
    status: 400,
    type: 'invalid_request_error',
    advice: 'Change the request as the message says.',
  },
  'replica-lost': { status: 502, type: 'server_error', advice: 'The engine broke off; try again.' },
  'shutting-down': {
    status: 503,
    type: 'server_error',
    advice: 'This server is going away; try again and reach another one.',
  },
  'reader-stalled': { status: 503, type: 'server_error', advice: 'Read the stream faster.' },
  'internal-error': { status: 500, type: 'server_error', advice: 'This is our fault; it was counted. Try again.' },
}

const UNKNOWN: Row = { status: 500, type: 'server_error', advice: 'Try again.' }

export function statusOf(refusal: Refusal): number {
  return (ERROR_TABLE[refusal.code] ?? UNKNOWN).status
}

export function toOpenAiError(refusal: Refusal): OpenAiError {
  const row = ERROR_TABLE[refusal.code] ?? UNKNOWN
  const message = [refusal.because, refusal.said, row.advice].filter(Boolean).join(' ')
  return { message, type: row.type, param: refusal.param ?? null, code: refusal.code.replaceAll('-', '_') }
}

/** SDKs sleep as long as they are told; longer than this they would rather be told not to come back. */
const RETRY_AFTER_S_MAX = 60

/** Headers that say truthfully when to come back: never sooner than true, in whole seconds and in milliseconds. */
export function retryHeaders(refusal: Refusal): string[] {
  if (refusal.retryAfterUs === undefined) return ['x-should-retry', 'false']
  const ms = Math.max(1, Math.ceil(refusal.retryAfterUs / 1_000))
  const seconds = Math.max(1, Math.ceil(ms / 1_000))
  if (seconds > RETRY_AFTER_S_MAX) return ['retry-after', String(RETRY_AFTER_S_MAX), 'x-should-retry', 'false']
  return ['retry-after', String(seconds), 'retry-after-ms', String(ms)]
}
