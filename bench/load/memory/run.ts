/**
 * Where is the memory? A server of this project, idle and with many streams open, with its memory split up:
 *
 *   file       pages of Node's own file and of libraries, which other Node processes share
 *   used       what V8's heap holds: what lives, and garbage that waits for a collection
 *   slack      what V8 holds beside that, for the most part the other half of the young generation
 *   buffers    what V8 knows of outside its heap: bytes read and to be written
 *   other      everything else: the compiler's memory, what malloc keeps of what was freed
 *
 *   node bench/load/memory/run.ts                   idle, warm, then with 5,000 streams; about a minute
 *   node bench/load/memory/run.ts --streams 10000
 *   node bench/load/memory/run.ts --tree DIR        another checkout of the project
 *
 * Linux, a C compiler, `taskset`.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { LoadClient, type Station } from '../gateway-overhead/measure.ts'
import { cpuSeconds } from '../gateway-overhead/process-tree.ts'
import { descriptorsLimit, type Running, start, stopAll } from '../gateway-overhead/processes.ts'
import { HELD_OPENED_PER_SECOND, makeSlices } from '../gateway-overhead/slices.ts'
import { TARGETS } from '../gateway-overhead/targets.ts'
import { compilePrograms, takeFreePort } from '../gateway-overhead/tools.ts'

interface HeapReport {
  readonly heapBytes: number
  readonly usedBytes: number
  readonly externalBytes: number
}

/** How long a server may take to answer for the first time, and to report. */
const WITHIN_MS = 20_000
const ASK_EVERY_MS = 50
/** After the first answer, what a start began in the background is over. */
const REST_MS = 1_000

/** Whole answers and streams, as in `gateway-overhead`: V8 compiles most in the first tens of thousands. */
const WARM_UP = ['-c 64 -n 100000 -t 25', '-c 16 -n 4000 -t 5 -s -k 50 -i 0']

const { values } = parseArgs({
  options: { streams: { type: 'string', default: '5000' }, tree: { type: 'string', default: '.' } },
})

const mb = (bytes: number): string => (bytes / 1e6).toFixed(0).padStart(6)

function residentOf(pid: number): { readonly rss: number; readonly file: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const bytesOf = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) * 1024
  return { rss: bytesOf('VmRSS'), file: bytesOf('RssFile') }
}

const reportsOf = ({ stderrPath }: Running): string[] =>
  readFileSync(stderrPath, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('heap-report '))

async function show(what: string, server: Running): Promise<void> {
  const { rss, file } = residentOf(server.pid)
  const before = reportsOf(server).length
  process.kill(server.pid, 'SIGWINCH')
  const giveUpAt = performance.now() + WITHIN_MS
  while (reportsOf(server).length === before) {
    if (performance.now() > giveUpAt) throw new Error('the server does not report its heap')
    await sleep(ASK_EVERY_MS)
  }
  const line = reportsOf(server).at(-1)?.slice('heap-report '.length) ?? ''
  const { heapBytes, usedBytes, externalBytes } = JSON.parse(line) as HeapReport
  const other = rss - file - heapBytes - externalBytes
  console.log(
    `${what.padEnd(16)}${mb(rss)}${mb(file)}${mb(usedBytes)}${mb(heapBytes - usedBytes)}${mb(externalBytes)}${mb(other)}`,
  )
}

async function waitUntilReady(client: LoadClient, station: Station): Promise<void> {
  const giveUpAt = performance.now() + WITHIN_MS
  for (;;) {
    const { ok } = await client.run(station, ['-c', '1', '-n', '1', '-t', '2', '-g', '2'])
    if (ok === 1) return
    if (performance.now() > giveUpAt) throw new Error('the server gave no good answer')
    await sleep(ASK_EVERY_MS)
  }
}

async function main(dir: string): Promise<void> {
  const streams = Number(values.streams)
  const spillway = TARGETS.find(({ name }) => name === 'spillway')
  const programs = compilePrograms(dir)
  const client = new LoadClient(programs.client, dir)
  const [upstreamPort, port] = [await takeFreePort(), await takeFreePort()]
  start('load', 'fake-upstream', [programs.upstream, String(upstreamPort)], dir)
  const place = { port, upstreamPort, dir, descriptorsMax: descriptorsLimit() }
  const [node, , ...rest] = spillway?.command?.(place) ?? []
  const preload = join(import.meta.dirname, 'heap-report.ts')
  const bin = join(resolve(values.tree), 'bin/spillway.mjs')
  const server = start('proxy', 'spillway', [node as string, '--import', preload, bin, ...rest], dir)
  const station = { name: 'spillway', port, headers: [], running: server }
  await waitUntilReady(client, station)
  console.log(`ready after ${cpuSeconds(server.pid).toFixed(2)} s of CPU time\n`)
  await sleep(REST_MS)
  console.log(`MB${' '.repeat(14)}   RSS  file  used slack  buf. other`)
  await show('idle', server)
  for (const args of WARM_UP) await client.run(station, args.split(' '))
  await show('warm', server)
  const options = { rounds: 0, heldRounds: 1, streams, durationRatio: 1, only: [], slices: ['sse-held'] }
  const [held] = makeSlices({ ...options, json: false, record: false })
  if (held === undefined) throw new Error('no slice with open streams')
  // All are open from the last one's beginning to the first one's end; the memory is read a second before that.
  const openMs = (held.secondsExpected - streams / HELD_OPENED_PER_SECOND - 1) * 1000
  const opened = client.run(station, held.args)
  await sleep(openMs)
  await show(`${streams} streams`, server)
  const { heldMax, lost, bad, errors } = await opened
  console.log(`\n${heldMax} streams open at once, ${lost} frames lost, ${bad + errors} refused or broken`)
  await sleep(REST_MS)
  await show('after them', server)
}

const dir = mkdtempSync(join(tmpdir(), 'memory-'))
const cleanUp = async (): Promise<void> => {
  await stopAll()
  rmSync(dir, { recursive: true, force: true })
}
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void cleanUp().finally(() => process.exit(130)))
try {
  await main(dir)
} finally {
  await cleanUp()
}
