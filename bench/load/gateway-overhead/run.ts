/**
 * What does a gateway add? Direct, nginx, Portkey, a bare relay and Spillway in front of the same fake upstream, side by side.
 *
 * All targets stay up and are driven in turn, round after round, so that drift and neighbours' load hit all alike; figures are
 * compared inside a round. `bench/load/README.md` says how to read the result; `targets.ts` is where to add a target,
 * `slices.ts` a load and `metrics.ts` a figure.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { openArena } from './arena.ts'
import { measureQuietly, type Sample, type Station } from './measure.ts'
import { type Options, parseOptions, USAGE } from './options.ts'
import { descriptorsLimit, isPinned, stolenSeconds, stopAll } from './processes.ts'
import { Progress, showLine } from './progress.ts'
import { describeCommand, describeCommit, describeMachine, type Run, toJson, writeRecord } from './record.ts'
import { renderText } from './report.ts'
import { makeSlices, type Slice } from './slices.ts'
import { findFaults, summarise } from './summary.ts'
import { TARGETS, type Target } from './targets.ts'
import { missingTools, outputOf } from './tools.ts'

interface Choice {
  readonly targets: readonly Target[]
  readonly skipped: readonly string[]
}

/** Without --only, what cannot run is left out and said; with it, that is an error. */
function chooseTargets(options: Options): Choice {
  const unknown = options.only.filter((name) => !TARGETS.some((target) => target.name === name))
  if (unknown.length > 0)
    throw new Error(`no target "${unknown.join(', ')}"; there are ${TARGETS.map((t) => t.name).join(', ')}`)
  const isWanted = (target: Target): boolean =>
    options.only.length === 0 || target.name === 'direct' || options.only.includes(target.name)
  const targets: Target[] = []
  const skipped: string[] = []
  for (const target of TARGETS.filter(isWanted)) {
    const reason = target.missing()
    if (reason === undefined) targets.push(target)
    else if (options.only.length > 0) throw new Error(`${target.name}: ${reason}`)
    else skipped.push(`${target.name}: ${reason}`)
  }
  return { targets, skipped }
}

/** A proxy needs two descriptors a stream, and some for itself. */
function checkDescriptors(options: Options): void {
  const limit = descriptorsLimit()
  const needed = options.streams * 2 + 1000
  if (options.heldRounds > 0 && limit < needed)
    throw new Error(
      `${options.streams} open streams need ${needed} open files, the limit is ${limit}: raise it (ulimit -Hn), or pass --streams ${Math.floor((limit - 1000) / 2)}`,
    )
}

/** Each round begins with another target, so that none always runs first. */
const rotated = (stations: readonly Station[], round: number): readonly Station[] =>
  stations.map((_, i) => stations[(i + round) % stations.length] as Station)

interface Step {
  readonly round: number
  readonly slice: Slice
  readonly station: Station
}

function planSteps(options: Options, slices: readonly Slice[], stations: readonly Station[]): readonly Step[] {
  const steps: Step[] = []
  for (const kind of ['short', 'held'] as const) {
    const rounds = kind === 'short' ? options.rounds : options.heldRounds
    for (let round = 0; round < rounds; round++)
      for (const slice of slices.filter((s) => s.kind === kind))
        for (const station of rotated(stations, round)) steps.push({ round, slice, station })
  }
  return steps
}

async function runAll(options: Options, choice: Choice, dir: string): Promise<Run> {
  const slices = makeSlices(options)
  for (const target of choice.targets) target.prepare?.()
  const arena = await openArena(choice.targets, dir, showLine)
  const steps = planSteps(options, slices, arena.stations)
  const progress = new Progress(steps.reduce((sum, step) => sum + step.slice.secondsExpected, 0))
  const [begunAt, stolenBefore, loadBefore] = [performance.now(), stolenSeconds(), loadavg()[0] ?? 0]
  const samples: Sample[] = []
  for (const { round, slice, station } of steps) {
    progress.show(`round ${round + 1}  ${slice.name}  ${station.name}`)
    samples.push(await measureQuietly(arena.client, station, slice, round))
    progress.advance(slice.secondsExpected)
  }
  showLine('')
  return {
    date: new Date().toISOString().slice(0, 16).replace('T', ' ').concat(' UTC'),
    commit: describeCommit(),
    command: describeCommand(process.argv.slice(2)),
    machine: describeMachine(),
    versions: choice.targets
      .filter((target) => target.name !== 'direct')
      .map((target) => ({ target: target.name, version: target.version(), about: target.about })),
    rounds: slices.some((slice) => slice.kind === 'short') ? options.rounds : 0,
    heldRounds: slices.some((slice) => slice.kind === 'held') ? options.heldRounds : 0,
    streams: options.streams,
    slices,
    noise: {
      wallSeconds: (performance.now() - begunAt) / 1000,
      stolenSeconds: stolenSeconds() - stolenBefore,
      repeats: samples.reduce((sum, sample) => sum + sample.attempts - 1, 0),
      loadBefore,
      loadAfter: loadavg()[0] ?? 0,
    },
    idleMb: arena.idleMb,
    rows: summarise(samples),
    faults: findFaults(samples),
    skipped: choice.skipped,
    samples,
  }
}

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2))
  if (options === undefined) {
    console.log(USAGE)
    return
  }
  const missing = missingTools()
  if (missing.length > 0) throw new Error(missing.join('\n'))
  checkDescriptors(options)
  const choice = chooseTargets(options)
  const dir = mkdtempSync(join(tmpdir(), 'gateway-overhead-'))
  const cleanUp = async (): Promise<void> => {
    showLine('')
    await stopAll()
    rmSync(dir, { recursive: true, force: true })
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void cleanUp().finally(() => process.exit(130)))
  // This process sleeps most of the time; what it does must not fall on the proxy's core.
  if (isPinned) outputOf(['taskset', '-cp', '1', String(process.pid)])
  try {
    const run = await runAll(options, choice, dir)
    console.log(options.json ? toJson(run) : renderText(run))
    if (options.record) for (const path of writeRecord(run)) console.error(`wrote ${path}`)
  } finally {
    await cleanUp()
  }
}

await main().catch((error: unknown) => {
  console.error(`${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
})
