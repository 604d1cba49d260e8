/**
 * What does a request cost while the load goes on?
 *
 * `run.ts` takes slices of 1.5 s in turn, so that all targets see the same machine. A process that waited for the others
 * begins each slice with cold caches, and V8 optimises a platform for ten seconds and more: those figures are of traffic
 * that comes and goes. Here each target has the load for itself, one after the other, for this long without a pause; the
 * figure is the CPU time of a request in the second half, beside nginx in the same run.
 *
 *   node bench/load/gateway-overhead/steady.ts [--only nginx,relay,spillway,fast-path] [--seconds 30] [--rounds 2]
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openArena } from './arena.ts'
import { cpuSeconds } from './process-tree.ts'
import { stolenSeconds, stopAll } from './processes.ts'
import { TARGETS, type Target } from './targets.ts'

const SLICE_S = 2
const LOAD = `-c 64 -n 10000000 -t ${SLICE_S}`.split(' ')

/** Read first of all: what is wrong is told before anything is started. */
function readOptions(): { targets: Target[]; slices: number; rounds: number } {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: 'nginx,relay,spillway,fast-path' },
      seconds: { type: 'string', default: '30' },
      rounds: { type: 'string', default: '2' },
    },
  })
  const [seconds, rounds] = [Number(values.seconds), Number(values.rounds)]
  if (!(seconds >= 2 * SLICE_S)) throw new Error(`--seconds is ${values.seconds}, not a number from ${2 * SLICE_S} on`)
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error(`--rounds is ${values.rounds}, not a number of rounds`)
  const known = TARGETS.filter((target) => target.command !== undefined)
  const targets = values.only.split(',').map((name) => {
    const target = known.find((each) => each.name === name)
    if (target === undefined) throw new Error(`no target "${name}"; there are ${known.map((t) => t.name).join(', ')}`)
    const why = target.missing()
    if (why !== undefined) throw new Error(why)
    return target
  })
  return { targets, slices: Math.round(seconds / SLICE_S), rounds }
}

/** Microseconds of CPU a request, slice by slice. */
async function costs(target: Target, slices: number): Promise<number[]> {
  const dir = await mkdtemp(join(tmpdir(), 'spillway-steady-'))
  try {
    const { client, stations } = await openArena([target], dir, () => {}, [])
    const [station] = stations
    const pid = station?.running?.pid
    if (station === undefined || pid === undefined) throw new Error(`${target.name} is no process`)
    const seen: number[] = []
    for (let i = 0; i < slices; i++) {
      const before = cpuSeconds(pid)
      const { ok } = await client.run(station, LOAD)
      seen.push(((cpuSeconds(pid) - before) / ok) * 1e6)
    }
    return seen
  } finally {
    await stopAll()
    await rm(dir, { recursive: true, force: true })
  }
}

const median = (numbers: readonly number[]): number => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] as number

async function main(): Promise<void> {
  const { targets, slices, rounds } = readOptions()
  for (const target of targets) target.prepare?.()
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void stopAll().finally(() => process.exit(130)))
  const stolen = stolenSeconds()
  const late = new Map<string, number[]>()
  console.log(`µs of CPU a request, 64 connections, slices of ${SLICE_S} s without a pause`)
  for (let round = 1; round <= rounds; round++)
    for (const target of targets) {
      const seen = await costs(target, slices)
      late.set(target.name, [...(late.get(target.name) ?? []), median(seen.slice(slices >> 1))])
      console.log(
        `${String(round).padStart(2)}  ${target.name.padEnd(10)} ${seen.map((us) => us.toFixed(0)).join(' ')}`,
      )
    }
  const nginx = late.get('nginx')
  for (const [name, figures] of late) {
    const ratios = figures.map((us, round) => (nginx?.[round] ?? Number.NaN) / us)
    const beside =
      name === 'nginx' || nginx === undefined ? '' : `, ${ratios.map((r) => r.toFixed(2)).join(' / ')} × nginx`
    console.log(
      `    ${name.padEnd(10)} ${figures.map((us) => us.toFixed(0)).join(' / ')} µs in the second half${beside}`,
    )
  }
  console.log(`    the host took ${(stolenSeconds() - stolen).toFixed(1)} CPU-seconds meanwhile`)
}

await main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : String(error))
  process.exitCode = 1
})
