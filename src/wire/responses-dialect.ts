import type { ChoiceDelta, Usage } from '../domain/delta.ts'
import type { Checked } from './check.ts'
import type { AnswerIdentity, Dialect, StoredApart, StreamWriter, WholeWriter, Wording } from './dialect.ts'
import { NativeStream, NativeWhole } from './native-stream.ts'
import { invalidRequest } from './openai-error.ts'
import { NativeResponses } from './responses-native.ts'
import { ResponseObject, type ResponseState, type ResponseTerms, summaryOf } from './responses-object.ts'
import { ResponseOutput } from './responses-output.ts'
import type { ResponsesBody } from './responses-schema.ts'
import { ignoredIn, RESPONSES_PARAMS, readResponses, toChat, wantsLogprobs } from './responses-to-chat.ts'
import { SSE_KEEP_ALIVE } from './sse.ts'

/** OpenAI's Responses: asked in items, answered in items, streamed in named events with numbers. */
const ID_PREFIX = 'resp_'

export const RESPONSES_DIALECT: Dialect = {
  route: 'responses',
  kind: 'chat',
  screenedAs: 'responses',
  idPrefix: ID_PREFIX,
  params: RESPONSES_PARAMS,
  read(bytes) {
    const checked = readResponses(bytes)
    if (checked.kind === 'fault') return checked
    const { body, raw } = checked.value
    return responsesWording(body, { isStored: false, raw })
  },
}

export function responsesWording(body: ResponsesBody, terms: ResponseTerms = { isStored: false }): Checked<Wording> {
  if (body.background === true && terms.isBackground !== true) {
    const message = "Unsupported parameter: 'background'. Leave it out, and wait for the answer."
    return { kind: 'fault', fault: invalidRequest(message, 'background', 'unsupported-parameter') }
  }
  const chat = toChat(body, terms.earlier)
  if (chat.kind === 'fault') return chat
  return {
    kind: 'ok',
    value: {
      body: chat.value,
      ignored: ignoredIn(body),
      ...nativeOf(body, terms),
      ...writersOf(body, terms),
      ...(terms.keep !== undefined && { apart: apartOf(body, terms) }),
      ...(terms.queue !== undefined && { queued: queuedOf(body, terms, terms.queue) }),
      ...(terms.headers !== undefined && { headers: terms.headers }),
    },
  }
}

const queuedOf =
  (
    body: ResponsesBody,
    terms: ResponseTerms,
    queue: NonNullable<ResponseTerms['queue']>,
  ): NonNullable<Wording['queued']> =>
  (identity) =>
    queue(identity, new ResponseObject(body, identity, terms).write({ status: 'queued', output: '' }))

const writersOf = (body: ResponsesBody, terms: ResponseTerms): Pick<Wording, 'stream' | 'whole'> => ({
  stream: (identity) => new NativeStream(new ResponsesStream(body, identity, terms), new NativeResponses(), identity),
  whole: (identity) => new NativeWhole(new WholeResponse(body, identity, terms), new NativeResponses(), identity),
})

/** The client's writers store nothing; ids of items follow from the answer's, so that both forms have the same. */
function apartOf(body: ResponsesBody, terms: ResponseTerms): StoredApart {
  const { keep: _keep, ...unkept } = terms
  return { ...writersOf(body, unkept), store: (identity) => new WholeResponse(body, identity, terms) }
}

/** What is stored has items with ids of ours, by which clients refer to them: such answers are translated. */
function nativeOf(
  { previous_response_id: id }: ResponsesBody,
  { isStored, raw }: ResponseTerms,
): Pick<Wording, 'native'> {
  return isStored || raw === undefined || typeof id === 'string' ? {} : { native: { dialect: 'responses', raw } }
}

const outputOf = (body: ResponsesBody, { id }: AnswerIdentity, emits: boolean): ResponseOutput =>
  new ResponseOutput({
    core: id.slice(ID_PREFIX.length),
    emits,
    isSummary: summaryOf(body) !== undefined,
    isSealed: body.include?.includes('reasoning.encrypted_content') === true,
    hasLogprobs: wantsLogprobs(body),
  })

const keeperOf = (identity: AnswerIdentity, { keep }: ResponseTerms): ((document: string) => void) | undefined =>
  keep === undefined ? undefined : (document) => keep(identity, document)

/** How an answer ended, in Responses' words. */
function endOf(finishReason: string | null): Pick<ResponseState, 'status' | 'incompleteReason'> {
  if (finishReason === 'length') return { status: 'incomplete', incompleteReason: 'max_output_tokens' }
  if (finishReason === 'content_filter') return { status: 'incomplete', incompleteReason: 'content_filter' }
  return { status: 'completed' }
}

