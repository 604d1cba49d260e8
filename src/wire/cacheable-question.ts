import { hash } from 'node:crypto'
import type { Cacheable } from '../domain/request.ts'
import type { ChatBody } from './schemas.ts'

/**
 * Decides whether the answer to this body may be cached, and what it depends on. Cacheable is a chat with one answer of
 * plain text, at a low temperature, whose last message is a question in words. A chat with tools, log probabilities,
 * several choices, an image, or `spillway.cache: false` is not.
 *
 * Everything else in the body is the prompt version: a change of a word of the system prompt, of an earlier turn, of
 * `max_tokens` or of any unknown parameter makes another question.
 */
export function cacheableQuestion(body: ChatBody, temperatureMax: number): Cacheable | undefined {
  const last = body.messages.at(-1)
  const question = last?.role === 'user' ? textOf(last.content) : undefined
  if (last === undefined || question === undefined || !isPlain(body) || body.spillway?.cache === false) return undefined
  if ((body.temperature ?? TEMPERATURE_DEFAULT) > temperatureMax) return undefined
  const shaping: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(body)) {
    if (!NEUTRAL.has(name) && value !== null && value !== undefined) shaping[name] = value
  }
  shaping['messages'] = [...body.messages.slice(0, -1), { ...last, content: null }]
  const version = JSON.stringify(sorted(shaping, 0))
  if (version.length > VERSION_CHARACTERS_MAX) return undefined
  return { promptVersion: hash('sha256', version, 'hex'), question }
}

/** OpenAI's default: a client that sets no temperature wants variety. */
const TEMPERATURE_DEFAULT = 1

/** A longer conversation is not repeated by another client, and hashing it would cost milliseconds. */
const VERSION_CHARACTERS_MAX = 128 * 1024

/** Fields that do not change what an answer says: transport, caller, urgency, and our own options. */
const NEUTRAL = new Set([
  'stream',
  'stream_options',
  'user',
  'safety_identifier',
  'metadata',
  'store',
  'service_tier',
  'priority',
  'prompt_cache_key',
  'spillway',
])

function isPlain(body: ChatBody): boolean {
  const more = body as Readonly<Record<string, unknown>>
  if ((body.tools ?? []).length > 0 || isGiven(body.tool_choice) || isGiven(more['functions'])) return false
  if (isGiven(more['modalities']) || isGiven(more['audio']) || isGiven(more['web_search_options'])) return false
  return (body.n ?? 1) === 1 && body.logprobs !== true && (body.top_logprobs ?? 0) === 0
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null && value !== 'none'

function textOf(content: unknown): string | undefined {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return undefined
  let text = ''
  for (const part of content as ReadonlyArray<{ type?: unknown; text?: unknown }>) {
    if (part.type !== 'text' || typeof part.text !== 'string') return undefined
    text += part.text
  }
  return text
}

/** Deeper than any body of a person or an SDK. */
const DEPTH_MAX = 64

/** Keys in a fixed order, so that two clients with different key orders ask the same question. */
function sorted(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth > DEPTH_MAX) return value
  if (Array.isArray(value)) return value.map((one) => sorted(one, depth + 1))
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return Object.fromEntries(entries.map(([name, one]) => [name, sorted(one, depth + 1)]))
}
