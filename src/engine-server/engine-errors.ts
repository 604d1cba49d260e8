import { retryHeaders, statusOf } from '../gateway/error-table.ts'
import type { ErrorWords } from '../gateway/error-words.ts'
import { vllmErrorBody } from '../wire/vllm.ts'

/** Errors in vLLM's words. What is wrong with a body is a "Bad Request", what is wrong with its meaning has a type. */
export const VLLM_ERRORS: ErrorWords = {
  ofFault({ status: given, error }) {
    // vLLM takes a wrong content type for a wrong body.
    const status = given === 415 ? 400 : given
    const phrase = PHRASES[status] ?? 'Error'
    const isUnknownRoute = error.code === 'unknown_url' || error.code === 'method_not_allowed'
    const type = error.type === 'invalid_request_error' ? phrase : error.type
    const message = isUnknownRoute ? phrase : error.message
    return { status, body: vllmErrorBody({ message, type, param: error.param, code: status }), headers: [] }
  },
  ofRefusal(refusal) {
    const status = statusOf(refusal)
    const body = vllmErrorBody({
      message: refusal.because,
      type: TYPES[status] ?? 'Error',
      param: refusal.param ?? null,
      code: status,
    })
    return { status, body, headers: refusal.retryAfterUs === undefined ? [] : retryHeaders(refusal) }
  },
}

/** HTTP's own words. */
const PHRASES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  404: 'Not Found',
  405: 'Method Not Allowed',
  413: 'Content Too Large',
  431: 'Request Header Fields Too Large',
}

const TYPES: Readonly<Record<number, string>> = {
  400: 'BadRequestError',
  500: 'InternalServerError',
  503: 'ServiceUnavailableError',
}
