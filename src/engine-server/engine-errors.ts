import { statusOf, statusOfFault, type ToldFault } from '../gateway/error-table.ts'
import { type ErrorWords, retryHeaders } from '../gateway/error-words.ts'
import { type VllmFault, vllmErrorBody } from '../wire/vllm.ts'

/**
 * Errors in vLLM's words, which are not those of the gateway's error table. What is wrong with a body is a "Bad
 * Request", what is wrong with its meaning has a type.
 */
export const VLLM_ERRORS: ErrorWords = {
  ofFault(fault: ToldFault | VllmFault) {
    const status = 'type' in fault ? STATUS_OF_TYPE[fault.type] : statusOfBody(fault)
    const phrase = PHRASES[status] ?? 'Error'
    const type = 'type' in fault ? fault.type : phrase
    const isUnknownRoute = fault.code === 'unknown-url' || fault.code === 'method-not-allowed'
    const message = isUnknownRoute ? phrase : fault.message
    return { status, body: vllmErrorBody({ message, type, param: fault.param, code: status }), headers: [] }
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

const STATUS_OF_TYPE: Readonly<Record<VllmFault['type'], number>> = { BadRequestError: 400, NotFoundError: 404 }

/** vLLM takes a wrong content type for a wrong body. */
function statusOfBody(fault: ToldFault): number {
  const status = statusOfFault(fault)
  return status === 415 ? 400 : status
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
