/** OpenAI's error shape: always all four keys, so that SDKs can read any of them. */
export interface OpenAiError {
  readonly message: string
  readonly type: string
  readonly param: string | null
  /** A number only where an engine has said one. */
  readonly code: string | number | null
}

/** Every mistake in what a client sends that has a name. The gateway's error table has each one's HTTP status. */
export type FaultCode =
  // Bytes that are no request, or a request to nowhere.
  | 'invalid-http'
  | 'headers-too-large'
  | 'request-too-slow'
  | 'request-too-large'
  | 'unsupported-expectation'
  | 'unknown-url'
  | 'method-not-allowed'
  // A body that cannot be read.
  | 'unsupported-content-type'
  | 'unsupported-content-encoding'
  | 'invalid-encoding'
  | 'invalid-json'
  | 'body-too-complex'
  | 'invalid-file'
  // A parameter that is missing or wrong.
  | 'missing-required-parameter'
  | 'invalid-type'
  | 'invalid-value'
  | 'empty-array'
  | 'integer-above-max-value'
  | 'unsupported-parameter'
  | 'context-length-exceeded'
  // Something that a screen found.
  | 'content-filter'
  // Something that the request names and that is not there, or not for this client.
  | 'model-not-found'
  | 'model-not-supported'
  | 'request-not-found'
  | 'previous-response-not-found'
  | 'wrong-tenant'

/**
 * A client's mistake, found while reading what it sent. The HTTP status and the error's type follow from the code. As
 * with OpenAI, a body that is wrong as a whole has no code: status 400.
 */
export interface WireFault<Code extends string = FaultCode> {
  readonly code: Code | null
  readonly message: string
  readonly param: string | null
}

export function invalidRequest(message: string, param: string | null, code: FaultCode | null = null): WireFault {
  return { code, message, param }
}

/** `detail` is added beside the four keys: numbers behind the decision. SDKs ignore unknown keys. */
export function errorBody(error: OpenAiError, detail?: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ error: detail === undefined ? error : { ...error, spillway: detail } })
}
