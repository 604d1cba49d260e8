import type { Segment } from '../domain/request.ts'
import type { ChatBody, CompletionBody } from './schemas.ts'

/**
 * Which texts of a body does an engine read as its prompt? For those who count a prompt's tokens or answer it.
 *
 * Everything that reaches the prompt counts: messages with their tool calls, names and parts; and beside the messages
 * tools, functions, the schema of the answer, and every long parameter that we do not know, because the engine may put
 * it into its template (vLLM does with `documents` and `chat_template`). Tools and schemas are counted as their JSON:
 * each engine writes them into the prompt in its own words, and the tenant's token ratio learns the difference.
 *
 * Images are counted flat. What an image costs depends on its resolution and on the model, and neither can be read from
 * a URL; the engine's own count corrects the estimate at the end.
 */
export interface SegmentText {
  readonly role: Segment['role']
  /** What is said: the message's content, or a prompt. */
  readonly text: string
  /** What the engine reads beside it: tool calls with their arguments, names, refusals. Mostly empty. */
  readonly otherText: string
  /** Tokens that are not text: images and the like, and prompts that came as token ids. */
  readonly otherTokens: number
}

export interface PromptTexts {
  readonly segments: readonly SegmentText[]
  /** What goes to the engine whole, whichever messages are left out: tools, schemas, a completion's suffix. */
  readonly fixedText: string
}

/** An image of ordinary size costs a vision model about this much. */
const TOKENS_PER_IMAGE = 800

/** Characters of inline data for one token: a text file in base64 has five or six. */
const FILE_CHARACTERS_PER_TOKEN = 5
/** Speech is ten tokens a second, and a second of it ten kilobytes of base64 or more. */
const MEDIA_CHARACTERS_PER_TOKEN = 1_000

const ROLES: Readonly<Record<string, Segment['role']>> = {
  system: 'system',
  developer: 'system',
  user: 'user',
  assistant: 'assistant',
  tool: 'tool',
  function: 'tool',
}

/** Parameters that are the segments themselves, that go no further than to us, or that no engine puts into a prompt. */
const NO_PROMPT: ReadonlySet<string> = new Set([
  'messages',
  'prompt',
  'spillway',
  'model',
  'user',
  'prompt_cache_key',
  'safety_identifier',
  'service_tier',
  'stream_options',
  'stop',
  'logit_bias',
  'metadata',
  'tool_choice',
  'response_format',
])

/** Parameters that every engine puts into the prompt, however short they are. */
const PROMPT: ReadonlySet<string> = new Set(['tools', 'functions', 'suffix'])

/** An unknown parameter up to this length is a setting (`reasoning_effort`, `chat_template_kwargs`); beyond, it is text. */
const SETTING_CHARACTERS_MAX = 64

/** By the body itself: the gateway and an engine in the same process ask for the same texts. */
const known = new WeakMap<object, PromptTexts>()

export function promptTexts(body: ChatBody | CompletionBody): PromptTexts {
  const remembered = known.get(body)
  if (remembered !== undefined) return remembered
  const segments = 'messages' in body ? chatTexts(body) : completionTexts(body.prompt)
  const made = { segments, fixedText: fixedTextOf(body as Readonly<Record<string, unknown>>) }
  // Plain messages are found again sooner than they are remembered.
  if (made.fixedText !== '') known.set(body, made)
  return made
}

export function chatTexts(body: Pick<ChatBody, 'messages'>): SegmentText[] {
  return body.messages.map((message) => {
    const role = ROLES[message.role] ?? 'user'
    const otherText = besideContent(message)
    const { content } = message
    if (typeof content === 'string') return { role, text: content, otherText, otherTokens: 0 }
    if (!Array.isArray(content)) return { role, text: '', otherText, otherTokens: 0 }
    let text = ''
    let otherTokens = 0
    for (const part of content as ReadonlyArray<Readonly<Record<string, unknown>>>) {
      if (typeof part['text'] === 'string') text += part['text']
      else if (typeof part['refusal'] === 'string') text += part['refusal']
      else otherTokens += attachmentTokens(part)
    }
    return { role, text, otherText, otherTokens }
  })
}

/** One segment per prompt: a list of prompts is answered as this many choices. */
export function completionTexts(prompt: CompletionBody['prompt']): SegmentText[] {
  if (typeof prompt === 'string') return [ofText(prompt)]
  if (typeof prompt[0] === 'number') return [ofTokens(prompt.length)]
  return (prompt as ReadonlyArray<string | readonly number[]>).map((one) =>
    typeof one === 'string' ? ofText(one) : ofTokens(one.length),
  )
}

const ofText = (text: string): SegmentText => ({ role: 'user', text, otherText: '', otherTokens: 0 })
const ofTokens = (otherTokens: number): SegmentText => ({ role: 'user', text: '', otherText: '', otherTokens })

function besideContent(message: Readonly<Record<string, unknown>>): string {
  let text = ''
  for (const name in message) if (name !== 'role' && name !== 'content') text += written(message[name])
  return text
}

function fixedTextOf(body: Readonly<Record<string, unknown>>): string {
  let text = ''
  for (const name in body) {
    if (NO_PROMPT.has(name)) continue
    const value = written(body[name])
    if (PROMPT.has(name) || value.length > SETTING_CHARACTERS_MAX) text += value
  }
  return text + written(schemaOf(body['response_format']))
}

/** Plain text and `json_object` ask for no schema. */
function schemaOf(format: unknown): unknown {
  if (typeof format !== 'object' || format === null) return undefined
  const { json_schema, schema } = format as { json_schema?: unknown; schema?: unknown }
  return json_schema ?? schema
}

/** Numbers and flags are settings, not text. */
function written(value: unknown): string {
  if (typeof value === 'string') return value
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : ''
}

function attachmentTokens(part: Readonly<Record<string, unknown>>): number {
  const type = String(part['type'])
  if (type.includes('image')) return TOKENS_PER_IMAGE
  const perToken = type.includes('file') ? FILE_CHARACTERS_PER_TOKEN : MEDIA_CHARACTERS_PER_TOKEN
  return Math.max(TOKENS_PER_IMAGE, Math.ceil(inlineCharacters(part) / perToken))
}

/** Of the part's own texts and those one level below: `file.file_data`, `input_audio.data`. */
function inlineCharacters(part: Readonly<Record<string, unknown>>, depth = 1): number {
  let characters = 0
  for (const name in part) {
    const value = part[name]
    if (typeof value === 'string') characters += value.length
    else if (depth > 0 && typeof value === 'object' && value !== null)
      characters += inlineCharacters(value as Readonly<Record<string, unknown>>, depth - 1)
  }
  return characters
}
