import type { ScreenText } from '../domain/screening.ts'
import { type JsonLeaf, jsonLeaves, stringAt } from '../wire/json-leaves.ts'
import {
  BINARY_PARTS,
  EMBEDDED_PROMPTS,
  type ExceptionAsk,
  exceptionFor,
  type LeafException,
  PROTOCOL_NAMES,
} from '../wire/screening-exceptions.ts'
import type { Placeholders } from './placeholders.ts'
import { type ScreenWork, type TextScreen, WINDOW_LENGTH } from './screen-text.ts'

/**
 * The strings of a JSON text, each rewritten in its place. Strings that hold JSON (the arguments of a tool call) are
 * looked into, so that they stay JSON: what is escaped there is found, and a number that is replaced becomes a string.
 */
export interface JsonScreenOptions extends Pick<ExceptionAsk, 'tenantId' | 'isModel'> {
  readonly text: TextScreen
  readonly placeholders: Placeholders
  readonly exceptions: readonly LeafException[]
}

/** Strings of JSON within strings of JSON that are looked into: arguments may quote arguments. */
const NESTED_MAX = 4

/** Members by which a client names its user or its conversation: kept apart from each other also where values are gone. */
const IDENTITIES: ReadonlySet<string> = new Set(['user', 'safety_identifier', 'prompt_cache_key'])

/** Members of the outermost object whose parts may be binary. */
const PROMPTS: ReadonlySet<string> = new Set(['messages', 'input', 'system', 'instructions', 'prompt', 'inputs'])

export class JsonScreen {
  /** Kinds of parts that nobody could look into. */
  readonly unscreened = new Set<string>()
  /** All strings that may be text, rewritten. */
  readonly texts: ScreenText[] = []
  readonly #options: JsonScreenOptions
  /** Characters that were looked at since the last pause. */
  #looked = 0

  constructor(options: JsonScreenOptions) {
    this.#options = options
  }

  /** The very same string where nothing is replaced. */
  rewrite(json: string, { leaves } = jsonLeaves(json)): ScreenWork<string> {
    return this.#rewrite(json, leaves, 0)
  }

  *#rewrite(json: string, leaves: readonly JsonLeaf[], depth: number): ScreenWork<string> {
    let out = ''
    let from = 0
    for (const leaf of leaves) {
      const literal = yield* this.#literal(json, leaf, depth)
      if (literal === undefined) continue
      out += json.slice(from, leaf.start) + literal
      from = leaf.end
    }
    return from === 0 ? json : out + json.slice(from)
  }

  /** The new literal of a leaf; undefined where it stays as it is. */
  *#literal(json: string, leaf: JsonLeaf, depth: number): ScreenWork<string | undefined> {
    const { kind, start, end } = leaf
    const value = kind === 'number' ? json.slice(start, end) : stringAt(json, start, end)
    if (kind === 'name' && PROTOCOL_NAMES.has(value)) return undefined
    if (kind === 'text' && depth === 0 && this.#isExcepted(leaf, value)) return undefined
    yield* this.#pause(value.length)
    // Names stay apart from each other, or one member would hide another.
    const isIdentity = kind === 'name' || (kind === 'text' && depth === 0 && isIdentityOf(leaf))
    const replaced =
      kind === 'text'
        ? yield* this.#value(value, depth, isIdentity)
        : yield* this.#options.text.replaceIn(value, isIdentity)
    if (kind === 'text' && depth === 0 && replaced.includes(' ')) this.texts.push({ role: 'user', text: replaced })
    return replaced === value ? undefined : JSON.stringify(replaced)
  }

  #isExcepted({ member, top }: JsonLeaf, value: string): boolean {
    if (member === 'type' && PROMPTS.has(top)) {
      const kind = BINARY_PARTS.get(value)
      if (kind !== undefined) this.unscreened.add(kind)
    }
    if (EMBEDDED_PROMPTS.has(member)) this.unscreened.add('embeddings')
    const { exceptions, tenantId, isModel } = this.#options
    const excepted = exceptionFor(exceptions, { member, top, value, tenantId, isModel })
    if (excepted !== undefined && excepted !== true) this.unscreened.add(excepted.bytes)
    return excepted !== undefined
  }

  *#value(value: string, depth: number, isIdentity: boolean): ScreenWork<string> {
    const { text } = this.#options
    const spans = yield* text.spansIn(value)
    if (depth < NESTED_MAX && (spans.length > 0 || value.includes('\\')) && isJson(value)) {
      return yield* this.#nested(value, depth)
    }
    return spans.length === 0 ? value : yield* text.replaceSpans(value, spans, isIdentity)
  }

  /**
   * A string that is JSON itself: each of its strings by itself, and then what only shows beside its neighbours
   * (`"api_key": "…"`). What cannot be cut out without breaking the JSON takes the whole string with it.
   */
  *#nested(value: string, depth: number): ScreenWork<string> {
    const { text, placeholders } = this.#options
    const rewritten = yield* this.#rewrite(value, jsonLeaves(value).leaves, depth + 1)
    const left = (yield* text.spansIn(rewritten)).filter(({ screen }) => text.isReplacing(screen))
    const [first] = left
    if (first === undefined) return rewritten
    const cut = yield* text.replaceSpans(rewritten, left)
    return isJson(cut) ? cut : JSON.stringify(placeholders.make(first.category, value))
  }

  *#pause(length: number): ScreenWork<void> {
    this.#looked += length
    if (this.#looked < WINDOW_LENGTH) return
    this.#looked = length
    yield undefined
  }
}

const isIdentityOf = ({ member, above }: JsonLeaf): boolean =>
  IDENTITIES.has(member) || (above === 'metadata' && member === 'user_id')

function isJson(text: string): boolean {
  const first = text.trimStart()[0]
  if (first !== '{' && first !== '[') return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
