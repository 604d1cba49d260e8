import { describe, expect, it } from 'vitest'
import type { CostClosed, SecondClosed } from '../domain/cost-entry.ts'
import { NO_ENGINE_TIME } from '../domain/engine-time.ts'
import type { Entry, Settled } from '../domain/entry.ts'
import { CostLaw } from './cost-law.ts'

const SECOND: SecondClosed = {
  kind: 'second-closed',
  at: 1_000_000,
  replicaId: 'r',
  poolId: 'p',
  fromAt: 0,
  toAt: 1_000_000,
  billedSince: 0,
  nanoPerHour: 3_600_000_000,
  billNano: 1_000_000,
  busyUs: 400_000,
  isMeasured: true,
  tenants: [{ tenantId: 'a', usedNano: 400_000, idleNano: 0 }],
  lines: { idleNano: 600_000, wasteNano: 0, platformNano: 0, crashedNano: 0, lateNano: 0 },
}

const SETTLED = { kind: 'settled', ticketId: 't', attempts: 1 } as Settled

const CLOSED: CostClosed = {
  kind: 'cost-closed',
  at: 1_000_000,
  ticketId: 't',
  tenantId: 'a',
  isErrand: false,
  costNano: 400_000,
  wasteNano: 0,
  batchSavedNano: 0,
  prefixSavedNano: 0,
  time: NO_ENGINE_TIME,
  isMeasured: true,
  isPriced: true,
}

function broken(...entries: readonly Entry[]): string[] {
  const found: string[] = []
  const law = new CostLaw((_ticketId, what) => found.push(what))
  for (const entry of entries) law.take(entry)
  law.finish()
  return found
}

describe('law L15', () => {
  it('holds for a second whose lines are its bill, and a ticket whose cost is told once', () => {
    expect(broken(SECOND, SETTLED, CLOSED)).toEqual([])
  })

  it('waits for no cost of a gateway that was lost, and for those of all others', () => {
    const found: string[] = []
    const law = new CostLaw((ticketId, what) => found.push(`${ticketId} ${what}`))
    law.take(SECOND, 'b')
    law.take(SETTLED, 'a')
    law.take({ ...SETTLED, ticketId: 'kept' }, 'b')
    law.lost('a')
    law.take({ ...SETTLED, ticketId: 'after' }, 'a')
    law.finish()
    expect(found).toEqual(['kept its cost was never closed'])
  })

  it.each<[string, Entry[], string]>([
    [
      'a nano-dollar is lost',
      [{ ...SECOND, lines: { ...SECOND.lines, idleNano: 599_999 } }, SETTLED, CLOSED],
      'lines of',
    ],
    ['the bill is not that of the rate', [{ ...SECOND, nanoPerHour: 4_000_000_000 }, SETTLED, CLOSED], 'and costs'],
    [
      'a second is left out',
      [SECOND, { ...SECOND, fromAt: 2_000_000, toAt: 3_000_000 }, SETTLED, CLOSED],
      'closed up to',
    ],
    ['a second is closed by two gateways', [SECOND, SECOND, SETTLED, CLOSED], 'closed up to'],
    [
      'a second is closed by two gateways that began at different instants',
      [SECOND, { ...SECOND, fromAt: 500_000, billedSince: 500_000, billNano: 500_000 }, SETTLED, CLOSED],
      'closed up to',
    ],
    ['a ticket’s cost is never told', [SECOND, SETTLED], 'never closed'],
    ['a ticket’s cost is told twice', [SECOND, SETTLED, CLOSED, CLOSED], 'twice'],
    [
      'a ticket cost less than was charged',
      [SECOND, SETTLED, { ...CLOSED, costNano: 1 }],
      'more than its tickets cost',
    ],
    [
      'a line is negative',
      [{ ...SECOND, lines: { ...SECOND.lines, idleNano: 700_000, wasteNano: -100_000 } }, SETTLED, CLOSED],
      'negative line',
    ],
  ])('is broken where %s', (_what, entries, says) => {
    expect(broken(...entries).join('\n')).toContain(says)
  })
})
