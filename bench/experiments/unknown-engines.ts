import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { gpuProfileNames } from '../../src/engine/gpu-profiles.ts'
import { type ExperimentOptions, type Findings, runExperiment } from './kit/experiment.ts'
import type { Cell, Table } from './kit/result.ts'
import { drawProfiles } from './unknown-engines/drawn-profiles.ts'
import {
  EngineTrial,
  type EngineUnderTrial,
  FIXED_LIMITS,
  type FixedNumber,
  POLICIES,
  type PolicyName,
  type Seen,
} from './unknown-engines/engine-trial.ts'

/**
 * Is an engine of which nothing is declared used as well as one that is described, or whose limit was tuned by hand?
 *
 * Its own options: `--only REGEXP,…` engines whose names fit, `--loads 0.6,2.2`, `--quick` half the time and one engine of
 * four, `--minutes N` begins no engine after that long (and says which are missing).
 */
const CALM_LOAD = 0.6
const WANTED_RATIO = 0.97
const DRAWN = { count: 5, seed: 7 }
const CAPACITY_SEEDS_MAX = 3
const MINUTES_MAX = 240
/** Whose coefficients drift, in tenths, while it is measured. */
const SLOWER = [1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2]
const DRIFTS: readonly EngineUnderTrial[] = [
  { name: 'drifts to half its speed', profile: 'h100-llama-8b', drift: SLOWER },
  { name: 'drifts to twice its speed', profile: 'h100-llama-8b', drift: SLOWER.toReversed() },
]

interface Row {
  readonly engine: EngineUnderTrial
  readonly load: number
  readonly perS: number
  readonly limit: FixedNumber
  readonly promise: string
  readonly seen: ReadonlyMap<PolicyName, Seen>
  /** Good answers of the hidden engine, of the better of told and the best fixed limit. */
  readonly ratio: number
}

