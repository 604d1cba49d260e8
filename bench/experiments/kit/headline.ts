import type { Cell, Result } from './result.ts'

/**
 * The numbers to beat, and what was found: one table for the README and the results page, made from what is stored. A
 * figure that is not stored is a dash, never a guess.
 */
interface Row {
  readonly what: string
  readonly toBeat: string
  readonly here: string
  readonly judged: string
  readonly from: Result | undefined
}

export function headline(results: readonly Result[]): string {
  const of = (name: string): Result | undefined => results.find((result) => result.name === name)
  const rows = [
    ...fairness(of('vtc')),
    ...overload(of('overload')),
    ...sheddable(of('sheddable')),
    liveAgainstVirtual(of('live-virtual')),
    ...speed(of('simulator-speed')),
    cells(of('cells')),
    // What was not stored is not told.
  ].filter(({ from }) => from !== undefined)
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const head = line(['what', 'best known, or wanted', 'here', '', 'command, under `bench/experiments/`'])
  return [
    head,
    '| --- | --- | --- | --- | --- |',
    ...rows.map(({ what, toBeat, here, judged, from }) => line([what, toBeat, here, judged, originOf(from)])),
  ].join('\n')
}

function originOf(from: Result | undefined): string {
  if (from === undefined) return '–'
  const command = from.command.replace('node bench/experiments/', '').replace(' --record', '')
  return `\`${command}\`, ${from.date}`
}

const OURS = /^spillway/

/** A number of the first row whose label fits, in the first table whose title does. */
function find(result: Result | undefined, table: RegExp, row: RegExp, column: number): number | undefined {
  const rows = result?.tables.find(({ title }) => table.test(title))?.rows
  const cell: Cell | undefined = rows?.find(([label]) => typeof label === 'string' && row.test(label))?.[column]
  return typeof cell === 'number' ? cell : undefined
}

const show = (value: number | undefined, digits = 0): string =>
  value === undefined
    ? '–'
    : value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })

/** Less is better, in every number. */
function judgeBelow(found: ReadonlyArray<number | undefined>, targets: readonly number[]): string {
  if (found.includes(undefined)) return '–'
  const worst = Math.max(...found.map((value, i) => (value as number) / targets[i]!))
  return worst <= 1 ? 'met' : `misses by ${show(100 * (worst - 1))} %`
}

const judgeAbove = (found: number | undefined, target: number): string =>
  found === undefined ? '–' : found >= target ? 'met' : `misses by ${show(100 * (1 - found / target))} %`

function fairness(vtc: Result | undefined): Row[] {
  const real = [1, 2, 3].map((column) => find(vtc, /^The real trace/, OURS, column))
  const gaps = [/two tenants/, /eight tenants/].map((table) => find(vtc, table, OURS, 4))
  return [
    {
      what: 'fairness on the VTC paper’s trace: service difference, max / mean / variance',
      toBeat: 'VTC 368 / 252 / 6,549 (oracle 329 / 228 / 4,476)',
      here: real.map((value) => show(value)).join(' / '),
      judged: judgeBelow(real, [368, 252, 6_549]),
      from: vtc,
    },
    {
      what: 'accumulated service gap, two / eight overloading tenants',
      toBeat: 'VTC 8,914 / 2,395, with ±50 % prediction 2,250 / 1,790 (oracle 345 / 713)',
      here: gaps.map((value) => show(value)).join(' / '),
      judged: judgeBelow(gaps, [2_250, 1_790]),
      from: vtc,
    },
  ]
}

function overload(result: Result | undefined): Row[] {
  const target = { '1.3': 24.7, '2.2': 29.4 } as const
  return (['1.3', '2.2'] as const).map((load) => {
    const table = new RegExp(`^${load.replace('.', '\\.')} ×`)
    const ours = find(result, table, /^spillway, nothing degraded/, 1)
    const ladder = find(result, table, /^spillway, with the ladder/, 1)
    const codel = find(result, table, /^CoDel/, 1)
    return {
      what: `good answers a second on Azure’s conversations at ${load} × capacity`,
      toBeat: `predictive ${target[load]}; CoDel ${show(codel, 1)} here`,
      here: `${show(ours, 1)}; with the ladder ${show(ladder, 1)}`,
      judged: judgeAbove(ours, target[load]),
      from: result,
    }
  })
}

