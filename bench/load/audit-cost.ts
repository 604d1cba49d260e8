import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { LogTrail } from '../../src/audit/audit-trail.ts'
import { openAuditKey } from '../../src/audit/fs-audit-key.ts'
import { FsAuditLog } from '../../src/audit/fs-audit-log.ts'
import { readCheckpointNotes } from '../../src/audit/fs-checkpoint-files.ts'
import { findRequest, proveEvent } from '../../src/audit/fs-prove.ts'
import { verifyChain } from '../../src/audit/fs-verify.ts'
import type { AuditEvent } from '../../src/domain/audit-event.ts'

/**
 * What the audit costs. Bars: 5,000 events a second at 10 % of a core or less; verifying 80,000 events a second or more.
 * Events are those of requests, with a prompt of `--prompt` bytes to hash, from 50 keys and 2,000 end users; they come
 * evenly, in bunches of one millisecond. CPU time is the process', with every thread; a run of the same length that makes
 * the events and writes nothing is taken off. Five seconds before are not counted.
 */
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    rate: { type: 'string', default: '5000' },
    prompt: { type: 'string', default: '1000' },
    folder: { type: 'string', default: tmpdir() },
  },
})
const [seconds, rate, promptBytes] = [values.seconds, values.rate, values.prompt].map(Number) as [
  number,
  number,
  number,
]
const root = mkdtempSync(join(values.folder, 'audit-cost-'))
/** Whole strings, as bodies are. */
const prompts = Array.from({ length: 256 }, (_, i) => Buffer.alloc(promptBytes, 65 + (i % 50)).toString())

const eventOf = (n: number): AuditEvent => ({
  kind: 'inference.settled',
  actor: { kind: 'key', name: `key-${n % 50}` },
  org: 'acme',
  tenant: `team-${n % 10}`,
  request: `req_${n}`,
  model: 'llama-8b',
  release: 'llama-8b@2026-11-01',
  decision: { outcome: 'completed', because: 'finished' },
  usage: { prompt: 512, cached: 128, output: 140 },
  cost: 944,
  price: 123_456,
  rung: 'full',
  user: `customer-${n % 2_000}`,
  text: prompts[n % 256],
})

/** Calls `write` for each event, evenly; answers CPU seconds of the process. */
function pace(
  write: (event: AuditEvent) => void,
  lastingS = seconds,
): Promise<{ cpuS: number; systemS: number; count: number }> {
  const before = process.cpuUsage()
  const startedMs = performance.now()
  let count = 0
  return new Promise((resolve) => {
    const tick = (): void => {
      const elapsedS = (performance.now() - startedMs) / 1_000
      for (const due = Math.min(elapsedS, lastingS) * rate; count < due; ) write(eventOf(count++))
      if (elapsedS < lastingS) setTimeout(tick, 1)
      else {
        const { user, system } = process.cpuUsage(before)
        resolve({ cpuS: (user + system) / 1e6, systemS: system / 1e6, count })
      }
    }
    tick()
  })
}

const later = (ms: number, run: () => void): (() => void) => {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}

const key = openAuditKey(join(root, 'signing.key'))
const log = await FsAuditLog.open({
  folder: join(root, '0'),
  origin: 'bench/0',
  process: '0',
  key,
  now: () => Date.now() * 1_000,
  later,
  complain: (problem) => console.error(problem),
  bytesMax: 1e12,
  retentionMs: 1e12,
})
if (typeof log === 'string') throw new Error(log)
const trail = new LogTrail({
  log,
  terms: { isStrict: false, refusesWhenFull: false },
  version: () => 'config-0123456789ab',
  onFault: (error) => console.error(error),
})

let made = 0
await pace((event) => trail.write(event), 5)
const idle = await pace((event) => {
  made += event.request?.length ?? 0
})
const busy = await pace((event) => trail.write(event))
await log.close()
const { spool } = log.view()
const share = ((busy.cpuS - idle.cpuS) / seconds) * 100
console.log(
  `node ${process.version}, ${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}, prompts of ${promptBytes} bytes`,
)
console.log(
  `write: ${busy.count} events in ${seconds} s (${made > 0 ? rate : 0} a second), ${share.toFixed(1)} % of a core beside making them ` +
    `(${(((busy.cpuS - idle.cpuS) / busy.count) * 1e6).toFixed(1)} µs each; all ${((busy.cpuS / seconds) * 100).toFixed(1)} %, idle ${((idle.cpuS / seconds) * 100).toFixed(1)} %; of it the kernel ${(((busy.systemS - idle.systemS) / seconds) * 100).toFixed(1)} %)`,
)
console.log(
  `disk: ${(spool.diskBytes / busy.count).toFixed(0)} bytes an event, ${spool.commits} commits, ` +
    `longest from event to disk ${(spool.commitUsMax / 1_000).toFixed(0)} ms, lost ${log.view().lost}`,
)

const notes = await readCheckpointNotes(join(root, '0'))
const folder = join(root, '0')
for (let run = 0; run < 3; run++) {
  const before = process.cpuUsage()
  const startedMs = performance.now()
  const report = await verifyChain({ folder, notes, publicKey: log.publicKey })
  const { user, system } = process.cpuUsage(before)
  const wallS = (performance.now() - startedMs) / 1_000
  const perCpu = report.last / ((user + system) / 1e6)
  console.log(
    `verify: ${report.last} events, ${report.checkpointsHeld} checkpoints, ${report.problems.length} problems: ` +
      `${Math.round(perCpu).toLocaleString('en')} a CPU second, ${Math.round(report.last / wallS).toLocaleString('en')} a second`,
  )
}
const startedMs = performance.now()
const [event] = await findRequest(folder, `req_${Math.floor(busy.count / 2)}`)
const proof = event && (await proveEvent(folder, event))
console.log(`prove: ${proof?.proof.length} hashes in ${(performance.now() - startedMs).toFixed(0)} ms`)
rmSync(root, { recursive: true })
