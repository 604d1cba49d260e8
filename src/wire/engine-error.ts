import type { EngineError } from '../domain/outcome.ts'
import { errorCode, errorMessage, isContextError } from './upstream.ts'

/**
 * What an engine says is wrong with a request, for the client: its own status, code, type and param, and whatever else
 * its error object has. Engines differ: OpenAI's object, vLLM's older one without a name, a text, FastAPI's list of
 * details. All become the object that OpenAI's clients read. Our credentials are removed first.
 */
export interface EngineErrorSaid {
  readonly status: number
  readonly json: unknown
  readonly redact: (text: string) => string
}

/** Longest error object that is passed on whole, in characters; of a longer one the four known members are. */
const ERROR_LENGTH_MAX = 8_192
/** Longest message and longest other text of the four known members. */
const MESSAGE_LENGTH_MAX = 2_000
const WORD_LENGTH_MAX = 200

export function engineErrorOf({ status, json, redact }: EngineErrorSaid): EngineError {
  const clean = cleaned(json, redact)
  const said = objectOf(clean)
  const message = messageOf(clean)
  const error = {
    ...(isShort(said) && said),
    ...(message !== undefined && { message }),
    param: wordOf(said['param']) ?? paramOfDetails(clean) ?? null,
    code: codeOf(said, clean),
  }
  const type = wordOf(said['type'])
  return { status, error: type === undefined ? error : { ...error, type } }
}

/** The engine's words in one line, without our credentials. */
function messageOf(json: unknown): string | undefined {
  return (detailWords(json) ?? errorMessage(json))?.replaceAll(/\s+/g, ' ').trim().slice(0, MESSAGE_LENGTH_MAX)
}

/** OpenAI's word for a prompt that is too long, also where the engine has only a number for it; else the engine's own. */
function codeOf(said: Readonly<Record<string, unknown>>, json: unknown): string | number | null {
  const { code } = said
  const isWord = typeof code === 'string' && !/^\d+$/.test(code)
  if (!isWord && isContextError(json)) return 'context_length_exceeded'
  if (typeof code === 'number') return code
  return wordOf(code) ?? (said['type'] === undefined ? 'replica_rejected_request' : null)
}

function objectOf(json: unknown): Readonly<Record<string, unknown>> {
  if (!isObject(json)) return {}
  const { error } = json
  if (isObject(error)) return error
  if (typeof error === 'string' || errorCode(json) === undefined) return {}
  const { object: _object, ...rest } = json
  return rest
}

/** FastAPI's `{"detail": [{"loc": ["body", "messages", 0], "msg": "Field required"}]}`. */
function detailsOf(json: unknown): readonly Readonly<Record<string, unknown>>[] {
  const detail = isObject(json) ? json['detail'] : undefined
  return Array.isArray(detail) ? detail.filter(isObject) : []
}

function detailWords(json: unknown): string | undefined {
  const words = detailsOf(json).flatMap((one) => {
    const where = whereOf(one)
    return typeof one['msg'] === 'string' ? [where === undefined ? one['msg'] : `${where}: ${one['msg']}`] : []
  })
  return words.length === 0 ? undefined : words.join('; ')
}

const paramOfDetails = (json: unknown): string | undefined => {
  const [first] = detailsOf(json)
  return first === undefined ? undefined : whereOf(first)
}

/** `["body", "messages", 0, "role"]` → `messages[0].role`. */
function whereOf({ loc }: Readonly<Record<string, unknown>>): string | undefined {
  if (!Array.isArray(loc)) return undefined
  const path = loc.filter((part, i) => !(i === 0 && part === 'body'))
  const text = path.map((part, i) => (typeof part === 'number' ? `[${part}]` : `${i === 0 ? '' : '.'}${part}`)).join('')
  return wordOf(text)
}

/** The same value without our credentials, wherever they stand in it. */
function cleaned(json: unknown, redact: EngineErrorSaid['redact']): unknown {
  if (json === undefined) return undefined
  const text = redact(JSON.stringify(json))
  try {
    return JSON.parse(text) as unknown
  } catch {
    // What was removed was part of the JSON itself.
    return undefined
  }
}

const isShort = (said: Readonly<Record<string, unknown>>): boolean => JSON.stringify(said).length <= ERROR_LENGTH_MAX
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const wordOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value.slice(0, WORD_LENGTH_MAX) : undefined
