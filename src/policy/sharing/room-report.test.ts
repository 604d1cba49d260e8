import { expect, it } from 'vitest'
import type { LaneFigures, PoolFigures } from '../../domain/pool-share.ts'
import { demandIn, readRoomReport, writeRoomReport } from './room-report.ts'

const LANE: LaneFigures = {
  orgId: 'o',
  orgWeight: undefined,
  tenantId: 't',
  tenantWeight: 1,
  keyId: 'k',
  keyWeight: 1,
  heldCount: 2,
  waitingCount: 3,
  offlineCount: 0,
  waitingCost: 900,
  waitingUs: 50,
}

const PREFIXES = { given: [], batches: [] }

const report = (figures: PoolFigures) => readRoomReport(writeRoomReport(figures, () => 0, 0, PREFIXES))

it('carries what a gateway was offered, in whole tokens', () => {
  expect(report({ replicas: [], lanes: [], offered: { online: 1_234.4, offline: 7 } })?.offered).toEqual({
    online: 1_234,
    offline: 7,
  })
  // A gateway of an older version does not tell it, and is understood all the same.
  expect(report({ replicas: [], lanes: [LANE] })).toMatchObject({ offered: undefined, lanes: [LANE] })
})

it('adds up what waits elsewhere, without those who only have offline work', () => {
  const one = report({ replicas: [], lanes: [LANE], offered: { online: 10, offline: 0 } })
  const offline = { ...LANE, keyId: 'l', waitingCount: 0, offlineCount: 40, waitingCost: 5_000 }
  const two = report({ replicas: [], lanes: [LANE, offline] })
  if (one === undefined || two === undefined) throw new Error('both reports can be read')
  const reports = new Map([
    ['a', one],
    ['b', two],
  ])
  const { offered, waiting } = demandIn(reports)
  expect([...offered]).toEqual([['a', { online: 10, offline: 0 }]])
  expect(waiting).toEqual({ cost: 1_800, count: 6 })
})
