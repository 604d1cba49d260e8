/** Everything about a run that a reader needs to judge or repeat it. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem, type } from 'node:os'
import { join } from 'node:path'
import type { Sample } from './measure.ts'
import { isNiced, isPinned } from './processes.ts'
import { renderMarkdown } from './report.ts'
import type { Slice } from './slices.ts'
import type { Fault, Row } from './summary.ts'
import { outputOf } from './tools.ts'

const RESULTS = join(import.meta.dirname, '../../results')
/** Written by hand; revise them when a run says something else. */
const NOTES = join(import.meta.dirname, 'notes.md')

export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryGb: number
  readonly system: string
  readonly node: string
  readonly compiler: string
  readonly isPinned: boolean
  readonly isNiced: boolean
}

export interface Noise {
  readonly wallSeconds: number
  readonly stolenSeconds: number
  /** Slices measured again because the host took too much during them. */
  readonly repeats: number
  readonly loadBefore: number
  readonly loadAfter: number
}

export interface Run {
  readonly date: string
  readonly commit: string
  readonly command: string
  readonly machine: Machine
  readonly versions: readonly { readonly target: string; readonly version: string; readonly about: string }[]
  readonly rounds: number
  readonly heldRounds: number
  readonly streams: number
  readonly slices: readonly Slice[]
  readonly noise: Noise
  /** Memory of each proxy after its start, before any load. */
  readonly idleMb: Readonly<Record<string, number>>
  readonly rows: readonly Row[]
  readonly faults: readonly Fault[]
  /** Targets that could not run, with the reason. */
  readonly skipped: readonly string[]
  readonly samples: readonly Sample[]
}

export function describeMachine(): Machine {
  const all = cpus()
  return {
    cpu: all[0]?.model.trim() ?? 'unknown',
    cores: all.length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    node: process.version,
    compiler: outputOf(['cc', '--version']).split('\n')[0] ?? '',
    isPinned,
    isNiced,
  }
}

export function describeCommit(): string {
  const git = (...args: string[]): string => outputOf(['git', '-C', import.meta.dirname, ...args])
  try {
    const isDirty = git('status', '--porcelain', '--', ':/', ':(top,exclude)bench/results') !== ''
    return `commit ${git('rev-parse', '--short=12', 'HEAD')}${isDirty ? ' with uncommitted changes' : ''}`
  } catch {
    return 'an unknown commit'
  }
}

export function describeCommand(argv: readonly string[]): string {
  return ['node bench/load/gateway-overhead/run.ts', ...argv].join(' ')
}

/** Functions in the metrics drop out of the JSON; ids, labels and units stay. */
export const toJson = (run: Run): string => JSON.stringify(run, undefined, 1)

export function writeRecord(run: Run): readonly string[] {
  mkdirSync(RESULTS, { recursive: true })
  const files = [
    { path: join(RESULTS, 'gateway-overhead.json'), text: `${toJson(run)}\n` },
    { path: join(RESULTS, 'gateway-overhead.md'), text: renderMarkdown(run, readFileSync(NOTES, 'utf8')) },
  ]
  for (const { path, text } of files) writeFileSync(path, text)
  return files.map(({ path }) => path)
}
