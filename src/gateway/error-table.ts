import type { Refusal } from '../domain/outcome.ts'
import type { OpenAiError } from '../wire/openai-error.ts'

/**
 * Every refusal that a client can meet, by its code, and what the client should do about it. Whose fault it is decides
 * the status: 429 says "you are over your share or limit", 503 says "the platform is", 400 says "ask differently"; a
 * row may say otherwise. Never 408, which SDKs answer by hammering.
 */
interface Row {
  readonly advice: string
  readonly status?: number
  readonly param?: string
}

const COME_BACK = 'Come back after the time in Retry-After.'

export const ERROR_TABLE: Readonly<Record<string, Row>> = {
  'invalid-api-key': { status: 401, advice: 'Send a valid key: Authorization: Bearer sk-…' },
  'not-admin': { status: 403, advice: 'Send a key of `admin.keys`: spillway … --key, or SPILLWAY_ADMIN_KEY.' },
  'registry-unavailable': { advice: COME_BACK },
  'too-many-changes': { advice: COME_BACK },
  'not-a-peer': { status: 403, advice: 'Leave out x-spillway-tenant, or use the key of a peer.' },
  'unknown-tenant': { status: 403, advice: 'Give both regions the same tenants.' },
  'rate-limit-requests': { advice: COME_BACK },
  'rate-limit-tokens': { advice: COME_BACK },
  'concurrency-limit': { advice: 'Wait for one of your running requests to end.' },
  'quota-exhausted': { advice: 'Ask your operator for a larger quota, or wait for the next period.' },
  'predicted-late': { advice: 'Come back after the time in Retry-After, allow more time, or ask for less.' },
  'band-shed': { advice: 'Come back after the time in Retry-After, or send it in a higher band.' },
  'deadline-infeasible': { param: 'spillway.deadline_ms', advice: 'Allow more time or ask for a shorter answer.' },
  'too-big': { advice: 'Shorten the prompt or ask for fewer tokens.' },
  'context-too-long': { advice: 'Shorten it, or ask for fewer tokens.' },
  'unknown-model': { status: 404, param: 'model', advice: 'GET /v1/models lists what there is.' },
  'fits-no-replica': { advice: 'Shorten the prompt or ask for fewer tokens.' },
  'expired-on-arrival': { param: 'spillway.deadline_ms', advice: 'Allow more time.' },
  'deadline-passed': {
    status: 504,
    param: 'spillway.deadline_ms',
    advice: 'Allow more time, ask for less, or send spillway.cut_off: false to get late answers whole.',
  },
  'lane-full': { advice: 'You have too many requests waiting; come back after the time in Retry-After.' },
  'lane-work-full': { advice: 'You have too much work waiting; come back after the time in Retry-After.' },
  'queue-full': { advice: COME_BACK },
  'waited-too-long': { advice: COME_BACK },
  evicted: { advice: COME_BACK },
  'no-replica': { advice: COME_BACK },
  'unknown-pool': { advice: COME_BACK },
  'replica-refused': { advice: COME_BACK },
  'replica-rejected-request': { advice: 'Change the request as the message says.' },
  'no-such-corpus': { status: 404, advice: 'GET /v1/vector_stores lists yours.' },
  'no-such-document': { status: 404, advice: 'GET /v1/vector_stores/ID/files lists what is in it.' },
  'no-such-file': { status: 404, advice: 'GET /v1/files lists yours.' },
  'name-taken': { status: 409, param: 'name', advice: 'Choose another name.' },
  'too-much': { status: 413, advice: 'Send less at a time.' },
  'retrieval-unavailable': { advice: COME_BACK },
  'replica-lost': { status: 502, advice: 'Try again.' },
  'shutting-down': { advice: 'This server is going away; try again and reach another one.' },
  'internal-error': { status: 500, advice: 'This is our fault; it was counted. Try again.' },
}

const STATUS_OF: Readonly<Record<Refusal['blame'], number>> = { tenant: 429, platform: 503, request: 400 }

export function statusOf(refusal: Refusal): number {
  return ERROR_TABLE[refusal.code]?.status ?? STATUS_OF[refusal.blame]
}

export function toOpenAiError(refusal: Refusal): OpenAiError {
  const row = ERROR_TABLE[refusal.code]
  const status = statusOf(refusal)
  const type = status === 429 ? 'rate_limit_error' : status >= 500 ? 'server_error' : 'invalid_request_error'
  const message = [sentence(refusal.because), refusal.said, row?.advice ?? 'Try again later.'].filter(Boolean).join(' ')
  return { message, type, param: refusal.param ?? row?.param ?? null, code: refusal.code.replaceAll('-', '_') }
}

function sentence(because: string): string {
  const text = because.charAt(0).toUpperCase() + because.slice(1)
  return /[.!?]$/.test(text) ? text : `${text}.`
}

/**
 * SDKs sleep as long as they are told, up to a minute; told more, they come back after their own two seconds. Vercel's
 * counts the minute itself as more. Whoever has to wait longer is told not to come back by itself.
 */
const RETRY_AFTER_S_MAX = 59

/** Headers that say truthfully when to come back: never sooner than true, in whole seconds and in milliseconds. */
export function retryHeaders(refusal: Refusal): string[] {
  if (refusal.retryAfterUs === undefined) return ['x-should-retry', 'false']
  const ms = Math.max(1, Math.ceil(refusal.retryAfterUs / 1_000))
  const seconds = Math.max(1, Math.ceil(ms / 1_000))
  if (seconds > RETRY_AFTER_S_MAX) return ['retry-after', String(RETRY_AFTER_S_MAX), 'x-should-retry', 'false']
  return ['retry-after', String(seconds), 'retry-after-ms', String(ms)]
}
