import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NO_COST, type Settlement } from '../../domain/ledger.ts'
import { LEDGER_LINES_DEFAULTS, LedgerLines } from './ledger-lines.ts'
import { readRecord, type SpooledRecord, writeRecord } from './spooled-record.ts'

const PAYER = { orgId: 'o', tenantId: 't', keyId: 'k', endUser: '' }
const PRICE = { version: 'v1', inputNano: 1_000_000, cachedNano: 0, outputNano: 2_000_000, requestNano: 0 }

const opened = (ticketId: string, paysCrashes = true): SpooledRecord => ({
  kind: 'opened',
  atMs: 1,
  ticketId,
  ...PAYER,
  model: 'm',
  releaseId: 'm@1',
  inputTokens: 50,
  price: PRICE,
  paysCrashes,
})
const settled = (ticketId: string, isCostOpen = true): SpooledRecord => ({
  kind: 'settled',
  atMs: 2,
  ticketId,
  ...PAYER,
  model: 'm',
  releaseId: 'm@1',
  outcome: 'completed',
  inputTokens: 50,
  cachedTokens: 10,
  outputTokens: 5,
  priceNano: 60,
  priceVersion: 'v1',
  isCostOpen,
})
const costed = (ticketId: string, costNano = 9): SpooledRecord => ({ kind: 'costed', ticketId, ...NO_COST, costNano })
const started: SpooledRecord = { kind: 'started', atMs: 3 }

/** All lines of these records, numbered from 1. */
function linesOf(lines: LedgerLines, records: readonly SpooledRecord[], now = 0): Settlement[] {
  return records.flatMap((record, i) => lines.take(now, i + 1, record))
}
const brief = (all: readonly Settlement[]) =>
  all.map(({ ticketId, outcome, priceNano, costNano }) => [ticketId, outcome, priceNano, costNano])

describe('the lines of a ledger', () => {
  it('come out when a ticket is settled and its cost is known', () => {
    const lines = new LedgerLines()
    expect(linesOf(lines, [opened('a'), settled('a')])).toEqual([])
    expect(lines.acknowledgeable).toBe(0)
    expect(brief(lines.take(0, 3, costed('a')))).toEqual([['a', 'completed', 60, 9]])
    expect(lines.acknowledgeable).toBe(3)
  })

  it('come out at once for a ticket that no engine saw', () => {
    expect(brief(linesOf(new LedgerLines(), [settled('a', false)]))).toEqual([['a', 'completed', 60, 0]])
  })

  it('close what was open when its process died, and charge whom the tenant’s terms name', () => {
    const records = [opened('a'), opened('b', false), opened('c'), settled('c'), started, opened('d')]
    const lines = new LedgerLines()
    expect(brief(linesOf(lines, records))).toEqual([
      ['a', 'crashed', 50, 0],
      ['b', 'crashed', 0, 0],
      ['c', 'completed', 60, 0],
    ])
    expect([lines.openCount, lines.acknowledgeable]).toEqual([1, 5])
  })

  it.each(['batch_req_1_7', 'background_req_1', 'queue_req_1'])(
    'have a lost line of a job as one of its own, at no price: %s runs again under its id, and is sold then',
    (line) => {
      const records = [opened(line), started, opened(line), settled(line, false)]
      expect(brief(linesOf(new LedgerLines(), records))).toEqual([
        [`${line}~1`, 'crashed', 0, 0],
        [line, 'completed', 60, 0],
      ])
    },
  )

  it('wait for a cost for a while, then come without it, once', () => {
    const lines = new LedgerLines()
    linesOf(lines, [opened('a'), settled('a')], 100)
    expect(lines.overdue(100 + LEDGER_LINES_DEFAULTS.costPatienceUs - 1)).toEqual([])
    expect(brief(lines.overdue(100 + LEDGER_LINES_DEFAULTS.costPatienceUs))).toEqual([['a', 'completed', 60, 0]])
    expect(lines.take(0, 3, costed('a'))).toEqual([])
  })

  it('never keep more open tickets than their bound', () => {
    const lines = new LedgerLines()
    for (let i = 1; i <= LEDGER_LINES_DEFAULTS.openMax; i++) lines.take(0, i, opened(`t${i}`))
    const [line] = lines.take(0, LEDGER_LINES_DEFAULTS.openMax + 1, opened('one more'))
    expect([line?.ticketId, lines.openCount]).toEqual(['t1', LEDGER_LINES_DEFAULTS.openMax])
  })

  it('are the same after any crash of the reader: each ticket’s line comes out, and always alike', () => {
    const steps = fc.array(fc.tuple(fc.constantFrom('opened', 'settled', 'costed', 'started'), fc.nat(5)), {
      maxLength: 60,
    })
    fc.assert(
      fc.property(steps, fc.nat(60), (plan, crashAfter) => {
        const records = wellFormed(plan)
        const whole = linesOf(new LedgerLines(), records)
        const before = new LedgerLines()
        const first = linesOf(before, records.slice(0, crashAfter))
        const from = before.acknowledgeable
        const again = new LedgerLines()
        const second = records.slice(from).flatMap((record, i) => again.take(0, from + i + 1, record))
        const ledger = new Map<string, Settlement>()
        for (const line of [...first, ...second]) {
          const known = ledger.get(line.ticketId)
          if (known === undefined) ledger.set(line.ticketId, line)
          else expect(line).toEqual(known)
        }
        expect(ledger).toEqual(new Map(whole.map((line) => [line.ticketId, line])))
      }),
      { numRuns: 500 },
    )
  })

  it('read back what was written, and nothing else', () => {
    for (const record of [opened('a'), settled('a'), costed('a'), started]) {
      expect(readRecord(writeRecord(record))).toMatchObject(record)
    }
    for (const text of ['', 'null', '{"kind":"key.created"}', '[1', '{"kind":7}'])
      expect(readRecord(text)).toBeUndefined()
  })
})

/** Records in an order that a process writes: each ticket is opened, settled and costed once, within one life. */
function wellFormed(plan: readonly (readonly [string, number])[]): SpooledRecord[] {
  const records: SpooledRecord[] = []
  const stages = new Map<string, number>()
  let life = 0
  for (const [kind, n] of plan) {
    if (kind === 'started') {
      life++
      records.push(started)
      continue
    }
    const id = `${life}-${n}`
    const stage = stages.get(id) ?? 0
    if (kind === 'opened' && stage === 0) records.push(opened(id))
    else if (kind === 'settled' && stage === 1) records.push(settled(id))
    else if (kind === 'costed' && stage === 2) records.push(costed(id))
    else continue
    stages.set(id, stage + 1)
  }
  return records
}
