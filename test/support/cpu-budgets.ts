/**
 * What may a test file cost? Processor time, which is the same on a busy machine, unlike time on the clock. A file that
 * needs more than the usual budget has a row with its figure and the reason; long tests have rows, too.
 */

/** CPU-seconds that a test file may use without a row: what a person waits for before each commit. */
const USUAL_S = 5

/** CPU-seconds that a long test file may use without a row: a minute of one core, so that two cores share the files evenly. */
const LONG_S = 60

/**
 * A run fails only above this multiple of the budget. Processors differ by as much, and the first file of a worker
 * also pays for loading modules that the next ones find loaded.
 */
export const TOLERANCE = 2

/** File → CPU-seconds and the reason. */
export type Budgets = Readonly<Record<string, readonly [seconds: number, because: string]>>

export const ROWS: Budgets = {
  'src/lifecycle/cancellation.test.ts': [8, 'plays a run once for each event at which a client may leave'],
  'test/scenarios/org-weights.test.ts': [8, 'shares show only over a minute of a full pool, with and without weights'],
  'test/scenarios/trouble.test.ts': [8, 'six shipped scenarios of faults and hostile clients, each in virtual time'],
  'test/scenarios/isolation.long.test.ts': [90, 'thirty cells of the isolation grid, three seeds each, and each alone'],
  'test/scenarios/whole.long.test.ts': [140, 'every shipped scenario at full length'],
  'test/docs-check.long.test.ts': [
    150,
    'runs every command of the documentation, shortened, with three servers of its own',
  ],
}

export const usualSecondsOf = (file: string): number => (file.endsWith('.long.test.ts') ? LONG_S : USUAL_S)

export const budgetMsOf = (file: string, budgets: Budgets): number =>
  (budgets[file]?.[0] ?? usualSecondsOf(file)) * 1_000
