import type { ChoiceDelta } from '../domain/delta.ts'

/**
 * Joins the deltas of a stream into whole choices, as OpenAI's own clients do: texts are appended, calls of tools are
 * joined by their index, lists of log probabilities grow. An answer that came in one piece passes through unchanged.
 */
export class JoinedDeltas {
  readonly #choices = new Map<number, Joined>()
  /** Characters of everything that was added, about. */
  size = 0

  add(choices: readonly ChoiceDelta[]): void {
    for (const { index, content, finishReason, extra, logprobs } of choices) {
      const joined = this.#choices.get(index) ?? {
        content: null,
        finishReason: null,
        extra: undefined,
        logprobs: undefined,
      }
      this.#choices.set(index, joined)
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
    }
  }

  /** One delta for each choice, in order. */
  whole(): ChoiceDelta[] {
    const inOrder = [...this.#choices].sort(([a], [b]) => a - b)
    return inOrder.map(([index, { content, finishReason, extra, logprobs }]) => ({
      index,
      content,
      finishReason,
      ...(extra !== undefined && { extra }),
      ...(logprobs !== undefined && { logprobs }),
    }))
  }
}

interface Joined {
  content: string | null
  finishReason: string | null
  extra: Record<string, unknown> | undefined
  logprobs: unknown
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