async function run({ seeds, loads, only, given, progress }: ExperimentOptions): Promise<Findings> {
  const folder = mkdtempSync(join(tmpdir(), 'unknown-engines-'))
  try {
    const isQuick = given['quick'] === true
    const engines = chosenEngines(folder, only, isQuick)
    const minutes = Number(given['minutes'] ?? MINUTES_MAX)
    const startedAt = performance.now()
    const rows: Row[] = []
    const missing: string[] = []
    for (const [index, engine] of engines.entries()) {
      const tookMs = performance.now() - startedAt
      if (tookMs > minutes * 60_000) missing.push(engine.name)
      else {
        const leftMin = index === 0 ? '?' : Math.ceil(((tookMs / index) * (engines.length - index)) / 60_000)
        progress(`${index + 1} of ${engines.length}, about ${leftMin} minutes left: ${engine.name}`)
        for await (const row of trial(engine, loads, seeds, isQuick ? 0.5 : 1)) {
          rows.push(row)
          // A run of an hour says what it has found so far.
          process.stderr.write(`\r\x1b[K${lineOf(row)}\n`)
        }
      }
    }
    return { tables: tablesOf(loads, rows), verdict: verdictOf(rows, missing) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function chosenEngines(folder: string, only: readonly string[] | undefined, isQuick: boolean): EngineUnderTrial[] {
  const builtIn = gpuProfileNames().map((name) => ({ name, profile: name }))
  const drawn = drawProfiles(DRAWN.count, DRAWN.seed, folder).map((profile) => ({
    name: basename(profile, '.json'),
    profile,
  }))
  const all = [...builtIn, ...drawn, ...DRIFTS]
  if (only !== undefined) return all.filter(({ name }) => only.some((part) => new RegExp(part).test(name)))
  return isQuick ? all.filter((_, index) => index % 4 === 0) : all
}

async function* trial(engine: EngineUnderTrial, loads: readonly number[], seeds: readonly number[], shorter: number) {
  const one = new EngineTrial(engine, shorter)
  const { perS, limit } = await one.capacity(seeds.slice(0, CAPACITY_SEEDS_MAX))
  for (const load of loads) {
    const seen = new Map<PolicyName, Seen>()
    for (const policy of POLICIES) seen.set(policy, await one.seen(policy, load * perS, seeds))
    const others = POLICIES.filter((policy) => policy !== 'hidden').map((policy) => seen.get(policy)!.good)
    const ratio = seen.get('hidden')!.good / Math.max(...others)
    yield { engine, load, perS, limit, promise: one.promise, seen, ratio } satisfies Row
  }
}

const bestFixed = ({ seen }: Row): FixedNumber =>
  FIXED_LIMITS.reduce<FixedNumber>(
    (best, limit) => (seen.get(limit)!.good > seen.get(best)!.good ? limit : best),
    FIXED_LIMITS[0],
  )

function lineOf(row: Row): string {
  const { engine, load, perS, ratio, seen } = row
  const of = (policy: PolicyName): string => {
    const { good, refused, late, ttftP95Ms } = seen.get(policy)!
    return `${policy} ${(100 * good).toFixed(1)} % (${refused.toFixed(1)} refused, ${late.toFixed(1)} late, p95 ${ttftP95Ms.toFixed(0)})`
  }
  const told = `${of('hidden')}, ${of('told')}, ${of(bestFixed(row))}, ${of(256)}`
  return `${ratio < WANTED_RATIO ? '! ' : '  '}${engine.name.padEnd(24)} ${load} × ${perS.toFixed(1)}/s ratio ${ratio.toFixed(3)}: ${told}`
}

const COLUMNS = [
  'engine',
  'capacity/s',
  'promise: first token / next, ms',
  'hidden, good %',
  'told',
  'best fixed limit',
  'its good %',
  'hidden ÷ better',
  'engine’s work %: hidden',
  'the better',
  'refused: hidden',
  'told',
  'p95 first token ms: hidden',
  'told',
  'fixed 256',
]

function tablesOf(loads: readonly number[], rows: readonly Row[]): Table[] {
  return loads.map((load) => ({
    title: `${load} × capacity`,
    columns: COLUMNS,
    rows: rows.filter((row) => row.load === load).map(cellsOf),
  }))
}

function cellsOf(row: Row): Cell[] {
  const { engine, perS, promise, seen, ratio } = row
  const [hidden, told, wide] = [seen.get('hidden')!, seen.get('told')!, seen.get(256)!]
  const limit = bestFixed(row)
  return [
    engine.name,
    perS,
    promise,
    100 * hidden.good,
    100 * told.good,
    String(limit),
    100 * seen.get(limit)!.good,
    ratio.toFixed(3),
    100 * hidden.work,
    100 * (told.good > seen.get(limit)!.good ? told : seen.get(limit)!).work,
    hidden.refused,
    told.refused,
    hidden.ttftP95Ms,
    told.ttftP95Ms,
    wide.ttftP95Ms,
  ]
}

function verdictOf(rows: readonly Row[], missing: readonly string[]): string[] {
  const name = ({ engine, load, ratio }: Row): string => `${engine.name} at ${load} ×: ${ratio.toFixed(3)}`
  const short = rows.filter(({ ratio }) => ratio < WANTED_RATIO)
  const worst = rows.reduce<Row | undefined>(
    (low, row) => (low === undefined || row.ratio < low.ratio ? row : low),
    undefined,
  )
  const calm = rows.filter(({ load, engine }) => load === CALM_LOAD && engine.drift === undefined)
  const refusing = calm.filter(({ seen }) => seen.get('hidden')!.refused + seen.get('told')!.refused > 0)
  const slower = calm.filter(({ seen }) => seen.get('hidden')!.ttftP95Ms > 1.1 * seen.get(256)!.ttftP95Ms)
  const words = (list: readonly Row[], text: (row: Row) => string): string =>
    list.length === 0 ? 'met' : `missed by ${list.length}: ${list.map(text).join('; ')}`
  return [
    `At least ${100 * WANTED_RATIO} % of the better of told and fixed, ${rows.length} engines and loads: ${words(short, name)}.${worst === undefined ? '' : ` Least: ${name(worst)}.`}`,
    `Nothing refused at ${CALM_LOAD} ×, hidden or told: ${words(refusing, ({ engine, seen }) => `${engine.name} ${seen.get('hidden')!.refused.toFixed(1)} and ${seen.get('told')!.refused.toFixed(1)}`)}.`,
    `First token at p95 at ${CALM_LOAD} × within 10 % of the fixed limit of 256: ${words(slower, ({ engine, seen }) => `${engine.name} ${seen.get('hidden')!.ttftP95Ms.toFixed(0)} against ${seen.get(256)!.ttftP95Ms.toFixed(0)} ms`)}.`,
    ...(missing.length === 0 ? [] : [`Not reached in time: ${missing.join(', ')}.`]),
  ]
}

await runExperiment({
  name: 'unknown-engines',
  title: 'Engines of which nothing is declared',
  about:
    'Chat-like requests to one replica whose profile the gateway is not told (*hidden*): every built-in profile, five that were drawn at random and are like none of them, and two whose speed drifts by a factor of two while it is measured (their capacity is that of the faster end). Beside it the same engine with its true step times (*told*), and with fixed limits of 32, 64, 128, 192 and 256. Capacity is the highest rate of which some fixed limit serves 99 % within the promise; the promise is a first token within 1 s and the others within 60 ms, or, for slower engines, twenty times what 1,000 tokens take to read and three times a step alone. The first 10 s are not counted. *Work* is of what a full engine does: where it is equal, more good answers are shorter ones. Good would be: at least 97 % of the good answers of the better of the others, nothing refused at 0.6 ×, and there a first token that is at most 10 % later at the 95th percentile than with the fixed limit of 256.',
  seeds: 1,
  hasLoads: true,
  loads: '0.6,0.9,1.3,2.2',
  options: { minutes: { type: 'string' }, quick: { type: 'boolean' } },
  run,
})
