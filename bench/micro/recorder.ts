/**
 * What does one request pay for being recorded?
 *
 * Gives the recorder the arrival and the end of requests, with the server's own cipher for names, while nobody records
 * and while one recording runs. The output throws lines away: writing them is the disk's work, in batches. CPU time, and
 * bytes of a line, by the number of named blocks of the prompt (about 16 tokens each, 128 at most).
 *
 *   node bench/micro/recorder.ts [requests]
 */
import type { Entry } from '../../src/domain/entry.ts'
import { makeRenaming } from '../../src/telemetry/live-renaming.ts'
import { Recorder } from '../../src/telemetry/recorder.ts'
import { arrived, settled } from '../../test/support/entries.ts'

const REQUESTS = Number(process.argv[2] ?? 50_000)
const WARM_UP_REQUESTS = 20_000

function storiesOf(blocks: number, count: number): Entry[] {
  const prefixHashes = Array.from({ length: blocks }, (_, i) => Math.imul(i + 1, 0x9e3779b1) >>> 0)
  const shape = {
    kind: 'chat',
    bid: 0,
    outputTokensMax: 200,
    choiceCount: 1,
    prefixHashes,
    sessionHash: 5,
    passagesMax: 0,
  } as const
  return Array.from({ length: count }, (_, i) => {
    const ticketId = `req_${i}`
    return [arrived({ ticketId, shape }), settled({ ticketId })]
  }).flat()
}

function measure(blocks: number, isRecording: boolean): { readonly us: number; readonly bytes: number } {
  const recorder = new Recorder({ renaming: makeRenaming() })
  let bytes = 0
  const write = (line: string): boolean => {
    bytes += line.length
    return true
  }
  if (isRecording) recorder.begin({ write }, 0)
  for (const entry of storiesOf(blocks, WARM_UP_REQUESTS)) recorder.take(entry)
  const entries = storiesOf(blocks, REQUESTS)
  bytes = 0
  const before = process.cpuUsage()
  for (const entry of entries) recorder.take(entry)
  const { user, system } = process.cpuUsage(before)
  return { us: (user + system) / REQUESTS, bytes: bytes / REQUESTS }
}

for (const blocks of [0, 16, 50, 128]) {
  const idle = measure(blocks, false)
  const recording = measure(blocks, true)
  const figures = `idle ${idle.us.toFixed(2)} µs, recording ${recording.us.toFixed(1)} µs, ${Math.round(recording.bytes)} bytes`
  process.stdout.write(`${blocks} blocks: ${figures}\n`)
}
