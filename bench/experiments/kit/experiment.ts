import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem, type } from 'node:os'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { TraceError } from '../../../src/sim/traces/trace.ts'
import { renderMarkdown, renderText } from './render.ts'
import { RESULTS_FOLDER, type Result, type Table } from './result.ts'
import { writeResultsPage } from './results-page.ts'

/**
 * One experiment on the command line: reads its options, runs it, prints its tables (or `--json`), and with `--record`
 * stores them under bench/results/ and makes docs/results.md anew.
 *
 *   node bench/experiments/NAME.ts [FOLDER] [--trace FILE] [--seeds N] [--from SEED] [--loads L,…] [--only NAME,…] [--sample N] [--json] [--record]
 */
export interface Experiment {
  readonly name: string
  readonly title: string
  /** What is compared, on what, and what would be good. */
  readonly about: string
  /** Seeds from 1, this many, unless told otherwise: few, so that it ends within two minutes. */
  readonly seeds: number
  /** Where the experiment can run at other loads and with some of its scenarios only: the options are refused elsewhere. */
  readonly hasLoads?: boolean
  /** Where the experiment looks at a sample, and `--sample` says how large. */
  readonly hasSample?: boolean
  /** Its loads unless told otherwise. */
  readonly loads?: string
  /** What stands on the command line without an option, as its usage says: `FOLDER`. Needed where it is named here. */
  readonly operand?: string
  /** Options of its own, beside those that every experiment has. */
  readonly options?: Readonly<Record<string, { readonly type: 'string' | 'boolean' }>>
  readonly run: (options: ExperimentOptions) => Promise<Findings> | Findings
}

export interface ExperimentOptions {
  readonly trace: string | undefined
  /** What stands on the command line without an option; empty for experiments that take none. */
  readonly operand: string
  readonly seeds: readonly number[]
  /** Multiples of a scenario's own load. */
  readonly loads: readonly number[]
  /** Scenarios to run; undefined for all. */
  readonly only: readonly string[] | undefined
  /** How many to look at; undefined for as many as the experiment itself says. */
  readonly sample: number | undefined
  /** Its own options, as far as they were given. */
  readonly given: Readonly<Record<string, string | boolean | undefined>>
  /** Says on a terminal how far it is. */
  readonly progress: (what: string) => void
}

export interface Findings {
  readonly tables: readonly Table[]
  /** In sentences: what was met, what was missed, by how much and why. */
  readonly verdict: readonly string[]
  /** Under which name to store it; absent for the experiment's own. */
  readonly recordAs?: string
  /** Where the experiment's own title does not say which of its results this is. */
  readonly title?: string
}

/** A mistake of whoever runs it is told in one line; only a fault of ours has a stack. */
export async function runExperiment(experiment: Experiment): Promise<void> {
  try {
    await perform(experiment)
  } catch (error) {
    if (!isTold(error)) throw error
    progress('')
    console.error(error.message)
    process.exitCode = 2
  }
}

function isTold(error: unknown): error is Error {
  if (!(error instanceof Error)) return false
  const code = (error as NodeJS.ErrnoException).code ?? ''
  return error.constructor === Error || error instanceof TraceError || code.startsWith('ERR_PARSE_ARGS')
}