class ResponsesStream implements StreamWriter {
  readonly keepAlive = SSE_KEEP_ALIVE
  readonly #object: ResponseObject
  readonly #output: ResponseOutput
  readonly #keep: ((document: string) => void) | undefined
  #ours: Readonly<Record<string, unknown>> | undefined
  #hasBegun = false

  constructor(body: ResponsesBody, identity: AnswerIdentity, terms: ResponseTerms) {
    this.#object = new ResponseObject(body, identity, terms)
    this.#output = outputOf(body, identity, true)
    this.#keep = keeperOf(identity, terms)
  }

  noteRung(rung: string): void {
    if (rung !== 'full') this.#ours = { ...this.#ours, rung }
  }

  chunk(choices: readonly ChoiceDelta[]): string {
    return this.#hasBegun ? this.#output.take(choices) : this.#begin() + this.#output.take(choices)
  }

  /** Clients that do not know an event end the stream, so our fields stand in the response object. */
  aside(more: Readonly<Record<string, unknown>>): string {
    this.#ours = { ...this.#ours, ...(more['spillway'] as Readonly<Record<string, unknown>> | undefined) }
    return this.#hasBegun ? this.#event('in_progress', { status: 'in_progress', output: '' }) : this.#begin()
  }

  end(usage: Usage): string {
    const begun = this.#hasBegun ? '' : this.#begin()
    const end = endOf(this.#output.finishReason)
    const events = this.#output.end(end.status === 'incomplete')
    const document = this.#object.write({ ...end, output: this.#output.json, usage, ours: this.#ours })
    this.#keep?.(document)
    return begun + events + this.#told(end.status, document)
  }

  /** As OpenAI does: `error`, which SDKs throw, and the response as it failed. */
  fail(error: string): string {
    const begun = this.#hasBegun ? '' : this.#begin()
    const { message, type, code, param } = errorOf(error)
    const told = JSON.stringify({
      type: 'error',
      code,
      message,
      param,
      error: { type, code, message, param },
      sequence_number: this.#output.next(),
    })
    this.#output.breakOff()
    const failed = { status: 'failed', error: { code: codeOf(type), message }, output: this.#output.json } as const
    return `${begun}event: error\ndata: ${told}\n\n${this.#event('failed', failed)}`
  }

  #begin(): string {
    this.#hasBegun = true
    const state = { status: 'in_progress', output: '' } as const
    return this.#event('created', state) + this.#event('in_progress', state)
  }

  #event(what: string, state: ResponseState): string {
    return this.#told(what, this.#object.write({ ...state, ours: this.#ours }))
  }

  #told(what: string, response: string): string {
    const type = `response.${what}`
    return `event: ${type}\ndata: {"type":"${type}","response":${response},"sequence_number":${this.#output.next()}}\n\n`
  }
}

class WholeResponse implements WholeWriter {
  readonly #object: ResponseObject
  readonly #output: ResponseOutput
  readonly #keep: ((document: string) => void) | undefined

  constructor(body: ResponsesBody, identity: AnswerIdentity, terms: ResponseTerms) {
    this.#object = new ResponseObject(body, identity, terms)
    this.#output = outputOf(body, identity, false)
    this.#keep = keeperOf(identity, terms)
  }

  add(choices: readonly ChoiceDelta[]): void {
    this.#output.take(choices)
  }

  encode(usage: Usage, ours?: Readonly<Record<string, unknown>>): string {
    const end = endOf(this.#output.finishReason)
    this.#output.end(end.status === 'incomplete')
    const document = this.#object.write({ ...end, output: this.#output.json, usage, ours })
    this.#keep?.(document)
    return document
  }
}

interface ToldError {
  readonly message: string
  readonly type: string
  readonly code: string | null
  readonly param: string | null
}

function errorOf(document: string): ToldError {
  const { error } = JSON.parse(document) as { error: ToldError }
  return error
}

/** A response of the background that has failed: its error in Responses' words. `error` is the document of an error, if any. */
export function backgroundError(error: unknown): { readonly code: string; readonly message: string } {
  const { message, type } = ((error as { error?: Partial<ToldError> } | null)?.error ?? {}) as Partial<ToldError>
  return { code: codeOf(type ?? ''), message: message ?? 'The response could not be made. Ask again.' }
}

/** OpenAI's codes of a failed response are a short list; our own code is in the event before. */
function codeOf(type: string): string {
  if (type === 'rate_limit_error' || type === 'insufficient_quota') return 'rate_limit_exceeded'
  return type === 'invalid_request_error' ? 'invalid_prompt' : 'server_error'
}
