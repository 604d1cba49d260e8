/** One slice on one target: what the client saw, what the target's processes spent. */
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuSeconds, type Memory, residentMemory } from './process-tree.ts'
import { type Running, runToEnd, stolenSeconds } from './processes.ts'
import type { Slice } from './slices.ts'
import { BENCH_KEY } from './targets.ts'

export interface Quantiles {
  readonly count: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly max: number
}

/** What the load client prints. Times in microseconds. */
export interface ClientResult {
  readonly seconds: number
  readonly ok: number
  /** Answered, but not as asked; the first of them is in badStatus and badBody. */
  readonly bad: number
  /** Connections refused or broken. */
  readonly errors: number
  /** Still open when the time was over. */
  readonly unfinished: number
  readonly frames: number
  /** Frames that an opened stream owed and that never came. */
  readonly lost: number
  readonly disordered: number
  /** Opened streams without a final [DONE]. */
  readonly undone: number
  /** Streams that were refused or not even accepted. */
  readonly unopened: number
  /** Most streams that were open at once, each with its first frame received. */
  readonly heldMax: number
  readonly badStatus: number
  readonly badBody: string
  readonly latencyUs: Quantiles
  readonly firstFrameUs: Quantiles
  readonly lagUs: Quantiles
}

export interface Sample {
  readonly round: number
  readonly slice: string
  readonly target: string
  readonly client: ClientResult
  /** Absent for direct, which has no process in between. */
  readonly proxy?: { readonly cpuSeconds: number; readonly busyRatio: number; readonly memoryMax: Memory }
  /** Share of the machine that the host gave to others meanwhile: noise that hits all targets alike, given enough rounds. */
  readonly stolenRatio: number
  /** How many attempts it took to get a quiet one; see measureQuietly. */
  readonly attempts: number
}

/** A target that is up. */
export interface Station {
  readonly name: string
  readonly port: number
  readonly headers: readonly string[]
  readonly running?: Running
}

const MEMORY_EVERY_MS = 250
/** Lets the last closes and writes of one slice finish before the next begins. */
const SETTLE_MS = 80

export class LoadClient {
  readonly #program: string
  readonly #dir: string

  constructor(program: string, dir: string) {
    this.#program = program
    this.#dir = dir
  }

  async run(station: Pick<Station, 'port' | 'headers'>, args: readonly string[]): Promise<ClientResult> {
    const headers = station.headers.flatMap((header) => ['-H', header])
    const command = [this.#program, '-p', String(station.port), '-a', BENCH_KEY, ...headers, ...args]
    return JSON.parse(await runToEnd(command, this.#dir)) as ClientResult
  }
}

const larger = (a: Memory, b: Memory): Memory => ({
  processMb: Math.max(a.processMb, b.processMb),
  treeMb: Math.max(a.treeMb, b.treeMb),
})

async function measureOnce(client: LoadClient, station: Station, slice: Slice, round: number): Promise<Sample> {
  const pid = station.running?.pid
  const stolenBefore = stolenSeconds()
  const cpuBefore = pid === undefined ? 0 : cpuSeconds(pid)
  const begunAt = performance.now()
  let memoryMax: Memory = { processMb: 0, treeMb: 0 }
  const watch = setInterval(() => {
    if (pid !== undefined) memoryMax = larger(memoryMax, residentMemory(pid))
  }, MEMORY_EVERY_MS)
  try {
    const result = await client.run(station, slice.args)
    const wallSeconds = (performance.now() - begunAt) / 1000
    const sample = {
      round,
      slice: slice.name,
      target: station.name,
      client: result,
      stolenRatio: (stolenSeconds() - stolenBefore) / wallSeconds / availableParallelism(),
      attempts: 1,
    }
    if (pid === undefined) return sample
    const spent = cpuSeconds(pid) - cpuBefore
    memoryMax = larger(memoryMax, residentMemory(pid))
    return { ...sample, proxy: { cpuSeconds: spent, busyRatio: spent / wallSeconds, memoryMax } }
  } finally {
    clearInterval(watch)
    await sleep(SETTLE_MS)
  }
}

/** A slice from which the host took more than this is measured again: its figures would be the neighbours', not the target's. */
const STOLEN_RATIO_MAX = 0.1
/** Bounded: on a machine that is never quiet, the quietest of three has to do. */
const ATTEMPTS_MAX = 3

/** The choice looks only at what the host took, never at the figures, so it favours no target. */
export async function measureQuietly(
  client: LoadClient,
  station: Station,
  slice: Slice,
  round: number,
): Promise<Sample> {
  let best = await measureOnce(client, station, slice, round)
  const attemptsMax = slice.kind === 'held' ? 1 : ATTEMPTS_MAX
  for (let attempts = 2; attempts <= attemptsMax && best.stolenRatio > STOLEN_RATIO_MAX; attempts++) {
    const next = await measureOnce(client, station, slice, round)
    best = { ...(next.stolenRatio < best.stolenRatio ? next : best), attempts }
  }
  return best
}
