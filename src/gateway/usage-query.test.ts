import { describe, expect, it } from 'vitest'
import { NO_COST, type Settlement } from '../domain/ledger.ts'
import { MemoryLedgerStore } from '../store/memory-ledger-store.ts'
import { bucketPage, completionsResult, costsResult, pageEndOf, usageAnswer } from './usage-answer.ts'
import { readBucketQuery, readUsageQuery, USAGE_ROWS_MAX } from './usage-query.ts'

const NOW = Date.parse('2026-11-16T04:30:00Z')
const RULES = { groups: ['project_id', 'api_key_id', 'line_item'], daysMax: 180 } as const
const asked = (query: string) => readUsageQuery(new URLSearchParams(query), NOW)
const bucketsAsked = (query: string) => readBucketQuery(new URLSearchParams(query), NOW, RULES)
const hourOf = (text: string): number => Date.parse(text) / 3_600_000
const checkedValue = <T>(checked: { kind: 'ok'; value: T } | { kind: 'fault' }): T => {
  if (checked.kind !== 'ok') throw new Error('a fault')
  return checked.value
}

const lineOf = (ticketId: string, at: string, more: Partial<Settlement> = {}): Settlement => ({
  ...NO_COST,
  ticketId,
  atMs: Date.parse(at),
  orgId: 'o',
  tenantId: 't',
  keyId: 'k',
  endUser: '',
  model: 'm',
  releaseId: 'm@1',
  outcome: 'completed',
  inputTokens: 10,
  cachedTokens: 4,
  outputTokens: 2,
  priceNano: 1_500,
  priceVersion: 'v1',
  costNano: 700,
  ...more,
})

describe('a query on usage', () => {
  it('means this month so far, in whole hours, unless it says otherwise', () => {
    const { fromHour, toHour, by, limit, skip } = checkedValue(asked(''))
    expect([fromHour, toHour]).toEqual([hourOf('2026-11-01T00:00Z'), hourOf('2026-11-16T05:00Z')])
    expect([by, limit, skip]).toEqual([[], 1_000, 0])
    const told = checkedValue(asked('from=2026-10-03&to=2026-10-04T07:59:10Z&by=day,tenant&model=m&page=20'))
    expect([told.fromHour, told.toHour]).toEqual([hourOf('2026-10-03T00:00Z'), hourOf('2026-10-04T07:00Z')])
    expect(told).toMatchObject({ by: ['day', 'tenant'], filter: { model: 'm' }, skip: 20 })
  })

  it.each([
    'from=yesterday',
    'from=2026-13-01',
    'to=1700000000',
    'from=2026-11-03&to=2026-11-02',
    'by=colour',
    'by=day,hour',
    'limit=0',
    `limit=${USAGE_ROWS_MAX + 1}`,
    'limit=1e3',
    'page=-1',
  ])('is wrong with %s, and says where', (query) => {
    const checked = asked(query)
    expect(checked).toMatchObject({ kind: 'fault', fault: { code: 'invalid-value' } })
    expect(query).toContain((checked as { fault: { param: string } }).fault.param)
  })

  it('is answered page by page, each group once', async () => {
    const store = new MemoryLedgerStore()
    const days = ['01', '02', '03', '04', '05']
    await store.write(days.map((day) => lineOf(day, `2026-11-${day}T10:00:00Z`)))
    const seen: unknown[] = []
    let page: string | null = '0'
    while (page !== null) {
      const query = checkedValue(asked(`by=day&limit=2&page=${page}`))
      const { limit, skip, ...ask } = query
      const rows = await store.usage({ ...ask, rowsMax: limit + 1, rowsSkip: skip })
      const answer = usageAnswer(query, rows) as {
        data: { day: string }[]
        has_more: boolean
        next_page: string | null
      }
      expect(answer.has_more).toBe(answer.next_page !== null)
      seen.push(...answer.data.map(({ day }) => day))
      page = answer.next_page
    }
    expect(seen).toEqual(days.map((day) => `2026-11-${day}`))
  })
})

describe('a query in OpenAI’s words', () => {
  const start = Date.parse('2026-11-10T05:00:00Z') / 1_000

  it('means whole buckets', () => {
    const days = checkedValue(bucketsAsked(`start_time=${start}`))
    expect([days.fromHour, days.toHour, days.width, days.limit]).toEqual([
      hourOf('2026-11-10T00:00Z'),
      hourOf('2026-11-17T00:00Z'),
      24,
      7,
    ])
    const hours = checkedValue(bucketsAsked(`start_time=${start}&bucket_width=1h&group_by[]=project_id,line_item`))
    expect([hours.fromHour, hours.width, hours.limit]).toEqual([hourOf('2026-11-10T05:00Z'), 1, 24])
    expect(hours.groups).toEqual(['project_id', 'line_item'])
  })

  it.each([
    '',
    'start_time=now',
    'start_time=1&bucket_width=1m',
    'start_time=1&group_by=user_id',
    'start_time=1&limit=181',
    'start_time=1&page=2',
    'start_time=1&project_ids=a&project_ids=b',
  ])('is wrong with "%s"', (query) => {
    expect(bucketsAsked(query).kind).toBe('fault')
  })

  it('is answered with a bucket for every day, and goes on where it ended', async () => {
    const store = new MemoryLedgerStore()
    await store.write([
      lineOf('a', '2026-11-10T01:00:00Z'),
      lineOf('b', '2026-11-12T23:59:59Z', { model: 'n' }),
      lineOf('c', '2026-11-15T00:00:00Z'),
    ])
    type Page = { data: { start_time: number; results: object[] }[]; has_more: boolean; next_page: string | null }
    const pageOf = async (more: string): Promise<Page> => {
      const query = checkedValue(bucketsAsked(`start_time=${start}&group_by=line_item&limit=4${more}`))
      const by = ['day', 'model'] as const
      const rows = await store.usage({ fromHour: query.fromHour, toHour: pageEndOf(query), by, rowsMax: 100 })
      return bucketPage(query, rows, costsResult) as Page
    }
    const first = await pageOf('')
    expect([first.data.map(({ results }) => results.length), first.has_more]).toEqual([[1, 0, 1, 0], true])
    expect(first.data[2]?.results[0]).toMatchObject({
      amount: { value: 0.0000015, currency: 'usd' },
      line_item: 'n',
      quantity: 12,
      spillway: { price_usd: '0.0000015', cost_usd: '0.0000007' },
    })
    const last = await pageOf(`&page=${first.next_page}`)
    expect([last.data.map(({ results }) => results.length), last.has_more, last.next_page]).toEqual([
      [0, 1, 0],
      false,
      null,
    ])
    const [row] = await store.usage({ fromHour: 0, toHour: 1e9, by: [], rowsMax: 1 })
    expect(completionsResult(row!, [])).toMatchObject({
      num_model_requests: 3,
      input_tokens: 30,
      input_cached_tokens: 12,
      model: null,
    })
  })
})
