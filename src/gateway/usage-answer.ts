import { NANO_PER_USD } from '../domain/ledger.ts'
import { usdText } from '../domain/usd-text.ts'
import type { UsageDimension, UsageRow } from '../lifecycle/ledger-ports.ts'
import { type BucketGroup, type BucketQuery, HOUR_MS, pageName, type UsageQuery } from './usage-query.ts'

/** Groups of the ledger as clients see them: our own table, and pages of buckets as OpenAI has them. */
export function usageAnswer({ fromHour, toHour, by, limit, skip }: UsageQuery, rows: readonly UsageRow[]): object {
  const hasMore = rows.length > limit
  return {
    object: 'spillway.usage',
    from: timeOf(fromHour),
    to: timeOf(toHour),
    by,
    data: rows.slice(0, limit).map((row) => shownRow(row, by)),
    has_more: hasMore,
    next_page: hasMore ? String(skip + limit) : null,
  }
}

const timeOf = (hour: number): string => new Date(hour * HOUR_MS).toISOString().replace('.000Z', 'Z')

/** Money is decimal text: the sum of a column is exact to the nano-dollar. */
function shownRow(row: UsageRow, by: readonly UsageDimension[]): object {
  const names: Readonly<Record<UsageDimension, unknown>> = {
    org: row.orgId,
    tenant: row.tenantId,
    key: row.keyId,
    model: row.model,
    day: timeOf(row.hour ?? 0).slice(0, 10),
    hour: timeOf(row.hour ?? 0),
  }
  return {
    ...Object.fromEntries(by.map((dimension) => [dimension, names[dimension]])),
    requests: row.requests,
    input_tokens: row.inputTokens,
    cached_tokens: row.cachedTokens,
    output_tokens: row.outputTokens,
    price_usd: usdText(row.priceNano),
    cost_usd: usdText(row.costNano),
    batching_saved_usd: usdText(row.batchingSavedNano),
    cache_saved_usd: usdText(row.cacheSavedNano),
    prefill_ms: Number(row.prefillUs) / 1_000,
    decode_ms: Number(row.decodeUs) / 1_000,
    kv_block_seconds: Number(row.kvBlockMs) / 1_000,
  }
}

export type BucketResult = (row: UsageRow, groups: readonly BucketGroup[]) => object

/** All buckets of the page, also those in which nothing was used. */
export function bucketPage(query: BucketQuery, rows: readonly UsageRow[], resultOf: BucketResult): object {
  const { fromHour, width, groups } = query
  const endHour = pageEndOf(query)
  const results = new Map<number, object[]>()
  for (const row of rows) {
    const hour = row.hour ?? fromHour
    const found = results.get(hour)
    if (found === undefined) results.set(hour, [resultOf(row, groups)])
    else found.push(resultOf(row, groups))
  }
  const data = Array.from({ length: (endHour - fromHour) / width }, (_, i) => {
    const hour = fromHour + i * width
    return {
      object: 'bucket',
      start_time: hour * 3_600,
      end_time: (hour + width) * 3_600,
      results: results.get(hour) ?? [],
    }
  })
  const hasMore = endHour < query.toHour
  return { object: 'page', data, has_more: hasMore, next_page: hasMore ? pageName(endHour) : null }
}

/** The hour that the page ends before. */
export function pageEndOf({ fromHour, toHour, width, limit }: BucketQuery): number {
  return Math.min(toHour, fromHour + limit * width)
}

const named = (groups: readonly BucketGroup[], group: BucketGroup, name: string | undefined): string | null =>
  groups.includes(group) ? (name ?? null) : null

export const completionsResult: BucketResult = (row, groups) => ({
  object: 'organization.usage.completions.result',
  input_tokens: row.inputTokens,
  input_cached_tokens: row.cachedTokens,
  input_uncached_tokens: row.inputTokens - row.cachedTokens,
  output_tokens: row.outputTokens,
  input_audio_tokens: 0,
  output_audio_tokens: 0,
  num_model_requests: row.requests,
  project_id: named(groups, 'project_id', row.tenantId),
  user_id: null,
  api_key_id: named(groups, 'api_key_id', row.keyId),
  model: named(groups, 'model', row.model),
  batch: null,
  service_tier: null,
})

/** `amount` is what is charged, by the price list; what the engines cost stands beside it, exact. */
export const costsResult: BucketResult = (row, groups) => ({
  object: 'organization.costs.result',
  amount: { value: Number(row.priceNano) / NANO_PER_USD, currency: 'usd' },
  line_item: named(groups, 'line_item', row.model),
  project_id: named(groups, 'project_id', row.tenantId),
  api_key_id: named(groups, 'api_key_id', row.keyId),
  quantity: groups.includes('line_item') ? row.inputTokens + row.outputTokens : null,
  quantity_unit: groups.includes('line_item') ? 'tokens' : null,
  spillway: { price_usd: usdText(row.priceNano), cost_usd: usdText(row.costNano) },
})
