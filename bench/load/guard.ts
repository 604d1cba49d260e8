/**
 * Has the hot path become slower since the last recorded run?
 *
 * Runs Spillway and the bare relay of `gateway-overhead` in turn, under two minutes, and compares their ratio with the
 * recorded one: machines differ and are busy, but both see the same machine. It is no test and fails no build; a ratio
 * outside the recorded spread is worth a look.
 *
 *   npm run bench:guard               compare with bench/results/guard.json
 *   npm run bench:guard -- --record   and write this run there
 */
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Sample } from './gateway-overhead/measure.ts'

const RECORD = join(import.meta.dirname, '../results/guard.json')
const RUN = join(import.meta.dirname, 'gateway-overhead/run.ts')
const ARGS = '--only relay,spillway --slices json-c64,sse-paced --rounds 5 --held-rounds 0 --json'.split(' ')

interface Ratio {
  readonly what: string
  readonly median: number
  readonly min: number
  readonly max: number
}

interface Guarded {
  readonly commit: string
  readonly date: string
  readonly ratios: readonly Ratio[]
}

/** CPU time of one request, or of one relayed frame. */
const FIGURES = [
  { what: 'a request, 64 connections', slice: 'json-c64', count: ({ client }: Sample) => client.ok },
  { what: 'a relayed frame, 200 streams', slice: 'sse-paced', count: ({ client }: Sample) => client.frames },
] as const

function measure(): Promise<{ commit: string; date: string; samples: Sample[] }> {
  const child = spawn(process.execPath, [RUN, ...ARGS], { stdio: ['ignore', 'pipe', 'inherit'] })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => child.kill(signal))
  let text = ''
  child.stdout.on('data', (part: Buffer) => {
    text += part.toString()
  })
  return new Promise((resolve, reject) => {
    child.on('close', (code) => {
      if (code === 0) resolve(JSON.parse(text))
      else reject(new Error(`the measurement ended with ${code}`))
    })
  })
}

function ratiosOf(samples: readonly Sample[]): Ratio[] {
  return FIGURES.map(({ what, slice, count }) => {
    const costOf = (target: string, round: number): number => {
      const sample = samples.find((s) => s.slice === slice && s.target === target && s.round === round)
      return sample?.proxy === undefined ? Number.NaN : sample.proxy.cpuSeconds / count(sample)
    }
    const rounds = [...new Set(samples.map(({ round }) => round))]
    const ratios = rounds.map((round) => costOf('spillway', round) / costOf('relay', round)).sort((a, b) => a - b)
    return { what, median: ratios[ratios.length >> 1]!, min: ratios[0]!, max: ratios.at(-1)! }
  })
}

function recorded(): Guarded | undefined {
  try {
    return JSON.parse(readFileSync(RECORD, 'utf8')) as Guarded
  } catch {
    return undefined
  }
}

function verdict(now: Ratio, before: Ratio | undefined): string {
  if (before === undefined) return 'nothing recorded'
  if (now.median > before.max) return `SLOWER than recorded (${shown(before)})`
  if (now.median < before.min) return `faster than recorded (${shown(before)})`
  return `as recorded (${shown(before)})`
}

const shown = ({ median, min, max }: Ratio): string => `${median.toFixed(2)}, ${min.toFixed(2)}–${max.toFixed(2)}`

const { commit, date, samples } = await measure()
const ratios = ratiosOf(samples)
const before = recorded()
console.log('CPU time of Spillway ÷ bare relay, median and spread of 5 alternating rounds')
for (const ratio of ratios) {
  const known = before?.ratios.find(({ what }) => what === ratio.what)
  console.log(`  ${ratio.what.padEnd(32)}${shown(ratio).padEnd(20)}${verdict(ratio, known)}`)
}
if (before !== undefined) console.log(`recorded: ${before.commit}, ${before.date}`)
if (process.argv.includes('--record')) {
  writeFileSync(RECORD, `${JSON.stringify({ commit, date, ratios }, undefined, 1)}\n`)
  console.log(`wrote bench/results/guard.json`)
}