async function perform(experiment: Experiment): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: experiment.operand !== undefined,
    options: {
      trace: { type: 'string' },
      seeds: { type: 'string', default: String(experiment.seeds) },
      from: { type: 'string', default: '1' },
      loads: { type: 'string' },
      only: { type: 'string' },
      sample: { type: 'string' },
      json: { type: 'boolean', default: false },
      record: { type: 'boolean', default: false },
      ...experiment.options,
    },
  })
  const given = Object.fromEntries(
    Object.keys(experiment.options ?? {}).map((name) => [name, (values as Record<string, string | boolean>)[name]]),
  )
  if (experiment.operand !== undefined && positionals.length !== 1)
    throw new Error(`usage: node bench/experiments/${experiment.name}.ts ${experiment.operand} [options]`)
  const [operand = ''] = positionals
  const count = Number(values.seeds)
  if (!Number.isInteger(count) || count < 1) throw new Error(`--seeds is ${values.seeds}, not a number of seeds`)
  const from = Number(values.from)
  if (!Number.isInteger(from) || from < 1) throw new Error(`--from is ${values.from}, not the first seed: 1 or more`)
  const seeds = Array.from({ length: count }, (_, index) => from + index)
  const { loads, only } = values
  if (experiment.hasLoads !== true && (loads ?? only) !== undefined)
    throw new Error(`${experiment.name} has no --loads and no --only`)
  const sample = parseSample(experiment, values.sample)
  const startedAt = performance.now()
  const findings = await experiment.run({
    trace: values.trace,
    operand,
    seeds,
    loads: parseLoads(loads ?? experiment.loads ?? '1'),
    only: only?.split(','),
    sample,
    given,
    progress,
  })
  progress('')
  const { title, about } = experiment
  const { recordAs: name = experiment.name, ...found } = findings
  // Paths differ between machines; the file's name says which trace it was.
  const trace = values.trace === undefined ? '' : ` --trace ${basename(values.trace)}`
  const of = experiment.operand === undefined ? '' : ` ${experiment.operand}`
  const which = [
    ` --seeds ${count}`,
    from === 1 ? '' : ` --from ${from}`,
    loads === undefined ? '' : ` --loads ${loads}`,
    only === undefined ? '' : ` --only ${only}`,
    sample === undefined ? '' : ` --sample ${sample}`,
    ...Object.entries(given).map(([option, value]) =>
      value === undefined ? '' : value === true ? ` --${option}` : ` --${option} ${value}`,
    ),
  ].join('')
  const result: Result = {
    name,
    title,
    about,
    script: experiment.name,
    command: `node bench/experiments/${experiment.name}.ts${of}${trace}${which} --record`,
    seeds,
    date: new Date().toISOString().slice(0, 10),
    commit: describeCommit(),
    machine: describeMachine(),
    seconds: Math.round((performance.now() - startedAt) / 1_000),
    ...found,
  }
  console.log(values.json ? JSON.stringify(result, undefined, 1) : renderText(result))
  if (values.record) record(result)
}

function parseSample({ name, hasSample }: Experiment, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (hasSample !== true) throw new Error(`${name} has no --sample`)
  const sample = Number(text)
  if (!Number.isInteger(sample) || sample < 1) throw new Error(`--sample is ${text}, not a number of 1 or more`)
  return sample
}

function parseLoads(text: string): number[] {
  const loads = text.split(',').map(Number)
  if (loads.some((load) => !(load > 0))) throw new Error(`--loads is ${text}, not numbers above 0 with commas between`)
  return loads
}

function progress(what: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${what}`)
}

function record(result: Result): void {
  mkdirSync(RESULTS_FOLDER, { recursive: true })
  writeFileSync(join(RESULTS_FOLDER, `${result.name}.json`), `${JSON.stringify(result, undefined, 1)}\n`)
  writeFileSync(join(RESULTS_FOLDER, `${result.name}.md`), `# ${result.title}\n\n${renderMarkdown(result)}`)
  writeResultsPage()
}

function describeMachine(): string {
  const all = cpus()
  const memoryGb = Math.round(totalmem() / 2 ** 30)
  return `${all[0]?.model.trim() ?? 'unknown'}, ${all.length} cores, ${memoryGb} GB, ${type()} ${release()}, Node ${process.version}`
}

/** What was measured is the commit and whatever differs from it; a copy without a history has none. */
function describeCommit(): string {
  try {
    return commitNow()
  } catch {
    return 'unknown'
  }
}

function commitNow(): string {
  const git = (...args: string[]): string =>
    execFileSync('git', ['-C', import.meta.dirname, ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  const changed = git(
    'status',
    '--porcelain',
    '--',
    ':/',
    ':(top,exclude)bench/results',
    ':(top,exclude)docs/results.md',
  )
  return `${git('rev-parse', '--short=12', 'HEAD')}${changed === '' ? '' : ' with uncommitted changes'}`
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
