import type { Usage } from '../domain/delta.ts'
import type { Plan } from '../domain/plan.ts'
import type { Request } from '../domain/request.ts'
import { type ChatTemplate, renderChat } from './chat-template.ts'
import { readFinishReason } from './finish-reason.ts'
import { chatTexts, completionTexts } from './prompt-text.ts'
import type { ChatBody, CompletionBody } from './schemas.ts'
import { readUpstream, type UpstreamAnswer, withoutResult } from './upstream.ts'

/**
 * The Open Inference Protocol, version 2, of Triton, KServe and TorchServe: named tensors in, named tensors out; and
 * Triton's extension for language models, `generate`: a text in, texts out.
 */

// ── tensors ──

export interface OipTensor {
  readonly name: string
  readonly datatype: string
  readonly shape: readonly number[]
}

export interface OipMetadata {
  readonly name: string
  readonly versions: readonly string[]
  readonly platform: string
  readonly inputs: readonly OipTensor[]
  readonly outputs: readonly OipTensor[]
}

/** The client's tensors as sent, without our own fields. */
export function inferBody(request: Request): string {
  const { spillway: _ours, ...body } = request.text?.body ?? {}
  return JSON.stringify({ ...body, id: request.id })
}

/** An answer in tensors is one document; the server's own name for the model and our id are left out. */
export function readInfer(json: unknown): UpstreamAnswer {
  if (!isObject(json) || json['error'] !== undefined || !Array.isArray(json['outputs'])) return withoutResult(json)
  const { model_name: _theirs, id: _ours, ...document } = json
  return { choices: [], usage: undefined, error: undefined, result: { kind: 'tensors', document } }
}

export function readMetadata(json: unknown): OipMetadata | undefined {
  if (!isObject(json) || typeof json['name'] !== 'string') return undefined
  const versions = Array.isArray(json['versions']) ? json['versions'].map(String) : []
  const platform = typeof json['platform'] === 'string' ? json['platform'] : ''
  return { name: json['name'], versions, platform, inputs: tensors(json['inputs']), outputs: tensors(json['outputs']) }
}

function tensors(list: unknown): OipTensor[] {
  if (!Array.isArray(list)) return []
  return list.filter(isObject).map(({ name, datatype, shape }) => ({
    name: String(name),
    datatype: String(datatype),
    shape: Array.isArray(shape) ? shape.map(Number) : [],
  }))
}

/** KServe says `{"ready": false}` under a 200; Triton says it with the status alone. */
export function isReadyBody(text: string): boolean {
  try {
    const json: unknown = JSON.parse(text)
    return !isObject(json) || (json['ready'] ?? json['live'] ?? true) !== false
  } catch {
    return true
  }
}

// ── generate ──

export interface GenerateStyle {
  /** Triton's backend that runs the model; the two take the same parameters under different names. */
  readonly runtime: 'vllm' | 'tensorrt-llm'
  readonly template: ChatTemplate
}

export function generateBody(request: Request, plan: Plan, style: GenerateStyle): string {
  const body = request.text?.body ?? {}
  const { temperature, top_p, seed, stop } = body as Readonly<Record<string, unknown>>
  const asked = {
    text_input: promptOf(request, plan, style.template),
    stream: request.isStreamed,
    exclude_input_in_output: true,
    return_num_input_tokens: true,
  }
  if (style.runtime === 'vllm') {
    const sampling = { max_tokens: generateTokensMax(plan), temperature, top_p, seed, stop }
    const returns = { return_num_output_tokens: true, return_finish_reason: true }
    return JSON.stringify({ ...asked, ...returns, sampling_parameters: JSON.stringify(sampling) })
  }
  const stopWords = typeof stop === 'string' ? [stop] : stop
  const returns = request.isStreamed ? {} : { return_num_output_tokens: true }
  return JSON.stringify({
    ...asked,
    ...returns,
    max_tokens: generateTokensMax(plan),
    bad_words: '',
    stop_words: stopWords ?? '',
    temperature,
    top_p,
    random_seed: seed,
  })
}

/** Tokens that Triton is told where nobody set a bound: its own default is 16, and TensorRT-LLM has none. */
const GENERATE_TOKENS_DEFAULT = 1_024

/** The bound that Triton is told: it always needs one. */
export const generateTokensMax = ({ sentTokensMax, outputTokensMax }: Plan): number =>
  sentTokensMax ?? Math.min(outputTokensMax, GENERATE_TOKENS_DEFAULT)

function promptOf(request: Request, plan: Plan, template: ChatTemplate): string {
  const body = request.text?.body as ChatBody | CompletionBody | undefined
  if (body === undefined) return ''
  if (!('messages' in body))
    return completionTexts(body.prompt)
      .map(({ text }) => text)
      .join('\n')
  const turns = chatTexts(body)
  return renderChat(
    template,
    turns.length === plan.keptSegments.length ? turns : turns.filter((_, i) => plan.keptSegments.includes(i)),
  )
}

/**
 * Reads the frames of one answer. Each frame is a piece of the text. Counts are per frame in Triton's vLLM backend and
 * are added up; without counts, the tokens are left to the reader of the stream.
 */
export function makeGenerateReader(outputTokensMax: number): {
  readonly read: (json: unknown) => UpstreamAnswer
  /** The finish reason, for servers that send none. */
  readonly closingReason: () => string
} {
  let promptTokens = 0
  let outputTokens = 0
  let frames = 0
  return {
    read: (json) => {
      if (!isObject(json) || json['error'] !== undefined) return readUpstream(json)
      const content = textOf(json['text_output'])
      promptTokens = Math.max(promptTokens, countOf(json['num_input_tokens']) ?? 0)
      const tokens = countOf(json['num_output_tokens'])
      outputTokens += tokens ?? 0
      if (content !== '') frames++
      const usage: Usage | undefined = promptTokens > 0 ? { promptTokens, cachedTokens: 0, outputTokens } : undefined
      const finishReason = readFinishReason(first(json['finish_reason']))
      const choices = [{ index: 0, content, finishReason }]
      if (tokens === undefined) return { choices, usage, isOutputUncounted: outputTokens === 0, error: undefined }
      return { choices, tokens, usage, error: undefined }
    },
    closingReason: () => (Math.max(outputTokens, frames) >= outputTokensMax ? 'length' : 'stop'),
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const first = (value: unknown): unknown => (Array.isArray(value) ? (value[0] as unknown) : value)
const textOf = (value: unknown): string => (typeof first(value) === 'string' ? (first(value) as string) : '')
/** Tokens beyond which a count cannot be true. */
const COUNT_MAX = 1e9

const countOf = (value: unknown): number | undefined => {
  const count = first(value)
  return typeof count === 'number' && count >= 0 && count <= COUNT_MAX ? count : undefined
}
