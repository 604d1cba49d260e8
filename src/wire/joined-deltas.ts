import type { ChoiceDelta, Delta, EngineText } from '../domain/delta.ts'
import type { Beside } from './dialect.ts'

/**
 * Joins the deltas of a stream into whole choices, as OpenAI's own clients do: texts are appended, calls of tools are
 * joined by their index, lists of log probabilities grow. Members of the engine's frames that nobody here knows are kept:
 * of several values the last one counts.
 */
export class JoinedDeltas {
  readonly #choices = new Map<number, Joined>()
  #beside: Record<string, unknown> | undefined
  #hasFrames = false
  /** Characters of everything that was added, about. */
  size = 0

  add({ choices = [], kept = choices, beside, frame, ahead = [] }: Delta): void {
    for (const one of ahead) {
      this.#join(one.choices)
      this.#read(one.frame)
    }
    this.#join(kept)
    if (beside !== undefined) this.#put(beside)
    if (frame !== undefined) this.#read(frame)
  }

  /** One delta for each choice, in order. */
  whole(): ChoiceDelta[] {
    const inOrder = [...this.#choices].sort(([a], [b]) => a - b)
    return inOrder.map(([index, { content, finishReason, extra, logprobs, beside }]) => ({
      index,
      content,
      finishReason,
      ...(extra !== undefined && { extra }),
      ...(logprobs !== undefined && { logprobs }),
      ...(beside !== undefined && { beside }),
    }))
  }

  /** What the engine said beside its choices. */
  get beside(): Beside | undefined {
    return this.#beside
  }

  /** The engine was passed on in its own text, so that what it did not say was not said. */
  get hasFrames(): boolean {
    return this.#hasFrames
  }

  #join(choices: readonly ChoiceDelta[]): void {
    for (const { index, content, finishReason, extra, logprobs, beside } of choices) {
      const joined = this.#of(index)
      if (content !== null) {
        joined.content = joined.content === null ? content : joined.content + content
        this.size += content.length
      }
      if (finishReason !== null) joined.finishReason = finishReason
      if (extra !== undefined) {
        joined.extra = joinObjects(joined.extra ?? {}, extra)
        this.size += JSON.stringify(extra).length
      }
      if (logprobs !== undefined && logprobs !== null) {
        joined.logprobs = join(joined.logprobs, logprobs, 'logprobs')
        this.size += JSON.stringify(logprobs).length
      }
      if (beside !== undefined) joined.beside = { ...joined.beside, ...beside }
    }
  }

  #of(index: number): Joined {
    const known = this.#choices.get(index)
    if (known !== undefined) return known
    const made: Joined = { content: null, finishReason: null, extra: undefined, logprobs: undefined, beside: undefined }
    this.#choices.set(index, made)
    return made
  }

  /** What a frame has beyond its choices' deltas, which are joined apart. */
  #read({ json, keepsModel }: EngineText): void {
    this.#hasFrames = true
    const frame = JSON.parse(json) as Record<string, unknown>
    this.#put(without(frame, keepsModel ? OF_FRAME : OF_RENAMED_FRAME))
    const choices = Array.isArray(frame['choices']) ? frame['choices'].filter(isPlain) : []
    for (const [position, choice] of choices.entries()) {
      const more = without(choice, OF_CHOICE)
      if (more === undefined) continue
      const joined = this.#of(typeof choice['index'] === 'number' ? choice['index'] : position)
      joined.beside = { ...joined.beside, ...more }
    }
  }

  #put(beside: Beside | undefined): void {
    if (beside !== undefined) this.#beside = { ...this.#beside, ...beside }
  }
}

interface Joined {
  content: string | null
  finishReason: string | null
  extra: Record<string, unknown> | undefined
  logprobs: unknown
  beside: Record<string, unknown> | undefined
}

/** Members that are ours, or read elsewhere. */
const OF_FRAME: ReadonlySet<string> = new Set(['id', 'object', 'choices', 'usage'])
const OF_RENAMED_FRAME: ReadonlySet<string> = new Set([...OF_FRAME, 'model'])
const OF_CHOICE: ReadonlySet<string> = new Set(['index', 'delta', 'message', 'logprobs', 'finish_reason'])

/** The other members that say something; undefined when there is none. */
function without(object: Readonly<Record<string, unknown>>, names: ReadonlySet<string>): Beside | undefined {
  const left = Object.entries(object).filter(([name, value]) => !names.has(name) && value !== null)
  return left.length === 0 ? undefined : Object.fromEntries(left)
}

/** Texts that name something: they come whole, and some engines repeat them with every piece. */
const NAMES = new Set(['id', 'type', 'name', 'role', 'object', 'format', 'signature'])

function join(before: unknown, next: unknown, key: string): unknown {
  if (before === undefined || before === null || next === null) return next ?? before
  if (typeof before === 'string' && typeof next === 'string') return NAMES.has(key) ? next || before : before + next
  if (Array.isArray(before) && Array.isArray(next)) return joinLists(before, next)
  if (isPlain(before) && isPlain(next)) return joinObjects(before, next)
  return next
}

function joinObjects(before: Readonly<Record<string, unknown>>, next: Readonly<Record<string, unknown>>) {
  const joined: Record<string, unknown> = { ...before }
  for (const key of Object.keys(next))
    joined[key] = join(Object.hasOwn(before, key) ? before[key] : undefined, next[key], key)
  return joined
}

/** Elements with an index are pieces of the element with the same index; others are new ones. */
function joinLists(before: readonly unknown[], next: readonly unknown[]): unknown[] {
  const joined = [...before]
  for (const one of next) {
    const at =
      isPlain(one) && typeof one['index'] === 'number'
        ? joined.findIndex((old) => isPlain(old) && old['index'] === one['index'])
        : -1
    if (at === -1) joined.push(one)
    else joined[at] = join(joined[at], one, '')
  }
  return joined
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
