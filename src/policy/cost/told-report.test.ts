import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NO_ENGINE_TIME } from '../../domain/engine-time.ts'
import type { AttemptSecond, SecondReport } from './second-report.ts'
import { readToldCharges, readToldReport, writeToldCharges, writeToldReport } from './told-report.ts'

const row = (
  ticketId: string,
  tenantId: string,
  decodeUs: number,
  more: Partial<AttemptSecond> = {},
): AttemptSecond => ({
  ticketId,
  attempt: 1,
  tenantId,
  isErrand: false,
  time: { ...NO_ENGINE_TIME, decodeUs },
  ...more,
})

const reportOf = (rows: readonly AttemptSecond[]): SecondReport => ({
  reporterId: 'g1',
  second: 7,
  replicas: [{ replicaId: 'r', isMeasured: true, busyUs: 5, rows }],
  wasted: [],
  ended: [],
})

describe('a report that goes to another gateway', () => {
  it('has a row for each tenant, errands apart, however many requests there are, and names no request', () => {
    const rows = [
      row('t1', 'a', 100),
      row('t2', 'b', 10),
      row('t3', 'a', 50, { time: { ...NO_ENGINE_TIME, prefillUs: 50, againUs: 7 } }),
      row('t4', 'a', 1, { isErrand: true }),
    ]
    const body = writeToldReport({ ...reportOf(rows), credits: [{ tenantId: 'a', nano: 3, line: 'waste' }] }, true)
    expect(body).not.toContain('t1')
    const { report, isLast } = readToldReport('g1', body)!
    expect(isLast).toBe(true)
    expect(report).toMatchObject({ second: 7, reporterId: 'g1', credits: [{ tenantId: 'a', nano: 3, line: 'waste' }] })
    expect(
      report.replicas[0]?.rows.map(({ tenantId, isErrand, time }) => [
        tenantId,
        isErrand,
        time.prefillUs,
        time.againUs,
      ]),
    ).toEqual([
      ['a', false, 150, 7],
      ['b', false, 10, 0],
      ['a', true, 1, 0],
    ])
  })

  it('is bounded', () => {
    const rows = Array.from({ length: 60_000 }, (_, i) => row(`t${i}`, `tenant ${i}`, 1))
    const { report } = readToldReport('g1', writeToldReport(reportOf(rows), false))!
    expect(report.replicas[0]?.rows).toHaveLength(50_000)
    // What was not told is not charged.
    const usedNano = report.replicas[0]!.rows.map(() => 2)
    const part = { replicaId: 'r', scale: 1, nanoPerUs: 1, isMeasured: true, usedNano, againNano: [] }
    const [charged] = readToldCharges(reportOf(rows), writeToldCharges([part]))
    expect(charged?.usedNano.at(49_999)).toBe(2)
    expect(charged?.usedNano.at(50_000)).toBe(0)
  })

  it('is not understood where it is something else', () => {
    for (const body of ['', '{}', '{"second":"x"}', '{"second":1}', 'null'])
      expect(readToldReport('g1', body)).toBeUndefined()
  })

  it('gets back what its tenants were charged with, split over their requests to the nano-dollar', () => {
    const drawn = fc.array(
      fc.record({ tenant: fc.nat(3), us: fc.double({ min: 0, max: 1e6, noNaN: true }), isErrand: fc.boolean() }),
      { minLength: 1, maxLength: 12 },
    )
    fc.assert(
      fc.property(drawn, fc.array(fc.nat(1_000_000), { minLength: 8, maxLength: 8 }), (draw, nanos) => {
        const rows = draw.map(({ tenant, us, isErrand }, i) => row(`t${i}`, `${tenant}`, us + 1, { isErrand }))
        const own = reportOf(rows)
        const { report } = readToldReport('g1', writeToldReport(own, false))!
        const payers = report.replicas[0]!.rows
        const usedNano = payers.map((_, i) => nanos[i] ?? 0)
        const part = { replicaId: 'r', scale: 1, nanoPerUs: 1, isMeasured: true, usedNano, againNano: [] }
        const [charged] = readToldCharges(own, writeToldCharges([part]))
        for (const [i, payer] of payers.entries()) {
          const sum = rows.reduce(
            (total, one, at) =>
              one.tenantId === payer.tenantId && one.isErrand === payer.isErrand
                ? total + charged!.usedNano[at]!
                : total,
            0,
          )
          expect(sum).toBe(usedNano[i])
        }
      }),
      { numRuns: 100 },
    )
  })
})
