import type { Usage } from '../domain/delta.ts'
import { memberText, spliceJson } from './splice-json.ts'

/**
 * A usage in OpenAI's words. What an engine said of it is kept with all its details (reasoning, audio, cached tokens);
 * only numbers that we count otherwise are changed.
 */
export function wireUsage(usage: Usage): Record<string, unknown> {
  return {
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.promptTokens + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens },
  }
}

export function usageText(usage: Usage): string {
  return pricedText(countedText(usage), usage)
}

/** With what it is sold at, where the client's tenant wants to be told. */
export function pricedText(text: string, { priceUsd }: Usage): string {
  return priceUsd === undefined ? text : spliceJson(text, { spillway: JSON.stringify({ price_usd: priceUsd }) })
}

function countedText(usage: Usage): string {
  const told = toldText(usage)
  if (told === undefined) return JSON.stringify(wireUsage(usage))
  if (isSameCount(usage)) return told
  const { promptTokens, cachedTokens, outputTokens } = usage
  const isCachedTold = usage.told?.cachedTokens === cachedTokens
  const details = memberText(told, 'prompt_tokens_details') ?? '{}'
  const cached = { cached_tokens: String(cachedTokens) }
  return spliceJson(told, {
    prompt_tokens: String(promptTokens),
    completion_tokens: String(outputTokens),
    total_tokens: String(promptTokens + outputTokens),
    ...(!isCachedTold && { prompt_tokens_details: spliceJson(details === 'null' ? '{}' : details, cached) }),
  })
}

/** Whether the text is still what the engine told. */
export function isAsTold(usage: Usage): boolean {
  return usage.priceUsd === undefined && isSameCount(usage)
}

function isSameCount({ told, promptTokens, cachedTokens, outputTokens }: Usage): boolean {
  return (
    told !== undefined &&
    told.promptTokens === promptTokens &&
    told.cachedTokens === cachedTokens &&
    told.outputTokens === outputTokens
  )
}

/** The engine's own details of a usage, for dialects that have other names for them; empty where it told none. */
export function toldDetails(usage: Usage): Readonly<Record<string, unknown>> {
  return JSON.parse(toldText(usage) ?? '{}') as Record<string, unknown>
}

/** The text of the engine's own object. */
function toldText({ told }: Usage): string | undefined {
  const text = told === undefined ? undefined : memberText(told.source.json, 'usage')
  return text?.startsWith('{') === true ? text : undefined
}
