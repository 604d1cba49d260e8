/** The loads that a target is put under, each a short run of the load client. */
import type { Options } from './options.ts'

export interface Slice {
  readonly name: string
  readonly about: string
  readonly isStream: boolean
  /** Arguments of the load client, without port, key and headers. */
  readonly args: readonly string[]
  /** For the progress line. */
  readonly secondsExpected: number
  readonly kind: 'short' | 'held'
}

/** More than any target answers in a slice, so that the time and not the count ends it. */
const REQUESTS_UNBOUNDED = 10_000_000
/** Room for every request of an open loop to wait for a target that stalls. */
const OPEN_LOOP_CONNECTIONS = 512
/** Opening gently: Node's listen backlog is 511, and Portkey accepts fewer than a thousand streams a second. */
export const HELD_OPENED_PER_SECOND = 400
const HELD_INTERVAL_MS = 500
/** All streams open at once for this long, after the last has been opened. */
const HELD_PLATEAU_SECONDS = 6

const words = (text: string): string[] => text.split(' ')

const whole = (connections: number, seconds: number): string[] =>
  words(`-c ${connections} -n ${REQUESTS_UNBOUNDED} -t ${seconds}`)

const open = (perSecond: number, seconds: number): string[] =>
  words(`-c ${OPEN_LOOP_CONNECTIONS} -r ${perSecond} -n ${Math.round(perSecond * seconds)} -t ${seconds + 5} -g 10`)

const stream = (chunks: number, intervalMs: number): string[] => words(`-s -k ${chunks} -i ${intervalMs}`)

const allAtOnce = (count: number): string[] => words(`-c ${count} -n ${count} -t 5 -g 20`)

function heldSlice(streams: number): Slice {
  const opening = streams / HELD_OPENED_PER_SECOND
  // The first stream must outlive the opening of the last, and the plateau.
  const chunks = Math.ceil(((opening + HELD_PLATEAU_SECONDS) * 1000) / HELD_INTERVAL_MS)
  const lasting = (chunks * HELD_INTERVAL_MS) / 1000
  return {
    name: 'sse-held',
    about: `${streams} streams open at once, 2 chunks a second each, opened at ${HELD_OPENED_PER_SECOND} a second`,
    isStream: true,
    args: [
      ...words(`-c ${streams} -n ${streams} -r ${HELD_OPENED_PER_SECOND} -t ${opening + 20} -g ${lasting + 30}`),
      ...stream(chunks, HELD_INTERVAL_MS),
    ],
    secondsExpected: opening + lasting,
    kind: 'held',
  }
}

export function makeSlices(options: Options): readonly Slice[] {
  const seconds = (full: number): number => full * options.durationRatio
  const short = (name: string, about: string, secondsExpected: number, args: readonly string[]): Slice => {
    return { name, about, isStream: args.includes('-s'), args, secondsExpected, kind: 'short' }
  }
  const pacedChunks = Math.round(100 * options.durationRatio)
  const floodChunks = Math.round(100 * options.durationRatio)
  const all: readonly Slice[] = [
    short('json-c1', 'whole answers, closed loop, 1 connection', seconds(1), whole(1, seconds(1))),
    short('json-c64', 'whole answers, closed loop, 64 connections', seconds(1.5), whole(64, seconds(1.5))),
    short('json-1kb', 'whole answers to prompts of 1 kB, closed loop, 64 connections', seconds(1.5), [
      ...whole(64, seconds(1.5)),
      ...words('-l 1000'),
    ]),
    short('json-r500', 'whole answers, open loop, 500 requests a second', seconds(2), open(500, seconds(2))),
    short('sse-first', 'short streams, open loop, 200 a second', seconds(2), [
      ...open(200, seconds(2)),
      ...stream(5, 2),
    ]),
    short('sse-paced', '200 streams at 50 chunks a second each', seconds(2.2), [
      ...allAtOnce(200),
      ...stream(pacedChunks, 20),
    ]),
    short('sse-flood', '500 streams at 100 chunks a second each', seconds(2.5), [
      ...allAtOnce(500),
      ...stream(floodChunks, 10),
    ]),
    heldSlice(options.streams),
  ]
  const unknown = options.slices.filter((name) => !all.some((slice) => slice.name === name))
  if (unknown.length > 0)
    throw new Error(`no slice "${unknown.join(', ')}"; there are ${all.map((s) => s.name).join(', ')}`)
  const wanted = options.slices.length === 0 ? all : all.filter((slice) => options.slices.includes(slice.name))
  return wanted.filter((slice) => (slice.kind === 'held' ? options.heldRounds > 0 : options.rounds > 0))
}
