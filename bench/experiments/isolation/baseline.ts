import { execFileSync } from 'node:child_process'
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CellSeen } from './play-cell.ts'

/**
 * What was seen, in a file with a line for each cell and seed. `before.jsonl` is the tree from before one account of room
 * replaced ten mechanisms: total good work is compared with it. It is recorded anew only where the cells themselves change,
 * and then on that tree, with `--against`.
 */
export const BASELINE = join(import.meta.dirname, 'before.jsonl')

interface Line {
  /** Seconds that were asked for instead of the cell's own. */
  readonly seconds: number | null
  readonly commit: string
  readonly seen: CellSeen
}

type SeenCells = ReadonlyMap<string, readonly CellSeen[]>

export function readSeen(path: string | undefined, seconds: number | undefined): SeenCells {
  const all = new Map<string, CellSeen[]>()
  if (path === undefined) return all
  for (const text of readFileSync(path, 'utf8').split('\n')) {
    if (text === '') continue
    const line = JSON.parse(text) as Line
    if (line.seconds !== (seconds ?? null)) continue
    all.set(line.seen.id, [...(all.get(line.seen.id) ?? []), line.seen])
  }
  return all
}

/** Only what was seen under the same seeds can be compared. */
export function sameSeeds(before: readonly CellSeen[] | undefined, seen: readonly CellSeen[]): CellSeen[] | undefined {
  const found = seen.map(({ seed }) => before?.find((one) => one.seed === seed))
  return found.every((one) => one !== undefined) ? found : undefined
}

/** Adds a cell. First tokens are twenty quantiles: the p95 of several seeds is then nearly that of all. */
export function appendSeen(path: string, seconds: number | undefined, seen: readonly CellSeen[]): void {
  const commit = commitNow()
  const lines = seen.map((one): Line => {
    const calm = one.calm.map((each) => ({ ...each, ttftMs: quantilesOf(each.ttftMs) }))
    return { seconds: seconds ?? null, commit, seen: { ...one, calm } }
  })
  const rounded = (_: string, value: unknown): unknown => (typeof value === 'number' ? Number(value.toFixed(4)) : value)
  appendFileSync(path, lines.map((line) => `${JSON.stringify(line, rounded)}\n`).join(''))
}

const QUANTILES = 20

const quantilesOf = (ascending: readonly number[]): number[] =>
  ascending.length === 0
    ? []
    : Array.from({ length: QUANTILES }, (_, i) =>
        Math.round(ascending[Math.ceil(((i + 1) / QUANTILES) * ascending.length) - 1] as number),
      )

function commitNow(): string {
  try {
    const args = ['-C', import.meta.dirname, 'rev-parse', '--short=12', 'HEAD']
    return execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return 'unknown'
  }
}
