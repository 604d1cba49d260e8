import type { Usage } from '../domain/delta.ts'
import { memberText, spliceJson } from './splice-json.ts'
import { pricedText } from './usage-text.ts'

/** Usage in the words of Responses and of Messages: read from an engine, and corrected where we count otherwise. */
type Json = Readonly<Record<string, unknown>>

/** Tokens beyond which a count cannot be true. */
const COUNT_MAX = 1e9

const countOf = (value: unknown): number =>
  typeof value === 'number' && value > 0 && value <= COUNT_MAX ? Math.round(value) : 0

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null

export function readResponsesUsage(usage: unknown): Usage | undefined {
  if (!isObject(usage)) return undefined
  const details = usage['input_tokens_details']
  return {
    promptTokens: countOf(usage['input_tokens']),
    cachedTokens: isObject(details) ? countOf(details['cached_tokens']) : 0,
    outputTokens: countOf(usage['output_tokens']),
  }
}

/** `before`: the usage of `message_start`, of which later events repeat only what has changed. */
export function readMessagesUsage(usage: unknown, before: unknown): Usage | undefined {
  if (!isObject(usage)) return undefined
  const all: Json = { ...(isObject(before) ? before : {}), ...usage }
  const cachedTokens = countOf(all['cache_read_input_tokens'])
  const written = countOf(all['cache_creation_input_tokens'])
  return {
    promptTokens: countOf(all['input_tokens']) + written + cachedTokens,
    cachedTokens,
    outputTokens: countOf(all['output_tokens']),
  }
}

const isSame = (a: Usage | undefined, b: Usage): boolean =>
  a?.promptTokens === b.promptTokens && a.cachedTokens === b.cachedTokens && a.outputTokens === b.outputTokens

/** The engine's own text of a usage is true; undefined: nothing is to be put in its place. */
const asTold = (told: string, usage: Usage): string | undefined =>
  usage.priceUsd === undefined ? undefined : pricedText(told, usage)

/** The new text of `usage`; undefined where the engine's own is true. */
export function responsesUsageText(text: string | undefined, usage: Usage): string | undefined {
  const told = text?.startsWith('{') === true ? text : '{}'
  if (isSame(readResponsesUsage(JSON.parse(told)), usage) && told !== '{}') return asTold(told, usage)
  const { promptTokens, cachedTokens, outputTokens } = usage
  const details = memberText(told, 'input_tokens_details') ?? '{}'
  const counted = spliceJson(told, {
    input_tokens: String(promptTokens),
    input_tokens_details: spliceJson(details.startsWith('{') ? details : '{}', { cached_tokens: String(cachedTokens) }),
    output_tokens: String(outputTokens),
    total_tokens: String(promptTokens + outputTokens),
  })
  return pricedText(counted, usage)
}

export function messagesUsageText(text: string | undefined, before: unknown, usage: Usage): string | undefined {
  const told = text?.startsWith('{') === true ? text : '{}'
  const read = JSON.parse(told) as Json
  if (isSame(readMessagesUsage(read, before), usage) && told !== '{}') return asTold(told, usage)
  const { promptTokens, cachedTokens, outputTokens } = usage
  const all: Json = { ...(isObject(before) ? before : {}), ...read }
  const written = Math.min(countOf(all['cache_creation_input_tokens']), promptTokens - cachedTokens)
  const counted = spliceJson(told, {
    input_tokens: String(promptTokens - cachedTokens - written),
    cache_creation_input_tokens: String(written),
    cache_read_input_tokens: String(cachedTokens),
    output_tokens: String(outputTokens),
  })
  return pricedText(counted, usage)
}
