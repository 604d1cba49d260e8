import { spawnSync } from 'node:child_process'
import { argv, execArgv, execPath, exit } from 'node:process'
import { Crowd } from './crowd.ts'
import { type Finding, tell } from './tell.ts'

/**
 * Claim: a queued ticket costs under 2 KB in the dispatcher, its offer and its share of lanes, tenants and tree
 * included, its prompt excluded; also when every ticket is of another tenant. Starts itself again with `--expose-gc`.
 */
if (!execArgv.includes('--expose-gc')) {
  const again = spawnSync(execPath, ['--expose-gc', ...argv.slice(1)], { stdio: 'inherit' })
  exit(again.status ?? 1)
}

const collect = (globalThis as unknown as { readonly gc: () => void }).gc

function bytesPerTicket(tenantCount: number, queuedCount: number): number {
  collect()
  const before = process.memoryUsage().heapUsed
  const crowd = new Crowd({ tenantCount, queuedCount })
  collect()
  const after = process.memoryUsage().heapUsed
  crowd.dispatcher.assertInvariants()
  return (after - before) / queuedCount
}

const findings: Finding[] = [
  {
    name: '10,000 tickets of 1,000 tenants',
    value: bytesPerTicket(1_000, 10_000),
    unit: 'bytes a ticket',
    below: 2_048,
  },
  {
    name: '100,000 tickets of 1,000 tenants',
    value: bytesPerTicket(1_000, 100_000),
    unit: 'bytes a ticket',
    below: 2_048,
  },
  { name: '100,000 tickets of 100,000 tenants', value: bytesPerTicket(100_000, 100_000), unit: 'bytes a ticket' },
]
tell('memory of a queued ticket', findings)
