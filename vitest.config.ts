import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    // On two cores isolation costs more than the tests themselves; nothing here keeps state between files.
    isolate: false,
    pool: 'threads',
    // Vitest would leave one core free. Many tests wait for sockets and timers, and half of them can wait beside.
    maxWorkers: '100%',
    testTimeout: 20_000,
    hookTimeout: 30_000,
  },
})
