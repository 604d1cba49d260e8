/** OpenAI's error shape: always all four keys, so that SDKs can read any of them. */
export interface OpenAiError {
  readonly message: string
  readonly type: string
  readonly param: string | null
  readonly code: string | null
}

/** A client's mistake, found while reading what it sent. */
export interface WireFault {
  readonly status: number
  readonly error: OpenAiError
}

export function invalidRequest(
  message: string,
  param: string | null,
  code: string | null = null,
  status = 400,
): WireFault {
  return { status, error: { message, type: 'invalid_request_error', param, code } }
}

/** `detail` rides beside the four keys: our reasons in numbers. SDKs ignore what they do not know. */
export function errorBody(error: OpenAiError, detail?: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ error: detail === undefined ? error : { ...error, spillway: detail } })
}
