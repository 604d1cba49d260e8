import { type Command, type Flag, type FlagValues, textFlag, UsageError } from './command.ts'
import { csvOf } from './csv.ts'
import { ACCESS_FLAGS, FILTER_FLAGS, fetchUsage, nanoOf, type ShownUsage, totalOf } from './usage-rows.ts'
import { numbersToTheRight } from './usage-table.ts'

/** `spillway usage`: who used what, as the ledger of a running server has it. */
const DIMENSIONS = ['org', 'tenant', 'key', 'model', 'day', 'hour'] as const

export const CSV_FLAG: Flag = { type: 'boolean', meaning: 'print CSV for spreadsheets' }

export const usageCommand: Command = {
  name: 'usage',
  summary: 'who used what, what it is sold at and what it cost',
  about:
    'Sums of the ledger, in UTC. An admin key sees everybody, a key whose role reads costs its org, every other key its\n' +
    'own tenant. PRICE is by the price list, COST is engine time. A request is in the ledger some seconds after its end.',
  flags: {
    by: {
      type: 'string',
      value: 'WORDS',
      meaning: `any of ${DIMENSIONS.join(', ')}, with commas (default tenant,model)`,
    },
    from: { type: 'string', value: 'TIME', meaning: 'as 2026-11-01 or 2026-11-01T12:00Z (default: the month’s begin)' },
    to: { type: 'string', value: 'TIME', meaning: 'up to and without this hour (default: now)' },
    ...FILTER_FLAGS,
    'of-key': { type: 'string', value: 'ID', meaning: 'only of the key with this id' },
    csv: CSV_FLAG,
    ...ACCESS_FLAGS,
  },
  examples: ['spillway usage', 'spillway usage --by day,model --tenant shop --from 2026-11-01', 'spillway usage --csv'],
  async run(flags, io) {
    const by = byOf(flags)
    const { from, to, rows } = await fetchUsage(flags, { by, from: textFlag(flags, 'from'), to: textFlag(flags, 'to') })
    if (flags['json'] === true) io.out(JSON.stringify({ from, to, rows, total: totalOf(rows) }))
    else if (flags['csv'] === true) io.out(usageCsv(by, rows).trimEnd())
    else io.out(usageTable(by, rows, `${from} to ${to}`))
    return 0
  },
}

type Dimension = (typeof DIMENSIONS)[number]

function byOf(flags: FlagValues): readonly Dimension[] {
  const words = (textFlag(flags, 'by') ?? 'tenant,model').split(',').filter((word) => word !== '')
  return words.map((word) => {
    const known = DIMENSIONS.find((dimension) => dimension === word)
    if (known === undefined) throw new UsageError(`--by has "${word}". Known: ${DIMENSIONS.join(', ')}.`)
    return known
  })
}

const NUMBERS = [
  ['requests', 'REQUESTS'],
  ['input_tokens', 'INPUT'],
  ['cached_tokens', 'CACHED'],
  ['output_tokens', 'OUTPUT'],
  ['price_usd', 'PRICE $'],
  ['cost_usd', 'COST $'],
  ['batching_saved_usd', 'BATCHING SAVED $'],
  ['cache_saved_usd', 'CACHE SAVED $'],
] as const

const ENGINE = ['prefill_ms', 'decode_ms', 'kv_block_seconds'] as const

/** The same table with a line for the sum, for people. */
export function usageTable(by: readonly Dimension[], rows: readonly ShownUsage[], when: string): string {
  if (rows.length === 0) return `Nothing was used, ${when}.`
  const cellsOf = (row: ShownUsage): string[] => NUMBERS.map(([name]) => String(row[name]))
  const names = by.length === 0 ? [''] : by.map((dimension) => dimension.toUpperCase())
  const lines = rows.map((row) => [
    ...(by.length === 0 ? ['all'] : by.map((dimension) => shownName(row[dimension]))),
    ...cellsOf(row),
  ])
  const total = ['total', ...names.slice(1).map(() => ''), ...cellsOf(totalOf(rows))]
  const heading = [...names, ...NUMBERS.map(([, title]) => title)]
  return `${when}\n\n${numbersToTheRight([heading, ...lines, total], names.length)}`
}

/** Terminals do what control characters say. */
const shownName = (name: string | undefined): string => (name ?? '').replaceAll(/\p{C}/gu, '\uFFFD')

export function usageCsv(by: readonly Dimension[], rows: readonly ShownUsage[]): string {
  const columns = [...NUMBERS.map(([name]) => name), ...ENGINE]
  const lines = rows.map((row) => [
    ...by.map((dimension) => row[dimension] ?? null),
    ...columns.map((name) => row[name]),
  ])
  return csvOf([[...by, ...columns], ...lines])
}

/** Dearest first. */
export const byPrice = (a: ShownUsage, b: ShownUsage): number => {
  const [left, right] = [nanoOf(a.price_usd), nanoOf(b.price_usd)]
  return left === right ? 0 : left > right ? -1 : 1
}
