import type { UsageAsk, UsageDimension } from '../lifecycle/ledger-ports.ts'
import type { Checked } from '../wire/check.ts'
import { invalidRequest } from '../wire/openai-error.ts'

/** What a query on usage means. The ledger's sums are by the hour, in UTC: times are rounded down to one. */
export const HOUR_MS = 3_600_000
const DAY_HOURS = 24

export type UsageFilter = Pick<UsageAsk, 'orgId' | 'tenantId' | 'keyId' | 'model'>

export interface UsageQuery {
  readonly fromHour: number
  readonly toHour: number
  readonly by: readonly UsageDimension[]
  readonly filter: UsageFilter
  readonly limit: number
  readonly skip: number
}

/** Rows of one page, for a caller that does not say, and the most for any: about 4 MB. */
const ROWS_DEFAULT = 1_000
export const USAGE_ROWS_MAX = 10_000
/** Rows before a page: a longer walk is a narrower question. */
const SKIP_MAX = 1_000_000

const DIMENSIONS: readonly UsageDimension[] = ['org', 'tenant', 'key', 'model', 'day', 'hour']

/** `from`, `to`, `by`, `org`, `tenant`, `key`, `model`, `limit`, `page`. */
export function readUsageQuery(query: URLSearchParams, nowMs: number): Checked<UsageQuery> {
  const from = hourOf(query.get('from'), monthStartOf(nowMs))
  const to = hourOf(query.get('to'), nowMs + HOUR_MS)
  if (from === undefined) return noTime('from')
  if (to === undefined) return noTime('to')
  if (to < from) return wrong('to', 'to is before from')
  const words = listOf(query, 'by')
  const by = DIMENSIONS.filter((dimension) => words.includes(dimension))
  const odd = words.find((word) => !DIMENSIONS.some((dimension) => dimension === word))
  if (odd !== undefined) return wrong('by', `by has ${DIMENSIONS.join(', ')}, separated by commas; not ${odd}`)
  if (by.includes('day') && by.includes('hour')) return wrong('by', 'by has day or hour, not both')
  const limit = countOf(query.get('limit'), ROWS_DEFAULT, 1, USAGE_ROWS_MAX)
  if (limit === undefined) return wrong('limit', `limit is a whole number from 1 to ${USAGE_ROWS_MAX}`)
  const skip = countOf(query.get('page'), 0, 0, SKIP_MAX)
  if (skip === undefined) return wrong('page', 'page is the next_page of the page before')
  const filter = {
    orgId: query.get('org') ?? undefined,
    tenantId: query.get('tenant') ?? undefined,
    keyId: query.get('key') ?? undefined,
    model: query.get('model') ?? undefined,
  }
  // The order in which they were named is the order of the rows.
  const ordered = [...by].sort((a, b) => words.indexOf(a) - words.indexOf(b))
  return { kind: 'ok', value: { fromHour: from, toHour: to, by: ordered, filter, limit, skip } }
}

/** A query in OpenAI's words. */
export interface BucketQuery {
  readonly fromHour: number
  readonly toHour: number
  /** Hours of a bucket. */
  readonly width: number
  /** Buckets of a page. */
  readonly limit: number
  readonly groups: readonly BucketGroup[]
  readonly filter: UsageFilter
}

export type BucketGroup = 'project_id' | 'api_key_id' | 'model' | 'line_item'

export interface BucketRules {
  readonly groups: readonly BucketGroup[]
  /** Days of a page at most. */
  readonly daysMax: number
}

const HOURS_MAX = 168

