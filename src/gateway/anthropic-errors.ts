import { statusOf, statusOfFault, wireCode } from './error-table.ts'
import { type ErrorReply, type ErrorWords, refusalDetail, retryHeaders, toOpenAiError } from './error-words.ts'

/**
 * Errors in the format of Anthropic's interface. It has statuses of its own: a platform that is full, or not ready, says
 * 529 `overloaded_error` where OpenAI's says 503. What Spillway knows beside the message (its code, the parameter,
 * numbers behind a decision) stands in `error.spillway`.
 */
export const ANTHROPIC_ERRORS: ErrorWords = {
  idHeader: 'request-id',
  ofFault(fault, requestId) {
    const { code, message, param } = fault
    const name = code === null ? null : wireCode(code)
    return replyOf({ status: statusOfFault(fault), code: name, message, param }, requestId)
  },
  ofRefusal(refusal, requestId) {
    const told = { ...toOpenAiError(refusal), status: statusOf(refusal), detail: refusalDetail(refusal) }
    return replyOf(told, requestId, retryHeaders(refusal))
  },
}

interface Told {
  readonly status: number
  /** As clients see it; an engine's own, where the engine refused. */
  readonly code: string | number | null
  readonly message: string
  readonly param: string | null
  readonly detail?: Readonly<Record<string, unknown>> | undefined
}

const OVERLOADED = 529

function replyOf(told: Told, requestId: string | undefined, headers: readonly string[] = []): ErrorReply {
  const { code, param, detail } = told
  const status = told.status === 503 ? OVERLOADED : told.status
  const name = param === null ? null : (THEIR_NAMES[param] ?? param)
  const message = name === param ? told.message : told.message.replaceAll(`'${param}'`, `'${name}'`)
  const ours = { ...(code !== null && { code }), ...(name !== null && { param: name }), ...detail }
  const error = { type: typeOf(status), message, spillway: ours }
  return { status, body: JSON.stringify({ type: 'error', error, request_id: requestId ?? null }), headers }
}

/** Parameters that the translation to a chat calls by another name. */
const THEIR_NAMES: Readonly<Record<string, string>> = {
  response_format: 'output_config.format',
  stop: 'stop_sequences',
}

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  [OVERLOADED]: 'overloaded_error',
}

const typeOf = (status: number): string => TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
