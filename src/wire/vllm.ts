import type { Static } from 'typebox'
import { Type } from '../base/schema.ts'
import { type Checked, makeCheck } from './check.ts'
import { checkEmbedding, type EmbeddingBody } from './embeddings.ts'
import { invalidRequest, type WireFault } from './openai-error.ts'
import { andThen, checkChat, checkCompletion, readJson } from './read-body.ts'
import { type ChatBody, type CompletionBody, Message, TokenId } from './schemas.ts'

/**
 * vLLM's API where it differs from OpenAI's: errors with the HTTP status as a number in `code`, a model card with the
 * context length, and the endpoints of its tokenizer.
 */

/** The vLLM version whose API and metrics are followed, with Spillway's version as a local version label. */
export const vllmVersion = (ours: string): string => `0.11.0+spillway.${ours}`

export interface VllmError {
  readonly message: string
  readonly type: string
  readonly param: string | null
  readonly code: number
}

export const vllmErrorBody = (error: VllmError): string => JSON.stringify({ error })

/** A mistake in what was asked, as opposed to how it was written: vLLM gives it a type of its own. */
export interface VllmFault extends WireFault {
  readonly type: 'BadRequestError' | 'NotFoundError'
}

export function badRequest(message: string, param: string | null = null): VllmFault {
  return { code: null, message, param, type: 'BadRequestError' }
}

export function vllmNoSuchModel(model: string): VllmFault {
  return { code: null, message: `The model \`${model}\` does not exist.`, param: 'model', type: 'NotFoundError' }
}

export interface ContextExcess {
  readonly contextTokensMax: number
  readonly outputTokens: number
  readonly promptTokens: number
  /** The prompt was not counted to its end. */
  readonly isAtLeast: boolean
}

/** Routers and clients look for the first sentence. */
export function vllmContextTooLong(excess: ContextExcess): VllmFault {
  const { contextTokensMax, outputTokens, promptTokens } = excess
  const atLeast = excess.isAtLeast ? 'at least ' : ''
  const message =
    `This model's maximum context length is ${contextTokensMax} tokens. However, you requested ${outputTokens} ` +
    `output tokens and your prompt contains ${atLeast}${promptTokens} input tokens, for a total of ` +
    `${atLeast}${promptTokens + outputTokens} tokens. Please reduce the length of the input prompt or the number of ` +
    'requested output tokens.'
  return badRequest(message, 'input_tokens')
}

/** A server has one model, so a client need not name it. */
export function readVllmChat(bytes: Buffer, served: string): Checked<ChatBody> {
  return andThen(readJson(bytes), (json) => andThen(checkChat(withModel(json, served)), checkStreamOptions))
}

/** vLLM stops after 16 tokens by default, where OpenAI's own models go on. */
const COMPLETION_TOKENS_DEFAULT = 16

export function readVllmCompletion(bytes: Buffer, served: string): Checked<CompletionBody> {
  return andThen(readJson(bytes), (json) => {
    const filled = withModel(json, served)
    if (isObject(filled)) filled['max_tokens'] ??= COMPLETION_TOKENS_DEFAULT
    return andThen(checkCompletion(filled), checkStreamOptions)
  })
}

export const readVllmEmbedding = (bytes: Buffer, served: string): Checked<EmbeddingBody> =>
  andThen(readJson(bytes), (json) => checkEmbedding(withModel(json, served)))

/** A model of another kind than the endpoint is for. */
export const unsupportedApi = (api: string): VllmFault => badRequest(`The model does not support ${api} API`)

function checkStreamOptions<T extends ChatBody | CompletionBody>(body: T): Checked<T> {
  if (body.stream === true || body.stream_options === undefined || body.stream_options === null) {
    return { kind: 'ok', value: body }
  }
  const fault = invalidRequest('Stream options can only be defined when `stream=True`.', 'stream_options')
  return { kind: 'fault', fault }
}

const isObject = (json: unknown): json is Record<string, unknown> =>
  typeof json === 'object' && json !== null && !Array.isArray(json)

function withModel(json: unknown, served: string): unknown {
  if (isObject(json)) json['model'] ||= served
  return json
}

/** vLLM's own stream option: the usage in every frame, where there is one at the end. */
export function wantsRunningUsage({ stream_options }: ChatBody | CompletionBody): boolean {
  const options = (stream_options ?? {}) as Readonly<Record<string, unknown>>
  return options['include_usage'] === true && options['continuous_usage_stats'] === true
}

/** vLLM's `cache_salt`: prompts share cached blocks only with those of the same salt. */
export function cacheSaltOf(body: object): string {
  const salt = (body as Readonly<Record<string, unknown>>)['cache_salt']
  return typeof salt === 'string' ? salt : ''
}

export function vllmModelList(model: string, contextTokensMax: number, createdAtS: number): string {
  const permission = {
    id: `modelperm-${model}`,
    object: 'model_permission',
    created: createdAtS,
    allow_create_engine: false,
    allow_sampling: true,
    allow_logprobs: true,
    allow_search_indices: false,
    allow_view: true,
    allow_fine_tuning: false,
    organization: '*',
    group: null,
    is_blocking: false,
  }
  const card = {
    id: model,
    object: 'model',
    created: createdAtS,
    owned_by: 'vllm',
    root: model,
    parent: null,
    max_model_len: contextTokensMax,
    permission: [permission],
  }
  return JSON.stringify({ object: 'list', data: [card] })
}

const optional = { model: Type.Optional(Type.Union([Type.String(), Type.Null()])) }
const returns = { return_token_strs: Type.Optional(Type.Union([Type.Boolean(), Type.Null()])) }

const TokenizePromptBody = Type.Object({ ...optional, ...returns, prompt: Type.String() })
const TokenizeChatBody = Type.Object({
  ...optional,
  ...returns,
  messages: Type.Array(Message, { minItems: 1 }),
  add_generation_prompt: Type.Optional(Type.Boolean()),
})
const DetokenizeBody = Type.Object({ ...optional, tokens: Type.Array(TokenId) })

export type TokenizeBody = Static<typeof TokenizePromptBody> | Static<typeof TokenizeChatBody>

const checkTokenizePrompt = makeCheck(TokenizePromptBody)
const checkTokenizeChat = makeCheck(TokenizeChatBody)
const checkDetokenize = makeCheck(DetokenizeBody)

export const readTokenize = (bytes: Buffer): Checked<TokenizeBody> =>
  andThen(
    readJson(bytes),
    (json): Checked<TokenizeBody> =>
      isObject(json) && 'messages' in json ? checkTokenizeChat(json) : checkTokenizePrompt(json),
  )

export const readDetokenize = (bytes: Buffer): Checked<Static<typeof DetokenizeBody>> =>
  andThen(readJson(bytes), checkDetokenize)