export function readBucketQuery(query: URLSearchParams, nowMs: number, rules: BucketRules): Checked<BucketQuery> {
  const start = secondsOf(query.get('start_time'))
  if (start === undefined) return missing('start_time', 'start_time is missing: seconds since 1970, as a whole number')
  const end = query.has('end_time') ? secondsOf(query.get('end_time')) : Math.ceil(nowMs / 1_000)
  if (end === undefined) return wrong('end_time', 'end_time is seconds since 1970, as a whole number')
  const widthText = query.get('bucket_width') ?? '1d'
  if (widthText !== '1d' && widthText !== '1h') return wrong('bucket_width', 'bucket_width is 1d or 1h')
  const width = widthText === '1d' ? DAY_HOURS : 1
  const max = widthText === '1d' ? rules.daysMax : HOURS_MAX
  const limit = countOf(query.get('limit'), widthText === '1d' ? 7 : DAY_HOURS, 1, max)
  if (limit === undefined) return wrong('limit', `limit is a whole number from 1 to ${max}`)
  const named = listOf(query, 'group_by')
  const odd = named.find((word) => !rules.groups.some((group) => group === word))
  if (odd !== undefined) return wrong('group_by', `group_by has ${rules.groups.join(', ')}; not ${odd}`)
  const filters = [listOf(query, 'project_ids'), listOf(query, 'api_key_ids'), listOf(query, 'models')] as const
  const many = ['project_ids', 'api_key_ids', 'models'].find((_, i) => (filters[i]?.length ?? 0) > 1)
  if (many !== undefined) return wrong(many, `${many} takes one value here; leave it out and use group_by for several`)
  const page = pageOf(query.get('page'))
  if (page === undefined) return wrong('page', 'page is the next_page of the page before')
  const bucketOf = (hour: number): number => Math.floor(hour / width) * width
  const fromHour = Math.max(bucketOf(Math.floor(start / 3_600)), page)
  const toHour = Math.max(fromHour, Math.ceil(Math.ceil(end / 3_600) / width) * width)
  const [[tenantId], [keyId], [model]] = filters
  const groups = rules.groups.filter((group) => named.includes(group))
  return { kind: 'ok', value: { fromHour, toHour, width, limit, groups, filter: { tenantId, keyId, model } } }
}

/** The first hour of the bucket that the next page begins with. */
export const pageName = (hour: number): string => `page_${hour}`

const pageOf = (text: string | null): number | undefined => {
  if (text === null || text === '') return 0
  const [, hour] = /^page_(\d{1,9})$/.exec(text) ?? []
  return hour === undefined ? undefined : Number(hour)
}

const wrong = (param: string, message: string): { readonly kind: 'fault'; readonly fault: WrongQuery } => ({
  kind: 'fault',
  fault: invalidRequest(`${message}.`, param, 'invalid-value'),
})
type WrongQuery = ReturnType<typeof invalidRequest>

const missing = (param: string, message: string): ReturnType<typeof wrong> => ({
  kind: 'fault',
  fault: invalidRequest(`${message}.`, param, 'missing-required-parameter'),
})

const noTime = (param: string): ReturnType<typeof wrong> =>
  wrong(param, `${param} is a day or a time in UTC, as 2026-03-01 or 2026-03-01T12:00Z`)

/** Repeated, with brackets as some clients write lists, or separated by commas. */
function listOf(query: URLSearchParams, name: string): readonly string[] {
  const all = [...query.getAll(name), ...query.getAll(`${name}[]`)]
  return all.flatMap((text) => text.split(',')).filter((text) => text !== '')
}

function countOf(text: string | null, otherwise: number, min: number, max: number): number | undefined {
  if (text === null || text === '') return otherwise
  const count = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  return count >= min && count <= max ? count : undefined
}

const secondsOf = (text: string | null): number | undefined =>
  text !== null && /^\d{1,11}$/.test(text) ? Number(text) : undefined

function hourOf(text: string | null, otherwiseMs: number): number | undefined {
  if (text === null || text === '') return Math.floor(otherwiseMs / HOUR_MS)
  if (!/^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?Z)?$/.test(text)) return undefined
  const ms = Date.parse(text)
  return Number.isNaN(ms) || ms < 0 ? undefined : Math.floor(ms / HOUR_MS)
}

function monthStartOf(nowMs: number): number {
  const now = new Date(nowMs)
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1)
}
