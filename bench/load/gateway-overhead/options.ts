/** The command line of the benchmark. */
import { parseArgs } from 'node:util'

export interface Options {
  /** Rounds of the short slices; every round drives every target once through every slice. */
  readonly rounds: number
  /** Rounds of the slice with many open streams, which takes half a minute per target. */
  readonly heldRounds: number
  /** Streams open at once in that slice. */
  readonly streams: number
  /** Factor on the duration of the short slices. */
  readonly durationRatio: number
  readonly only: readonly string[]
  readonly slices: readonly string[]
  readonly json: boolean
  readonly record: boolean
}

export const USAGE = `usage: node bench/load/gateway-overhead/run.ts [options]

Measures what a gateway adds between a client and an engine: direct, nginx, Portkey, a bare relay and Spillway, side by side.

  --rounds N        rounds of the short slices (default 7)
  --held-rounds N   rounds with many open streams (default 3; 0 leaves them out)
  --streams N       streams open at once in those (default 5000)
  --quick           2 rounds of half the length, one with 1000 streams: to see that it works, not to quote
  --only a,b        only these targets (direct always runs): nginx, portkey, relay, spillway, fast-path, ledger, screened
  --slices a,b      only these slices: json-c1, json-c64, json-1kb, json-r500, sse-first, sse-paced, sse-flood, sse-held
  --json            print everything as JSON
  --record          also write bench/results/gateway-overhead.json and .md`

const list = (text: string | undefined): readonly string[] => text?.split(',').filter(Boolean) ?? []

function count(text: string | undefined, fallback: number, name: string): number {
  if (text === undefined) return fallback
  const value = Number(text)
  if (!Number.isInteger(value) || value < 0) throw new Error(`--${name} wants a whole number, not "${text}"`)
  return value
}

/** Returns undefined when help was asked for; throws with one clear line on anything unknown. */
export function parseOptions(argv: readonly string[]): Options | undefined {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      rounds: { type: 'string' },
      'held-rounds': { type: 'string' },
      streams: { type: 'string' },
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      slices: { type: 'string' },
      json: { type: 'boolean', default: false },
      record: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return undefined
  return {
    rounds: count(values.rounds, values.quick ? 2 : 7, 'rounds'),
    heldRounds: count(values['held-rounds'], values.quick ? 1 : 3, 'held-rounds'),
    streams: count(values.streams, values.quick ? 1000 : 5000, 'streams'),
    durationRatio: values.quick ? 0.5 : 1,
    only: list(values.only),
    slices: list(values.slices),
    json: values.json,
    record: values.record,
  }
}
