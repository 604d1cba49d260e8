import { cpus } from 'node:os'
import { argv, exit, version } from 'node:process'

/** How a bench says what it found: lines for people, or one JSON object with `--json`. A missed target exits with 1. */
export interface Finding {
  readonly name: string
  readonly value: number
  readonly unit: string
  /** The claim: the value is below this. */
  readonly below?: number
}

export function tell(claim: string, findings: readonly Finding[]): void {
  if (argv.includes('--json')) {
    console.log(JSON.stringify({ claim, node: version, cpu: cpus()[0]?.model, findings }))
  } else {
    console.log(claim)
    for (const { name, value, unit, below } of findings) {
      const verdict = below === undefined ? '' : value < below ? `  (below ${below}: yes)` : `  (below ${below}: NO)`
      console.log(`  ${name.padEnd(44)} ${value.toPrecision(4).padStart(10)} ${unit}${verdict}`)
    }
  }
  if (findings.some(({ value, below }) => below !== undefined && value >= below)) exit(1)
}

/**
 * Microseconds of this thread's processor time that one call takes, over so many calls: what a busy machine disturbs
 * less than the time on the wall.
 */
export function cpuUsOf(calls: number, call: () => void): number {
  const before = process.threadCpuUsage()
  for (let i = 0; i < calls; i++) call()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / calls
}

export function quantile(sorted: Float64Array, ratio: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * ratio))] as number
}
