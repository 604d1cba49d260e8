/**
 * What does one request pay for being watched?
 *
 * Records the five entries of an ordinary request and delivers them, batch by batch, to what the live server has:
 * metrics alone, then with the memory for `explain`, then with a log line. Entries are made beforehand, because making
 * them belongs to the request's story. Two worlds: 20 tenants, all named; and 2,000, of whom most are `other`.
 *
 *   node bench/micro/journal-record.ts [rounds]
 */
import { openSync, writeSync } from 'node:fs'
import { devNull } from 'node:os'
import { performance } from 'node:perf_hooks'
import type { Entry } from '../../src/domain/entry.ts'
import { LiveJournal, type Subscriber } from '../../src/telemetry/journal.ts'
import { type LogDestination, LogLines } from '../../src/telemetry/log.ts'
import { Metrics } from '../../src/telemetry/metrics.ts'
import { RecentTickets } from '../../src/telemetry/recent.ts'
import { settled, story } from '../../test/support/entries.ts'

const ROUNDS = Number(process.argv[2] ?? 15)
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
const setups: Record<string, () => Subscriber[]> = {
  'record, for one who ignores it': () => [{ name: 'idle', take: () => {} }],
  'record and metrics': () => [makeMetrics()],
  '… and recent tickets': () => [makeMetrics(), new RecentTickets()],
  '… and a log line': () => [makeMetrics(), new RecentTickets(), makeLog()],
}

function nsPerRequest(journal: LiveJournal, stories: readonly Entry[][]): number {
  const from = performance.now()
  for (let i = 0; i < stories.length; i++) {
    for (const entry of stories[i] as Entry[]) journal.record(entry)
    if (i % REQUESTS_PER_DRAIN === 0) journal.drain()
  }
  journal.drain()
  return ((performance.now() - from) / stories.length) * 1e6
}

const runs = [20, 2_000].flatMap((tenantCount) => {
  const stories = makeStories(tenantCount)
  return Object.entries(setups).map(([name, make]) => {
    const journal = new LiveJournal()
    for (const subscriber of make()) journal.subscribe(subscriber)
    return { name: `${tenantCount} tenants: ${name}`, journal, stories, samples: [] as number[] }
  })
})
for (let round = 0; round < ROUNDS; round++)
  for (const run of runs) run.samples.push(nsPerRequest(run.journal, run.stories))

console.log(`µs per request of 5 entries, ${ROUNDS} rounds of ${REQUESTS}: median (min–max)`)
for (const { name, samples } of runs) {
  const sorted = samples.toSorted((a, b) => a - b).map((ns) => (ns / 1_000).toFixed(2))
  console.log(`${name.padEnd(40)} ${sorted[sorted.length >> 1]} (${sorted[0]}–${sorted.at(-1)})`)
}
