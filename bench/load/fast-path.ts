/**
 * What does the fast path save? Two gateways, one with `server.fastPath` on and one with it off, under the same load in
 * turn: CPU time of a whole answer (64 connections) and of a relayed frame (200 streams).
 *
 *   node bench/load/fast-path.ts [rounds]      40 rounds by default, about four minutes
 *
 * Slices are short and many, so that whatever else the machine does meanwhile meets both sides alike.
 *
 * The sign test asks how often chance alone would make one side win this many rounds.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openArena } from './gateway-overhead/arena.ts'
import { measureQuietly, type Sample } from './gateway-overhead/measure.ts'
import { parseOptions } from './gateway-overhead/options.ts'
import { stopAll } from './gateway-overhead/processes.ts'
import { showLine } from './gateway-overhead/progress.ts'
import { makeSlices } from './gateway-overhead/slices.ts'
import { spillwayTarget } from './gateway-overhead/targets.ts'

const rounds = Number(process.argv[2] ?? 40)
/** Of the length of the slices in `gateway-overhead`. */
const SLICE_RATIO = 0.4
const FIGURES = [
  { slice: 'json-c64', what: 'a whole answer, 64 connections', count: ({ client }: Sample) => client.ok },
  { slice: 'sse-paced', what: 'a relayed frame, 200 streams', count: ({ client }: Sample) => client.frames },
] as const

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
const shown = (values: readonly number[]): string =>
  `${median(values).toFixed(1)} (${Math.min(...values).toFixed(1)}–${Math.max(...values).toFixed(1)})`

/** Both sides of the binomial distribution with an even coin. */
function signTest(wins: number, of: number): number {
  let ways = 1
  let tail = 0
  for (let k = 0; k <= Math.min(wins, of - wins); k++) {
    tail += ways
    ways = (ways * (of - k)) / (k + 1)
  }
  return Math.min(1, (2 * tail) / 2 ** of)
}

const dir = mkdtempSync(join(tmpdir(), 'spillway-fast-path-'))
try {
  const targets = [
    spillwayTarget('on', 'fast path', { server: ', fastPath: true' }),
    spillwayTarget('off', 'node:http alone', { server: ', fastPath: false' }),
  ]
  const { client, stations } = await openArena(targets, dir, showLine)
  const options = parseOptions(['--slices', FIGURES.map(({ slice }) => slice).join(',')])
  if (options === undefined) throw new Error('no options')
  const slices = makeSlices({ ...options, durationRatio: SLICE_RATIO })
  const samples: Sample[] = []
  for (let round = 0; round < rounds; round++) {
    for (const slice of slices) {
      for (const station of round % 2 === 0 ? stations : stations.toReversed()) {
        showLine(`round ${round + 1} of ${rounds}  ${slice.name}  ${station.name}`)
        samples.push(await measureQuietly(client, station, slice, round))
      }
    }
  }
  showLine('')
  for (const { slice, what, count } of FIGURES) {
    const costs = (target: string): number[] =>
      samples
        .filter((sample) => sample.slice === slice && sample.target === target)
        .map((sample) => ((sample.proxy?.cpuSeconds ?? Number.NaN) / count(sample)) * 1e6)
    const [on, off] = [costs('on'), costs('off')]
    const ratios = on.map((cost, round) => cost / (off[round] ?? Number.NaN))
    const wins = ratios.filter((ratio) => ratio < 1).length
    console.log(`${what}: on ${shown(on)} µs, off ${shown(off)} µs CPU`)
    console.log(
      `  on ÷ off ${ratios.length > 0 ? median(ratios).toFixed(3) : '-'} (${Math.min(...ratios).toFixed(3)}–${Math.max(...ratios).toFixed(3)}), on was cheaper in ${wins} of ${ratios.length} rounds, p = ${signTest(wins, ratios.length).toPrecision(2)}`,
    )
  }
  for (const { target, slice, round, client: seen } of samples) {
    if (seen.bad + seen.errors === 0) continue
    const first = seen.bad > 0 ? `, the first ${seen.badStatus} ${seen.badBody.slice(0, 300)}` : ''
    console.log(
      `${target}, ${slice}, round ${round + 1}: ${seen.errors} broken connections, ${seen.bad} bad answers${first}`,
    )
  }
} finally {
  await stopAll()
  rmSync(dir, { recursive: true, force: true })
}
