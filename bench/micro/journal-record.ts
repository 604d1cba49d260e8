/**
 * What does one request pay for being watched?
 *
 * Records the five entries of an ordinary request and delivers them, batch by batch, to what the live server has:
 * metrics alone, then with the memory for `explain`, then with a log line; and, to compare, to a worker thread. Entries are made beforehand, because making
 * them belongs to the request's story. Two worlds: 20 tenants, all named; and 2,000, of whom most are `other`.
 *
 *   node bench/micro/journal-record.ts [rounds]
 */
import { openSync, writeSync } from 'node:fs'
import { devNull } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { Entry } from '../../src/domain/entry.ts'
import { LiveJournal, type Subscriber } from '../../src/telemetry/journal.ts'
import { type LogDestination, LogLines } from '../../src/telemetry/log.ts'
import { Metrics } from '../../src/telemetry/metrics.ts'
import { RecentTickets } from '../../src/telemetry/recent.ts'
import { settled, story } from '../../test/support/entries.ts'

const ROUNDS = Number(process.argv[2] ?? 60)
const WARM_UP_ROUNDS = 5
const REQUESTS = 5_000
/** How many requests settle in one turn of the event loop, at most: what a batch of the journal holds. */
const REQUESTS_PER_DRAIN = 20

const models = ['llama-8b', 'llama-70b', 'qwen-32b', 'tiny']
const makeStories = (tenantCount: number): Entry[][] =>
  Array.from({ length: REQUESTS }, (_, i) =>
    story(
      settled({
        at: 2_000_000 + i * 1_000,
        ticketId: `req_${i}`,
        tenantId: `tenant-${(i * 7_919) % tenantCount}`,
        model: models[i % 4] as string,
        servedModel: models[i % 4] as string,
      }),
    ),
  )

const sink = openSync(devNull, 'w')
/** Gathers a batch and writes it once, as the live destination does. */
function makeDestination(): LogDestination {
  let batch = ''
  return {
    write: (line) => {
      batch += line
    },
    flush: () => {
      if (batch !== '') writeSync(sink, batch)
      batch = ''
    },
  }
}
const makeMetrics = () => new Metrics({ version: '0', nodeVersion: '0' })
const makeLog = () => new LogLines({ destination: makeDestination() })
/** What it would cost to count elsewhere: each batch is copied to a thread that throws it away. */
const worker = new Worker("require('node:worker_threads').parentPort.on('message', () => {})", { eval: true })
function makePoster(): Subscriber {
  let batch: Entry[] = []
  return {
    name: 'poster',
    take: (entry) => void batch.push(entry),
    flush: () => {
      worker.postMessage(batch)
      batch = []
    },
  }
}
const setups: Record<string, () => Subscriber[]> = {
  'record, for one who ignores it': () => [{ name: 'idle', take: () => {} }],
  'record and metrics': () => [makeMetrics()],
  '… and recent tickets': () => [makeMetrics(), new RecentTickets()],
  '… and a log line': () => [makeMetrics(), new RecentTickets(), makeLog()],
  'record and send to a worker': () => [makePoster()],
}

/**
 * This thread's own CPU time: what other processes do to a shared machine is not our cost. Some kernels count it in
 * ticks of 4 ms, so only sums over many rounds mean anything.
 */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

/** CPU milliseconds for all stories once. */
function spend(journal: LiveJournal, stories: readonly Entry[][]): number {
  const from = cpuMs()
  for (let i = 0; i < stories.length; i++) {
    for (const entry of stories[i] as Entry[]) journal.record(entry)
    if (i % REQUESTS_PER_DRAIN === 0) journal.drain()
  }
  journal.drain()
  return cpuMs() - from
}

const runs = [20, 2_000].flatMap((tenantCount) => {
  const stories = makeStories(tenantCount)
  return Object.entries(setups).map(([name, make]) => {
    const journal = new LiveJournal()
    for (const subscriber of make()) journal.subscribe(subscriber)
    return { name: `${tenantCount} tenants: ${name}`, journal, stories, totalMs: 0 }
  })
})
for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round++)
  for (const run of runs) {
    const ms = spend(run.journal, run.stories)
    if (round >= 0) run.totalMs += ms
    // The worker gets time to empty its queue, so that the next run does not share its core with it.
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
await worker.terminate()

console.log(`CPU µs per request of 5 entries, mean of ${ROUNDS} interleaved rounds of ${REQUESTS}`)
for (const { name, totalMs } of runs)
  console.log(`${name.padEnd(46)} ${((totalMs * 1_000) / (ROUNDS * REQUESTS)).toFixed(2)}`)
