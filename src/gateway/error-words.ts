import type { Refusal } from '../domain/outcome.ts'
import { errorBody, type WireFault } from '../wire/openai-error.ts'
import { retryHeaders, statusOf, toOpenAiError } from './error-table.ts'

/** How errors are put to clients. Servers that speak another dialect than OpenAI's bring their own words. */
export interface ErrorWords {
  ofFault(fault: WireFault): ErrorReply
  ofRefusal(refusal: Refusal): ErrorReply
}

export interface ErrorReply {
  readonly status: number
  readonly body: string
  readonly headers: readonly string[]
}

export const OPENAI_ERRORS: ErrorWords = {
  ofFault: ({ status, error }) => ({ status, body: errorBody(error), headers: [] }),
  ofRefusal: (refusal) => ({
    status: statusOf(refusal),
    body: errorBody(toOpenAiError(refusal), detailOf(refusal)),
    headers: retryHeaders(refusal),
  }),
}

/** The true time to come back is in the body too: headers stop at a minute, and an error frame has none. */
function detailOf({ retryAfterUs, detail }: Refusal): Refusal['detail'] {
  return retryAfterUs === undefined ? detail : { ...detail, retry_after_ms: Math.ceil(retryAfterUs / 1_000) }
}