function sheddable(result: Result | undefined): Row[] {
  return ['1.0', '1.3', '2.0'].map((load) => {
    const table = new RegExp(`^${load.replace('.', '\\.')} ×`)
    const change = (row: RegExp): string => {
      const lost = find(result, table, row, 7)
      return `${show(find(result, table, row, 3))} % at ${show(lost === undefined ? undefined : Math.max(0, lost))} % of the tokens lost`
    }
    const lostOurs = find(result, table, OURS, 7) ?? Number.POSITIVE_INFINITY
    const lostTheirs = find(result, table, /^llm-d/, 7) ?? 0
    const changeOurs = find(result, table, OURS, 3) ?? 0
    const changeTheirs = find(result, table, /^llm-d/, 3) ?? 0
    const less = show(changeOurs - changeTheirs)
    const judged =
      changeOurs <= changeTheirs
        ? 'met'
        : `${less} points less, for ${show(lostTheirs - Math.max(0, lostOurs))} points more work done`
    return {
      what: `people’s P99 first token beside sheddable load, ${load} ×: change, and what it costs`,
      toBeat: `llm-d’s admitter ${change(/^llm-d/)}`,
      here: change(OURS),
      judged,
      from: result,
    }
  })
}

function liveAgainstVirtual(result: Result | undefined): Row {
  const rows = result?.tables[0]?.rows ?? []
  const meanOf = (column: number): number | undefined => {
    const values = rows.map((row) => row[column]).filter((cell): cell is number => typeof cell === 'number')
    return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length
  }
  const found = [meanOf(6), meanOf(8)]
  return {
    what: 'simulated against live: error of the whole answer’s and of the first token’s mean time',
    toBeat: 'BLIS 6.7 % / 17.6 %, Vidur under 9 % (against GPUs; ours against our own server in real time)',
    here: found.map((value) => (value === undefined ? '–' : `${show(value, 1)} %`)).join(' / '),
    judged: judgeBelow(found, [6.7, 17.6]),
    from: result,
  }
}

function speed(result: Result | undefined): Row[] {
  const rows = result?.tables.find(({ title }) => title.startsWith('A million'))?.rows ?? []
  const numberAt = (row: readonly Cell[] | undefined, column: number): number | undefined => {
    const cell = row?.[column]
    return typeof cell === 'number' ? cell : undefined
  }
  const perS = numberAt(rows.at(-1), 2)
  const heaps = [numberAt(rows[0], 4), numberAt(rows.at(-1), 4)]
  return [
    {
      what: 'simulated requests in a second of one core, the whole story, over a million',
      toBeat: '20,000',
      here: show(perS),
      judged: judgeAbove(perS, 20_000),
      from: result,
    },
    {
      what: 'its memory after a tenth of them, and after all',
      toBeat: 'flat',
      here: `${heaps.map((value) => show(value, 1)).join(' MB, ')} MB`,
      judged: judgeBelow([heaps[1]], [1.1 * (heaps[0] ?? Number.NaN)]),
      from: result,
    },
  ]
}

function cells(result: Result | undefined): Row {
  const missed = (row: RegExp): string =>
    `${show(find(result, /./, row, 4), 1)} % / ${show(find(result, /./, row, 6), 1)} %`
  return {
    what: 'sixteen cells, a tenant six times as large / a cell lost: not served in time',
    toBeat: `one home each ${missed(/^home/)}; least loaded by old news ${missed(/^least/)}`,
    here: missed(/^spill/),
    judged: 'see cells.md',
    from: result,
  }
}
