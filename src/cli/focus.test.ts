import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { usdText } from '../domain/usd-text.ts'
import { parseCsv } from './csv.ts'
import { focusProblems } from './focus-check.ts'
import { FOCUS_COLUMNS } from './focus-columns.ts'
import { focusCsv } from './focus-export.ts'
import { usageCsv } from './usage.ts'
import { nanoOf, type ShownUsage, totalOf } from './usage-rows.ts'

const ROW: ShownUsage = {
  org: 'acme',
  tenant: 'shop',
  key: 'web',
  model: 'sim',
  day: '2026-12-31',
  requests: 3,
  input_tokens: 100,
  cached_tokens: 40,
  output_tokens: 20,
  price_usd: '0.00126',
  cost_usd: '0.0007',
  batching_saved_usd: '0.001',
  cache_saved_usd: '0',
  prefill_ms: 1.5,
  decode_ms: 20,
  kv_block_seconds: 0.25,
}
const FILE = focusCsv([ROW], { provider: 'Platform team' })
const cellOf = (csv: string, name: string, line = 1): string | null | undefined => {
  const [heading = [], ...lines] = parseCsv(csv) ?? []
  return lines[line - 1]?.[heading.indexOf(name)]
}
/** The file with one cell changed. */
function withCell(name: string, text: string): string {
  const [heading = '', line = ''] = FILE.split('\r\n')
  const cells = line.split(',')
  cells[heading.split(',').indexOf(name)] = text
  return `${heading}\r\n${cells.join(',')}\r\n`
}

const money = fc.bigInt({ min: 0n, max: 10n ** 16n }).map(usdText)
const name = fc.string({ minLength: 1, maxLength: 12 })
const rows = fc.array(
  fc.record({ key: name, model: name, price_usd: money, cost_usd: money }).map((more) => ({ ...ROW, ...more })),
  { maxLength: 20 },
)

describe('a file of FOCUS 1.2', () => {
  it('has the 21 mandatory columns, the tenant, and ours behind', () => {
    const [heading = []] = parseCsv(FILE) ?? []
    const mandatory = FOCUS_COLUMNS.filter(({ isMandatory }) => isMandatory).map((column) => column.name)
    expect(mandatory).toHaveLength(21)
    expect(heading).toEqual(expect.arrayContaining(mandatory))
    expect(focusProblems(FILE)).toEqual([])
    expect(['SubAccountId', 'ListCost', 'EffectiveCost', 'x_Key'].map((column) => cellOf(FILE, column))).toEqual([
      'shop',
      '0.00126',
      '0.0007',
      'web',
    ])
    const periods = ['ChargePeriodStart', 'ChargePeriodEnd', 'BillingPeriodStart', 'BillingPeriodEnd']
    expect(periods.map((column) => cellOf(FILE, column))).toEqual([
      '2026-12-31T00:00:00Z',
      '2027-01-01T00:00:00Z',
      '2026-12-01T00:00:00Z',
      '2027-01-01T00:00:00Z',
    ])
  })

  it('keeps every nano-dollar and passes the check, whatever names clients choose', () => {
    fc.assert(
      fc.property(rows, (all) => {
        const csv = focusCsv(all, { provider: 'p' })
        expect(focusProblems(csv)).toEqual([])
        const total = totalOf(all)
        const table = usageCsv(['key', 'model'], all)
        const sum = (text: string, column: string): bigint =>
          all.reduce((nano, _, i) => nano + nanoOf(cellOf(text, column, i + 1) ?? ''), 0n)
        expect([sum(csv, 'ListCost'), sum(csv, 'EffectiveCost')]).toEqual([
          nanoOf(total.price_usd),
          nanoOf(total.cost_usd),
        ])
        expect(sum(table, 'price_usd')).toBe(nanoOf(total.price_usd))
      }),
      { numRuns: 200 },
    )
  })

  it.each([
    ['BilledCost', '', 'BilledCost is missing'],
    ['BilledCost', '"1,5"', 'a decimal'],
    ['BilledCost', '+1', 'a decimal'],
    ['ListCost', '$1', 'a decimal'],
    ['ChargeCategory', 'usage', 'one of: Usage'],
    ['ChargeClass', 'None', 'one of: Correction'],
    ['ServiceCategory', 'AI', 'one of: AI and Machine Learning'],
    ['BillingCurrency', 'usd', 'three capital letters'],
    ['ChargePeriodStart', '2026-12-31', 'a time in UTC'],
    ['ChargePeriodStart', '2026-02-31T00:00:00Z', 'a time that there is'],
    ['ChargePeriodEnd', '2026-12-01T00:00:00Z', 'ChargePeriodEnd is not after'],
    ['PricingQuantity', '', 'PricingQuantity is missing for a charge'],
    ['PricingUnit', 'per token', 'a unit'],
    ['ProviderName', '""', 'text that is not empty'],
    ['ProviderName', 'NULL', 'empty where there is none'],
    ['SubAccountName', '', 'both there or both missing'],
  ])('is none with %s %j', (column, text, problem) => {
    expect(focusProblems(withCell(column, text)).join('\n')).toContain(problem)
  })

  it('is none without its columns, with foreign ones, or with lines of another length', () => {
    expect(focusProblems('')).toContain('the column BilledCost is missing')
    expect(focusProblems(FILE.replace('ListCost', 'listCost')).slice(0, 2)).toEqual([
      'the column ListCost is missing',
      'the column listCost is not known here: names of your own are as x_Name',
    ])
    expect(focusProblems(`${FILE}1,2\r\n`)).toEqual(['line 3 has 2 cells, the heading 31'])
    expect(focusProblems('"')[0]).toMatch(/^the file is no CSV/)
  })

  it('is told at most a hundred problems and a word that there are more', () => {
    const [heading = ''] = FILE.split('\r\n')
    expect(focusProblems(`${heading}\r\n${'1\r\n'.repeat(500)}`)).toHaveLength(101)
  })
})
