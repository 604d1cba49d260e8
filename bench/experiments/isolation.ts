import { existsSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { appendSeen, BASELINE, readSeen, sameSeeds } from './isolation/baseline.ts'
import { playCells } from './isolation/crew.ts'
import { type Cell, cellNamed, drawnCells, gridCells } from './isolation/grid.ts'
import { CRITERIA, type Criterion, type Judged, judgeCell } from './isolation/judge-cells.ts'
import type { CellSeen } from './isolation/play-cell.ts'
import { TRACED_POINTS } from './isolation/traced-points.ts'
import { textTable } from './kit/render.ts'

/**
 * Can one tenant hurt the others? A grid of offenders beside two calm tenants that ask for half of their share, against
 * the same calm traffic alone, in virtual time.
 *
 *   node bench/experiments/isolation.ts                       the grid and the traced points, three seeds
 *   node bench/experiments/isolation.ts --drawn 200 --from 7  200 random cells, drawn by seed 7, one seed
 *   node bench/experiments/isolation.ts --cells ID,ID         some cells, by the names in the table
 *
 *   --seeds N        seeds of the traffic, from 1          --jobs N       processes at a time; 1
 *   --seconds N      time of the offender in all cells     --json FILE    what was seen, a line for each cell and seed
 *   --baseline FILE  such a file, to compare good work     --against PATH another tree, on which the same cells are played
 *
 * Without `--against`, good work is compared with `isolation/before.jsonl` as far as that has the cell at these seeds.
 * Ends with 1 where a cell falls short.
 */
const SEEDS = 3
const SEEDS_DRAWN = 1

interface Options {
  readonly cells: readonly Cell[]
  readonly seeds: readonly number[]
  readonly seconds: number | undefined
  readonly jobs: number
  readonly json: string | undefined
  readonly baseline: string | undefined
  readonly against: string | undefined
}

function optionsOf(): Options {
  const { values } = parseArgs({
    options: {
      cells: { type: 'string' },
      drawn: { type: 'string' },
      from: { type: 'string', default: '1' },
      seeds: { type: 'string' },
      seconds: { type: 'string' },
      jobs: { type: 'string', default: '1' },
      json: { type: 'string' },
      baseline: { type: 'string' },
      against: { type: 'string' },
    },
  })
  const { drawn, against } = values
  const number = (name: string, text: string): number => {
    if (!(Number.isInteger(Number(text)) && Number(text) > 0))
      throw new Error(`--${name} is ${text}, not a number above 0`)
    return Number(text)
  }
  if (against !== undefined && !existsSync(join(against, 'src/sim/simulate.ts')))
    throw new Error(`--against: ${against} has no src/sim/simulate.ts`)
  const seeds = number('seeds', values.seeds ?? String(drawn === undefined ? SEEDS : SEEDS_DRAWN))
  return {
    cells:
      values.cells !== undefined
        ? values.cells.split(',').map(cellCalled)
        : drawn !== undefined
          ? drawnCells(number('drawn', drawn), number('from', values.from))
          : [...TRACED_POINTS, ...gridCells()],
    seeds: Array.from({ length: seeds }, (_, i) => i + 1),
    seconds: values.seconds === undefined ? undefined : number('seconds', values.seconds),
    jobs: number('jobs', values.jobs),
    json: values.json,
    baseline: values.baseline ?? (against === undefined && existsSync(BASELINE) ? BASELINE : undefined),
    against: against === undefined ? undefined : resolve(against),
  }
}

function cellCalled(id: string): Cell {
  const cell = TRACED_POINTS.find((point) => point.id === id) ?? cellNamed(id)
  if (cell === undefined) throw new Error(`--cells: there is no ${id}. Names stand in the first column of the table.`)
  return cell
}

async function run(options: Options): Promise<void> {
  const { cells, seeds, seconds, jobs, against } = options
  const play = (tree: string | undefined, what: string): Promise<Map<string, CellSeen[]>> => {
    let done = 0
    const onCell = (seen: readonly CellSeen[]): void => {
      const { id, calmGood, cpuS, short } = judgeCell(seen)
      done++
      if (tree === undefined && options.json !== undefined) appendSeen(options.json, seconds, seen)
      console.error(
        `${done}/${cells.length}${what} ${id}: calm ${calmGood.toFixed(3)}, ${cpuS.toFixed(1)} s CPU ${short.join(', ')}`,
      )
    }
    return playCells(cells, { jobs, seeds, seconds, tree, onCell })
  }
  if (options.json !== undefined) writeFileSync(options.json, '')
  const seen = await play(undefined, '')
  const before = against === undefined ? readSeen(options.baseline, seconds) : await play(against, ` ${against}`)
  const judged = cells.map(({ id }) =>
    judgeCell(seen.get(id) as CellSeen[], sameSeeds(before.get(id), seen.get(id) as CellSeen[])),
  )
  console.log(tableOf(judged.toSorted((a, b) => b.missed - a.missed)))
  console.log(summaryOf(judged, seeds.length))
  if (judged.some(({ short }) => short.length > 0)) process.exitCode = 1
}

const COLUMNS = [
  'cell',
  'asked, × share',
  'calm good',
  'before',
  'worst seed',
  'p95 ÷ promise',
  'refused',
  'beside',
  'late',
  'offender got',
  'good work s',
  '÷ before',
  'CPU s',
  'falls short of',
]

function tableOf(judged: readonly Judged[]): string {
  const fixed = (value: number | undefined, digits: number): string | null => value?.toFixed(digits) ?? null
  const rows = judged.map((one) => [
    one.id,
    fixed(one.times, 1),
    fixed(one.calmGood, 3),
    fixed(one.calmGoodBefore, 3),
    fixed(one.calmGoodWorst, 3),
    fixed(one.firstToken, 2),
    one.refused,
    one.refusedBeside,
    one.late,
    fixed(one.got, 2),
    fixed(one.goodWorkS, 1),
    fixed(one.work, 3),
    fixed(one.cpuS, 1),
    one.short.join(', ') || null,
  ])
  return textTable({ title: `${TITLE}\n\n${ABOUT}\n\nCells, worst first`, columns: COLUMNS, rows })
}

const TITLE = 'Isolation: offenders beside two calm tenants'
const ABOUT = `Calm tenants ask for half of their share. Calm good: of the calm tenant with the fewest, ÷ what it gets without the offender (at least ${CRITERIA.calmGoodMin}). p95 ÷ promise: of first tokens, the worse of both (at most ${CRITERIA.firstTokenMax}). Refused, late: calm requests that are good without the offender; beside: refused while the offender was admitted within half a second. Offender got: engine time ÷ its share of what it gets alone (at least ${CRITERIA.gotMin}). Good work: seconds of a full engine (at least ${CRITERIA.workMin} of before).`

function summaryOf(judged: readonly Judged[], seeds: number): string {
  const short = (criterion: Criterion): number => judged.filter((one) => one.short.includes(criterion)).length
  const compared = judged.filter(({ work }) => work !== undefined)
  const now = compared.reduce((sum, one) => sum + one.goodWorkS, 0)
  const before = compared.reduce((sum, one) => sum + one.goodWorkS / (one.work ?? 1), 0)
  const sum = (of: (one: Judged) => number): number => judged.reduce((total, one) => total + of(one), 0)
  const cpuS = sum((one) => one.cpuS)
  return [
    `${judged.length} cells × ${seeds} seeds: ${judged.filter((one) => one.short.length === 0).length} hold.`,
    `Short of calm good ${short('calm good')}, of first token ${short('first token')}, of the offender's share ${short('offender')}, of good work ${short('good work')}, of laws ${short('laws')}.`,
    `Calm requests lost: ${sum((one) => one.refused)} refused (${sum((one) => one.refusedBeside)} beside the offender), ${sum((one) => one.late)} late.`,
    compared.length === 0 ? 'Good work: nothing to compare with.' : `Good work ÷ before: ${(now / before).toFixed(3)}.`,
    `CPU: ${cpuS.toFixed(0)} s, ${(cpuS / judged.length).toFixed(1)} s a cell.`,
  ].join(' ')
}

try {
  await run(optionsOf())
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 2
}
