import { configDefaults, defineConfig } from 'vitest/config'

/**
 * Two projects. `npm test` runs `quick`, which everybody waits for before a commit; `npm run test:long` runs `long`: the
 * files that are called `*.long.test.ts`. What makes a test a long one is in CONTRIBUTING.md.
 */
const LONG = ['src/**/*.long.test.ts', 'test/**/*.long.test.ts']

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
      { extends: true, test: { name: 'long', include: LONG } },
    ],
    // On two cores isolation costs more than the tests themselves; nothing here keeps state between files.
    isolate: false,
    pool: 'threads',
    setupFiles: ['test/support/property-seed.ts'],
    // Vitest would leave one core free. Many tests wait for sockets and timers, and half of them can wait beside.
    maxWorkers: '100%',
    // They end what hangs. How fast a machine is, is no test's business: on two busy cores some wait ten times as long.
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
})
