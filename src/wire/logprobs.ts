import type { ChatBody, CompletionBody } from './schemas.ts'

/**
 * Log probabilities in OpenAI's two shapes: a list of entries for chat, lists side by side for completions.
 *
 *     chat         {"content": [{"token", "logprob", "bytes", "top_logprobs": […]}], "refusal": null}
 *     completions  {"tokens": […], "token_logprobs": […], "top_logprobs": […], "text_offset": […]}
 *
 * Those that a simulated engine makes up say so beside the lists: `"spillway": {"simulated": true}`.
 */
export interface LogprobsWish {
  readonly shape: 'chat' | 'completion'
  /** Alternatives for each token, the chosen one among them. */
  readonly topCount: number
}

/** How likely one token was, and what else could have stood there. */
export interface TokenChance extends Alternative {
  readonly alternatives: readonly Alternative[]
  /** Characters of the text before the token. */
  readonly offset: number
}

export interface Alternative {
  readonly token: string
  readonly bytes: readonly number[]
  /** Undefined for the first token of an echoed prompt, which follows on nothing. */
  readonly logprob: number | undefined
}

export function logprobsWish(body: ChatBody | CompletionBody): LogprobsWish | undefined {
  if ('messages' in body)
    return body.logprobs === true ? { shape: 'chat', topCount: body.top_logprobs ?? 0 } : undefined
  return typeof body.logprobs === 'number' ? { shape: 'completion', topCount: body.logprobs } : undefined
}

export function simulatedLogprobs({ shape, topCount }: LogprobsWish, chances: readonly TokenChance[]): object {
  const spillway = { simulated: true }
  if (shape === 'chat') {
    const content = chances.map((chosen) => ({
      ...wireChance(chosen),
      top_logprobs: chosen.alternatives.map(wireChance),
    }))
    return { content, refusal: null, spillway }
  }
  const top = ({ logprob, alternatives }: TokenChance) =>
    logprob === undefined ? null : Object.fromEntries(alternatives.map((one) => [one.token, one.logprob]))
  return {
    tokens: chances.map(({ token }) => token),
    token_logprobs: chances.map(({ logprob }) => logprob ?? null),
    top_logprobs: topCount === 0 ? null : chances.map(top),
    text_offset: chances.map(({ offset }) => offset),
    spillway,
  }
}

const wireChance = ({ token, logprob, bytes }: Alternative): object => ({ token, logprob: logprob ?? null, bytes })

type Lists = Record<string, unknown>

/**
 * The log probabilities of two pieces of one answer, in either shape: lists are joined, and everything else is as the
 * later piece has it. Undefined or null before the first piece. What was joined before is extended, not copied again.
 */
export function joinLogprobs(before: unknown, more: unknown): unknown {
  if (!isLists(more)) return more ?? before
  const joined: Lists = isLists(before) ? before : {}
  for (const [name, value] of Object.entries(more)) {
    const known = joined[name]
    if (!Array.isArray(value)) joined[name] = Array.isArray(known) ? known : value
    else if (Array.isArray(known)) for (const one of value) known.push(one)
    else joined[name] = [...value]
  }
  return joined
}

const isLists = (value: unknown): value is Lists => typeof value === 'object' && value !== null && !Array.isArray(value)
