import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { complaintsAbout } from './support/cpu-budget-reporter.ts'
import { ROWS, usualSecondsOf } from './support/cpu-budgets.ts'

/** The budget of processor time that each test file has. */

const ROOT = join(import.meta.dirname, '..')

describe('budgets of test files', () => {
  it('has rows only for files that exist, above the usual budget, with a reason', () => {
    for (const [file, [seconds, because]] of Object.entries(ROWS)) {
      expect(existsSync(join(ROOT, file)), file).toBe(true)
      expect(seconds, file).toBeGreaterThan(usualSecondsOf(file))
      expect(because.length, file).toBeGreaterThan(20)
    }
  })

  it('complains of a file only above twice its budget', () => {
    const budgets = { 'dear.test.ts': [20, 'a row for this test'] } as const
    const costs = [
      { file: 'dear.test.ts', cpuMs: 40_001 },
      { file: 'usual.test.ts', cpuMs: 10_001 },
      { file: 'dear-enough.test.ts', cpuMs: 10_000 },
      { file: 'whole.long.test.ts', cpuMs: 120_000 },
    ]
    const complaints = complaintsAbout(costs, budgets)
    expect(complaints).toHaveLength(2)
    expect(complaints[0]).toContain('dear.test.ts used 40.0 CPU-seconds; its budget is 20.0')
    expect(complaints[1]).toContain('usual.test.ts used 10.0 CPU-seconds; its budget is 5.0')
  })
})
