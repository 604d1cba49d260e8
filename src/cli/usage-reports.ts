import { type Command, textFlag, UsageError } from './command.ts'
import { focusProblems } from './focus-check.ts'
import { FOCUS_BY, focusCsv } from './focus-export.ts'
import { byPrice, CSV_FLAG, usageCsv, usageTable } from './usage.ts'
import { usageForecastCommand } from './usage-outlook.ts'
import { ACCESS_FLAGS, FILTER_FLAGS, fetchUsage, monthOf, totalOf } from './usage-rows.ts'

/** `spillway usage …`: statements of a month, and files for others' tools. */
const MONTH = { type: 'string', value: 'MONTH', meaning: 'as 2026-11, in UTC (default: this month so far)' } as const

const STATEMENT_BY = ['org', 'tenant', 'model'] as const

const usageStatementCommand: Command = {
  name: 'usage statement',
  summary: 'a month’s statement: price, cost, and what batching and caches saved',
  about: 'A line for each tenant and model, dearest first. The total is the sum of the lines, to the nano-dollar.',
  flags: { month: MONTH, ...FILTER_FLAGS, csv: CSV_FLAG, ...ACCESS_FLAGS },
  examples: ['spillway usage statement --month 2026-11', 'spillway usage statement --month 2026-11 --org acme --csv'],
  async run(flags, io) {
    const month = textFlag(flags, 'month')
    const { from, to, rows } = await fetchUsage(flags, { by: STATEMENT_BY, ...(month !== undefined && monthOf(month)) })
    const lines = [...rows].sort(byPrice)
    if (flags['json'] === true) io.out(JSON.stringify({ from, to, lines, total: totalOf(lines) }))
    else if (flags['csv'] === true) io.out(usageCsv(STATEMENT_BY, lines).trimEnd())
    else io.out(usageTable(STATEMENT_BY, lines, `Statement ${from} to ${to}`))
    return 0
  },
}

const usageExportCommand: Command = {
  name: 'usage export',
  summary: 'a month’s usage as a file of FOCUS 1.2, for tools of cloud costs',
  about:
    'A line for each org, tenant, key, model and day. ListCost, ContractedCost and BilledCost are the price by the price\n' +
    'list, EffectiveCost is engine time. SubAccountId is the tenant. "spillway usage check FILE" checks the file.',
  flags: {
    focus: { type: 'string', value: 'FILE', meaning: 'the CSV file to write (required)' },
    month: MONTH,
    provider: { type: 'string', value: 'NAME', meaning: 'who sells it (default Spillway)' },
    ...FILTER_FLAGS,
    ...ACCESS_FLAGS,
  },
  examples: ['spillway usage export --focus november.csv --month 2026-11 --provider "Platform team"'],
  async run(flags, io) {
    const path = textFlag(flags, 'focus')
    if (path === undefined) throw new UsageError('--focus is missing: which file? Try: --focus usage.csv')
    const month = textFlag(flags, 'month')
    const { rows } = await fetchUsage(flags, { by: FOCUS_BY, ...(month !== undefined && monthOf(month)) })
    const csv = focusCsv(rows, { provider: textFlag(flags, 'provider') ?? 'Spillway' })
    const [problem] = focusProblems(csv)
    if (problem !== undefined) throw new UsageError(`the file would not be FOCUS 1.2: ${problem}. It was not written.`)
    const { writeUsageFile } = await import('./fs-usage-file.ts')
    writeUsageFile(path, csv)
    const total = totalOf(rows)
    const told = { file: path, lines: rows.length, list_cost_usd: total.price_usd, effective_cost_usd: total.cost_usd }
    if (flags['json'] === true) io.out(JSON.stringify(told))
    else io.out(`${path}: ${rows.length} lines, price $${total.price_usd}, cost $${total.cost_usd}`)
    return 0
  },
}

const usageCheckCommand: Command = {
  name: 'usage check',
  summary: 'check a file against the column rules of FOCUS 1.2',
  about: 'Columns, types, what may be missing, allowed values, decimals, times. Exit code 1 where something is wrong.',
  argument: 'FILE',
  flags: { json: { type: 'boolean', meaning: 'print JSON for machines' } },
  examples: ['spillway usage check november.csv'],
  async run(flags, io) {
    const path = textFlag(flags, 'argument')
    if (path === undefined) throw new UsageError('FILE is missing. Try: spillway usage check november.csv')
    const { readUsageFile } = await import('./fs-usage-file.ts')
    const problems = focusProblems(readUsageFile(path))
    if (flags['json'] === true) io.out(JSON.stringify({ file: path, problems }))
    else io.out(problems.length === 0 ? `${path} keeps the column rules of FOCUS 1.2.` : problems.join('\n'))
    return problems.length === 0 ? 0 : 1
  },
}

export const usageReportCommands: readonly Command[] = [
  usageStatementCommand,
  usageExportCommand,
  usageCheckCommand,
  usageForecastCommand,
]
