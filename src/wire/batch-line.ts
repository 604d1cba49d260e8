import type { JobFault } from '../domain/job.ts'

/** One line of a batch's file: a request, and its answer. */
export interface BatchLine {
  readonly customId: string
  readonly url: string
  readonly model: string
  readonly body: Readonly<Record<string, unknown>>
}

/** Longest `custom_id`, as OpenAI has it. */
export const CUSTOM_ID_MAX = 512

const fault = (line: number, code: string, message: string, param: string | null): JobFault => ({
  code,
  message,
  param,
  line,
})

/** `line` counts from 1. The body is not looked into: the route that runs it does. */
export function readBatchLine(text: string, line: number): BatchLine | JobFault {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return fault(line, 'invalid_json_line', 'This line is not parseable as valid JSON.', null)
  }
  if (!isObject(parsed)) return fault(line, 'invalid_json_line', 'This line is not a JSON object.', null)
  const { custom_id: customId, method, url, body } = parsed
  if (customId === undefined)
    return fault(line, 'missing_required_parameter', "Missing required parameter: 'custom_id'.", 'custom_id')
  if (typeof customId !== 'string' || customId === '' || customId.length > CUSTOM_ID_MAX)
    return fault(
      line,
      'invalid_custom_id',
      `'custom_id' must be a text of 1 to ${CUSTOM_ID_MAX} characters.`,
      'custom_id',
    )
  if (method !== 'POST') return fault(line, 'invalid_method', "The 'method' of every line must be 'POST'.", 'method')
  if (typeof url !== 'string') return fault(line, 'invalid_url', "Missing required parameter: 'url'.", 'url')
  if (!isObject(body)) return fault(line, 'missing_required_parameter', "Missing required parameter: 'body'.", 'body')
  const { model, stream } = body
  if (stream === true)
    return fault(
      line,
      'streaming_not_supported',
      "Answers of a batch cannot be streamed: leave out 'stream'.",
      'body.stream',
    )
  if (typeof model !== 'string')
    return fault(line, 'missing_required_parameter', "Missing required parameter: 'body.model'.", 'body.model')
  return { customId, url, model, body }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The line of an answer. `body` is put in as it came, where it is JSON on one line. */
export function answerLine(
  id: string,
  customId: string,
  { status, requestId, body }: { readonly status: number; readonly requestId: string; readonly body: string },
): string {
  const document = body.includes('\n') ? JSON.stringify(parsedOr(body)) : body === '' ? 'null' : body
  return `{"id":${JSON.stringify(id)},"custom_id":${JSON.stringify(customId)},"response":{"status_code":${status},"request_id":${JSON.stringify(requestId)},"body":${document}},"error":null}`
}

function parsedOr(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return body
  }
}

const UNRUN = {
  expired: {
    code: 'batch_expired',
    message: 'This request could not be executed before the completion window expired.',
  },
  cancelled: { code: 'batch_cancelled', message: 'The batch was cancelled before this request was executed.' },
  // A job completes with every line answered; a line without an answer would be our mistake.
  completed: { code: 'internal_error', message: 'This request has no answer.' },
} as const

/** The line of a request that did not run. */
export const unrunLine = (id: string, customId: string, ending: keyof typeof UNRUN): string =>
  JSON.stringify({ id, custom_id: customId, response: null, error: UNRUN[ending] })
