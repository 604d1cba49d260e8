import { readFileSync } from 'node:fs'
import { afterAll } from 'vitest'

/**
 * How much processor time does a test file use? Its own process, all threads, and the child processes that it started
 * and that have ended: this is a setup file, which every test file runs first, and its hook runs after all others.
 * `cpu-budget-reporter.ts` compares the figure with the file's budget.
 */
declare module 'vitest' {
  interface TaskMeta {
    /** Milliseconds of processor time of a test file. Only files have one. */
    cpuMs?: number
  }
}

/** Linux counts processor time in ticks of this length, whatever the kernel's own timer is. */
const MS_PER_TICK = 10
/** Places of user and system time of ended children in /proc/self/stat, counted behind the command's name. */
const CHILDREN_USER = 13
const CHILDREN_SYSTEM = 14

/** Zero on systems that do not tell: there a file's children are not counted. */
function childrenMs(): number {
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[CHILDREN_USER]) + Number(fields[CHILDREN_SYSTEM])) * MS_PER_TICK
  } catch {
    return 0
  }
}

function cpuMsNow(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000 + childrenMs()
}

const before = cpuMsNow()

// biome-ignore lint/correctness/noEmptyPattern: vitest reads the first parameter's names, which are fixtures; none is used
afterAll(({}, suite) => {
  suite.file.meta.cpuMs = Math.round(cpuMsNow() - before)
})
