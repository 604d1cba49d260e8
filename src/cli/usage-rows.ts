import { unitsOf, usdText } from '../domain/usd-text.ts'
import { type Flag, type FlagValues, textFlag, UsageError } from './command.ts'
import { TENANCY_FLAGS, TenancyClient } from './http-admin-client.ts'

/** Rows of `GET …/usage`, all pages of them. Money is text: sums are made exactly, in nano-dollars. */
export interface ShownUsage {
  readonly org?: string
  readonly tenant?: string
  readonly key?: string
  readonly model?: string
  readonly day?: string
  readonly hour?: string
  readonly requests: number
  readonly input_tokens: number
  readonly cached_tokens: number
  readonly output_tokens: number
  readonly price_usd: string
  readonly cost_usd: string
  readonly batching_saved_usd: string
  readonly cache_saved_usd: string
  readonly prefill_ms: number
  readonly decode_ms: number
  readonly kv_block_seconds: number
}

interface UsagePage {
  readonly from: string
  readonly to: string
  readonly data: readonly ShownUsage[]
  readonly next_page: string | null
}

export interface UsageSpan {
  readonly from: string
  readonly to: string
  readonly rows: readonly ShownUsage[]
}

const text = (value: string, meaning: string): Flag => ({ type: 'string', value, meaning })

export const FILTER_FLAGS: Readonly<Record<string, Flag>> = {
  org: text('ID', 'only of this org'),
  tenant: text('ID', 'only of this tenant'),
  model: text('NAME', 'only of this model'),
}

export const ACCESS_FLAGS: Readonly<Record<string, Flag>> = {
  ...TENANCY_FLAGS,
  key: text('KEY', 'an admin key (or set SPILLWAY_ADMIN_KEY), or a tenant’s, which sees its own (or set SPILLWAY_KEY)'),
}

/** Rows that the command takes; more of them are a narrower question. */
const ROWS_MAX = 1_000_000
const PAGE_ROWS = 10_000

export interface UsageWish {
  readonly by: readonly string[]
  readonly from?: string | undefined
  readonly to?: string | undefined
  /** Filters beside those of the flags, which they replace. */
  readonly only?: Readonly<Record<string, string>>
}

export async function fetchUsage(
  flags: FlagValues,
  ask: UsageWish,
  client: TenancyClient = new TenancyClient(flags),
): Promise<UsageSpan> {
  const query = new URLSearchParams({ by: ask.by.join(','), limit: String(PAGE_ROWS) })
  if (ask.from !== undefined) query.set('from', ask.from)
  if (ask.to !== undefined) query.set('to', ask.to)
  for (const name of Object.keys(FILTER_FLAGS)) {
    const value = textFlag(flags, name)
    if (value !== undefined) query.set(name, value)
  }
  const keyId = textFlag(flags, 'of-key')
  if (keyId !== undefined) query.set('key', keyId)
  for (const [name, value] of Object.entries(ask.only ?? {})) query.set(name, value)
  const rows: ShownUsage[] = []
  for (;;) {
    const page = await client.call<UsagePage>('GET', `/usage?${query.toString()}`)
    rows.push(...page.data)
    if (page.next_page === null) return { from: page.from, to: page.to, rows }
    if (rows.length >= ROWS_MAX) throw new UsageError(`there are more than ${ROWS_MAX} rows. Ask for a shorter time.`)
    query.set('page', page.next_page)
  }
}

const MONEY = ['price_usd', 'cost_usd', 'batching_saved_usd', 'cache_saved_usd'] as const
const COUNTS = [
  'requests',
  'input_tokens',
  'cached_tokens',
  'output_tokens',
  'prefill_ms',
  'decode_ms',
  'kv_block_seconds',
] as const

export const nanoOf = (usd: string): bigint => unitsOf(usd, 9) ?? 0n

/** The sum of all rows, without their names. */
export function totalOf(rows: readonly ShownUsage[]): ShownUsage {
  const money = MONEY.map((name) => [name, usdText(rows.reduce((sum, row) => sum + nanoOf(row[name]), 0n))])
  const counts = COUNTS.map((name) => [name, rows.reduce((sum, row) => sum + row[name], 0)])
  return Object.fromEntries([...counts, ...money]) as unknown as ShownUsage
}

/** A month in UTC, as `2026-11`: its first day, and the first of the next one. */
export function monthOf(name: string): { readonly from: string; readonly to: string } {
  const [, year, month] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(name) ?? []
  if (year === undefined) throw new UsageError(`--month is "${name}". Give one as 2026-11.`)
  const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
  return { from: `${name}-01`, to: dayOf(Date.UTC(Number(year), Number(month), 1)) }
}
