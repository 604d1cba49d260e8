import { availableParallelism } from 'node:os'
import { configDefaults, defineConfig } from 'vitest/config'

/**
 * Three projects. `npm test` runs `quick`, which everybody waits for before a commit; `npm run test:long` runs the files that
 * are called `*.long.test.ts`: `long`, and after those `calm`. What makes a test a long one is in CONTRIBUTING.md.
 */
const LONG = ['src/**/*.long.test.ts', 'test/**/*.long.test.ts']
/**
 * Those that start no process: a live run is compared with a simulated one and must not be held up, and the others only
 * compute, on one core each.
 */
const CALM = [
  'test/e2e/live-scenarios.long.test.ts',
  'test/scenarios/*.long.test.ts',
  'test/laws/*.long.test.ts',
  'src/**/*.long.test.ts',
]
/** Many tests wait for sockets and timers: on two cores a fifth of the time was idle with two files at once. */
const WORKERS = Math.ceil(availableParallelism() * 1.5)

export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'quick',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...LONG],
        },
      },
      {
        extends: true,
        test: { name: 'long', include: LONG, exclude: [...configDefaults.exclude, ...CALM] },
      },
      {
        extends: true,
        test: { name: 'calm', include: CALM, maxWorkers: availableParallelism(), sequence: { groupOrder: 1 } },
      },
    ],
    // On two cores isolation costs more than the tests themselves; nothing here keeps state between files.
    isolate: false,
    // Processes, not threads: the processor time of a file can be told only for a process and its children.
    pool: 'forks',
    globalSetup: ['test/support/migrated-database.ts'],
    execArgv: ['--import', new URL('test/support/ready-database-hook.ts', import.meta.url).href],
    setupFiles: ['test/support/cpu-meter.ts', 'test/support/property-seed.ts'],
    maxWorkers: WORKERS,
    // They end what hangs. How fast a machine is, is no test's business: on two busy cores some wait ten times as long.
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
})
