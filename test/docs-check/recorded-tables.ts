import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { RESULTS_FOLDER, type Result } from '../../bench/experiments/kit/result.ts'

/**
 * The figures of docs/results.md: the page is made of the recorded results, so an experiment that ran with the same seeds
 * is compared with its record, cell by cell.
 */
export interface Compared {
  readonly cells: number
  readonly problems: readonly string[]
}

/** A run repeats exactly for a seed; what a change of a policy moves by less than this is not worth a new record. */
const TOLERANCE = 0.05
/** These time the machine that they run on. */
const OF_THE_MACHINE = ['simulator-speed', 'live-virtual', 'tenancy-scale', 'key-revocation']

/** `output` is what the experiment printed with `--json`. */
export function compareWithRecord(output: string, isOnRecordedTrace: boolean): Compared {
  const now = JSON.parse(output) as Result
  if (OF_THE_MACHINE.includes(now.script ?? now.name) || !isOnRecordedTrace) return { cells: 0, problems: [] }
  const recorded = JSON.parse(readFileSync(join(RESULTS_FOLDER, `${now.name}.json`), 'utf8')) as Result
  return compareTables(recorded, now)
}

export function compareTables(recorded: Pick<Result, 'name' | 'tables'>, now: Pick<Result, 'tables'>): Compared {
  const problems: string[] = []
  let cells = 0
  for (const [t, { title, columns, rows }] of recorded.tables.entries()) {
    for (const [r, row] of rows.entries()) {
      for (const [c, cell] of row.entries()) {
        if (typeof cell !== 'number') continue
        cells += 1
        const seen = now.tables[t]?.rows[r]?.[c]
        const isNear = typeof seen === 'number' && Math.abs(seen - cell) <= TOLERANCE * Math.abs(cell) + 1e-9
        if (!isNear)
          problems.push(
            `${recorded.name}: ${title}: ${String(row[0])}, ${columns[c]}: recorded ${cell}, now ${String(seen)}`,
          )
      }
    }
  }
  return { cells, problems }
}
