import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { textTable } from '../../experiments/kit/render.ts'
import type { Cell } from '../../experiments/kit/result.ts'
import { ARMS, type Arm } from './arms.ts'
import { type Seen, sendPlan } from './client.ts'
import { COLUMNS, type Column, SPIKE } from './plan.ts'
import { Processes } from './processes.ts'

/**
 * Four calm tenants at half of their share and a noisy one at fifteen times that, live before two simulated engines:
 * how many answers are good behind Spillway, behind nginx with limits, and behind a relay without any? Trials of all
 * arms take turns, seed by seed; each has engines of its own and lasts about two minutes.
 *
 *   node bench/load/isolation/run.ts [--seeds N] [--from SEED] [--arms PART,…] [--columns PART,…] [--tree PATH] [--json FILE]
 *
 * `--tree` measures the Spillway of another tree; engines, relay and client are this one's. Quote figures of an idle
 * machine only: the column "lag" says how late requests were sent.
 */
const ROOT = resolve(import.meta.dirname, '../../..')
const ENGINE = ['engine', '--profile', 'h100-llama-70b-tp4', '--model', 'm', '--host', '127.0.0.1', '--port', '0']
const ENGINE_LIMITS = ['--max-seqs', '128', '--max-model-len', '8192', '--stream-interval', '8', '--seed', '1']

interface Trial {
  readonly arm: string
  readonly column: Column
  readonly seed: number
  readonly lagP99Ms: number
  readonly calm: Tally
  /** Requests of calm tenants that arrived in the spike. */
  readonly calmInSpike: Tally
  readonly noisy: Tally
  readonly all: Tally
}

interface Tally {
  readonly sent: number
  readonly good: number
  readonly late: number
  readonly refused: number
  readonly failed: number
}

function tallyOf(seen: readonly Seen[]): Tally {
  const count = (outcome: Seen['outcome']): number => seen.filter((one) => one.outcome === outcome).length
  const [good, late, refused, failed] = [count('good'), count('late'), count('refused'), count('failed')]
  return { sent: seen.length, good, late, refused, failed }
}

async function tryArm(arm: Arm, column: Column, seed: number, tree: string): Promise<Trial> {
  const processes = new Processes()
  const dir = mkdtempSync(join(tmpdir(), 'spillway-isolation-'))
  const stop = async (): Promise<void> => {
    await processes.stop()
    rmSync(dir, { recursive: true, force: true })
  }
  const onSignal = (): void => void stop().then(() => process.exit(130))
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  try {
    const cli = join(ROOT, 'src/cli/cli.ts')
    const startEngine = () => processes.startListening([cli, ...ENGINE, ...ENGINE_LIMITS], dir)
    const engines = [await startEngine(), await startEngine()]
    const urls = await arm.start({ processes, engines, dir, tree })
    const { seen, lagP99Ms } = await sendPlan(urls, column, seed)
    const calm = seen.filter(({ ask }) => ask.tenant !== 'noisy')
    const inSpike = calm.filter(({ ask }) => ask.atS >= SPIKE.fromS && ask.atS < SPIKE.toS)
    const noisy = tallyOf(seen.filter(({ ask }) => ask.tenant === 'noisy'))
    const tallies = { calm: tallyOf(calm), calmInSpike: tallyOf(inSpike), noisy, all: tallyOf(seen) }
    return { arm: arm.name, column, seed, lagP99Ms, ...tallies }
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
    await stop()
  }
}

/** Requests sent later than this say that the machine is too busy for its engines too. */
const LAG_MS_MAX = 50

const percent = ({ good, sent }: Pick<Tally, 'good' | 'sent'>): string => ((100 * good) / Math.max(1, sent)).toFixed(1)

const TABLE_COLUMNS = [
  'column, arm',
  'seed',
  'calm good %',
  'in the spike %',
  'refused',
  'late',
  'noisy good %',
  'all good %',
  'lag p99 ms',
]

const rowOf = (trial: Trial): Cell[] => [
  `${trial.column}, ${trial.arm}`,
  String(trial.seed),
  percent(trial.calm),
  percent(trial.calmInSpike),
  trial.calm.refused,
  trial.calm.late + trial.calm.failed,
  percent(trial.noisy),
  percent(trial.all),
  `${trial.lagP99Ms.toFixed(0)}${trial.lagP99Ms > LAG_MS_MAX ? ' (!)' : ''}`,
]

/** All seeds of an arm together. */
function sumOf(trials: readonly Trial[]): Trial {
  const first = trials[0] as Trial
  const add = (of: (trial: Trial) => Tally): Tally => {
    const sum = (part: keyof Tally): number => trials.reduce((total, trial) => total + of(trial)[part], 0)
    return { sent: sum('sent'), good: sum('good'), late: sum('late'), refused: sum('refused'), failed: sum('failed') }
  }
  return {
    ...first,
    lagP99Ms: Math.max(...trials.map(({ lagP99Ms }) => lagP99Ms)),
    calm: add(({ calm }) => calm),
    calmInSpike: add(({ calmInSpike }) => calmInSpike),
    noisy: add(({ noisy }) => noisy),
    all: add(({ all }) => all),
  }
}

function chosen<Thing>(all: readonly Thing[], nameOf: (thing: Thing) => string, parts: string | undefined): Thing[] {
  const found = all.filter(
    (thing) => parts === undefined || parts.split(',').some((part) => nameOf(thing).includes(part)),
  )
  if (found.length === 0) throw new Error(`there is no ${parts}. Known: ${all.map(nameOf).join('; ')}.`)
  return found
}

async function run(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string', default: '2' },
      from: { type: 'string', default: '1' },
      arms: { type: 'string' },
      columns: { type: 'string' },
      tree: { type: 'string', default: ROOT },
      json: { type: 'string' },
    },
  })
  const arms = chosen(ARMS, ({ name }) => name, values.arms).filter((arm) => {
    const because = arm.missing?.()
    if (because !== undefined) console.error(`left out: ${arm.name}: ${because}`)
    return because === undefined
  })
  const columns = chosen(COLUMNS, (name) => name, values.columns)
  const trials: Trial[] = []
  for (let i = 0; i < Number(values.seeds); i++) {
    const seed = Number(values.from) + i
    for (const column of columns) {
      // Each arm is first, second and third in turn: a machine that gets busier hits all alike.
      for (const [place] of arms.entries()) {
        const trial = await tryArm(arms[(place + i) % arms.length] as Arm, column, seed, resolve(values.tree))
        trials.push(trial)
        console.error(rowOf(trial).join('  '))
      }
    }
  }
  const groups = columns.flatMap((column) =>
    arms.map(({ name }) => trials.filter((trial) => trial.column === column && trial.arm === name)),
  )
  const rows = groups.flatMap((group) => {
    const all = rowOf(sumOf(group))
    all[1] = 'all'
    return group.length === 1 ? group.map(rowOf) : [...group.map(rowOf), all]
  })
  console.log(textTable({ title: 'Good answers beside a noisy tenant', columns: TABLE_COLUMNS, rows }))
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(trials, undefined, 1)}\n`)
}

await run()
