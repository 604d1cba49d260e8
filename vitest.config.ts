import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    // On two cores isolation costs more than the tests themselves; nothing here keeps state between files.
    isolate: false,
    pool: 'threads',
    testTimeout: 20_000,
    hookTimeout: 30_000,
  },
})
