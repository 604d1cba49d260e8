import { statusOf, statusOfFault } from './error-table.ts'
import { type ErrorWords, retryHeaders, toOpenAiError } from './error-words.ts'

/** Errors in the format of the Open Inference Protocol: one text, which names the parameter. */
export const OIP_ERRORS: ErrorWords = {
  ofFault: (fault) => ({ status: statusOfFault(fault), body: errorOf(fault.message), headers: [] }),
  ofRefusal: (refusal) => {
    const { message, param } = toOpenAiError(refusal)
    const where = param === null || message.includes(param) ? '' : `${param}: `
    return { status: statusOf(refusal), body: errorOf(where + message), headers: retryHeaders(refusal) }
  },
}

const errorOf = (text: string): string => JSON.stringify({ error: text })
