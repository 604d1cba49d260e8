import { relative } from 'node:path'
import type { Reporter, TestModule } from 'vitest/node'
import { type Budgets, budgetMsOf, ROWS, TOLERANCE } from './cpu-budgets.ts'

/** Prints the most expensive test files of a run, and fails the run when a file uses far more than its budget. */

export interface Cost {
  readonly file: string
  readonly cpuMs: number
}

const SHOWN = 10

const seconds = (ms: number): string => (ms / 1_000).toFixed(1)

/** One complaint for each file over its budget by more than the tolerance. */
export function complaintsAbout(costs: readonly Cost[], budgets: Budgets): readonly string[] {
  return costs
    .filter(({ file, cpuMs }) => cpuMs > TOLERANCE * budgetMsOf(file, budgets))
    .map(
      ({ file, cpuMs }) =>
        `${file} used ${seconds(cpuMs)} CPU-seconds; its budget is ${seconds(budgetMsOf(file, budgets))}. Make it cheaper, move its expensive part to a *.long.test.ts, or give it a row with a reason in test/support/cpu-budgets.ts.`,
    )
}

function tableOf(costs: readonly Cost[]): string {
  const totalMs = costs.reduce((sum, { cpuMs }) => sum + cpuMs, 0)
  const shown = costs.slice(0, process.env['SPILLWAY_CPU_ALL'] === undefined ? SHOWN : costs.length)
  const rows = shown.map(
    ({ file, cpuMs }) => `  ${seconds(cpuMs).padStart(6)}  ${seconds(budgetMsOf(file, ROWS)).padStart(6)}  ${file}`,
  )
  const title = `CPU-seconds of ${costs.length} files: ${seconds(totalMs)}. The most expensive:`
  return ['', title, '    used  budget  file', ...rows, ''].join('\n')
}

// biome-ignore lint/style/noDefaultExport: vitest takes a reporter's default export
export default class CpuBudgetReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const costs = modules
      .map((module): Cost => ({ file: relative(process.cwd(), module.moduleId), cpuMs: module.meta().cpuMs ?? 0 }))
      .sort((a, b) => b.cpuMs - a.cpuMs)
    const complaints = complaintsAbout(costs, ROWS)
    process.stdout.write(`${[tableOf(costs), ...complaints].join('\n')}\n`)
    if (complaints.length > 0) process.exitCode = 1
  }
}
