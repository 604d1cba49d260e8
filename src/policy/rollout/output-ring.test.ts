import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { OutputPair } from '../../domain/output-pair.ts'
import { OutputRing } from './output-ring.ts'

const LATE = 1_000_000
const output = (text: string) => ({ releaseId: 'm@1', text, length: text.length, finishReason: 'stop' })
const pairOf = (tenantId: string, at: number, text = 'text', model = 'm'): OutputPair => ({
  at,
  ticketId: `t${at}`,
  model,
  tenantId,
  orgId: tenantId,
  primary: output(text),
  shadow: { ...output(text), outcome: 'completed' },
})
const EVERYTHING = { model: undefined, tenantId: undefined, limit: 1_000 }
const allowed = (): boolean => true
const idsIn = (ring: OutputRing, ask: Partial<typeof EVERYTHING> | object = {}, now = 100) =>
  ring.list(now, { ...EVERYTHING, ...ask }, allowed).map(({ ticketId }) => ticketId)
const keep = (ring: OutputRing, pair: OutputPair, expiresAt = LATE) => ring.keep(pair, { expiresAt, epoch: ring.epoch })

describe('kept outputs', () => {
  it('are listed newest first, by model and by tenant', () => {
    const ring = new OutputRing()
    keep(ring, pairOf('a', 1))
    keep(ring, pairOf('b', 2))
    keep(ring, pairOf('a', 3, 'text', 'n'))
    expect(idsIn(ring)).toEqual(['t3', 't2', 't1'])
    expect(idsIn(ring, { limit: 1 })).toEqual(['t3'])
    expect(idsIn(ring, { model: 'm' })).toEqual(['t2', 't1'])
    expect(idsIn(ring, { tenantId: 'a' })).toEqual(['t3', 't1'])
  })

  it('of a busy tenant push out none of another', () => {
    const ring = new OutputRing({ pairsMax: 10, bytesMax: 1e6 })
    for (let at = 0; at < 3; at++) keep(ring, pairOf('quiet', at))
    for (let at = 3; at < 100; at++) keep(ring, pairOf('busy', at))
    expect(idsIn(ring, { tenantId: 'quiet' })).toEqual(['t2', 't1', 't0'])
    expect(idsIn(ring, { tenantId: 'busy' })).toEqual(['t99', 't98', 't97', 't96', 't95', 't94', 't93'])
  })

  it('stay within both bounds, and a fair share of both is never lost to others', () => {
    const bounds = { pairsMax: 12, bytesMax: 20_000 }
    const step = fc.record({ tenant: fc.constantFrom('a', 'b', 'c'), length: fc.nat(2_000) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const ring = new OutputRing(bounds)
        // What tenant a may hold for certain: a third of both bounds.
        const own: Array<{ id: string; bytes: number }> = []
        steps.forEach(({ tenant, length }, at) => {
          keep(ring, pairOf(tenant, at, 'x'.repeat(length)))
          if (tenant === 'a') own.push({ id: `t${at}`, bytes: 4 * length + 512 })
          expect(ring.count).toBeLessThanOrEqual(bounds.pairsMax)
          expect(ring.bytes).toBeLessThanOrEqual(bounds.bytesMax)
        })
        const total = own.reduce((sum, { bytes }) => sum + bytes, 0)
        if (own.length > bounds.pairsMax / 3 || total > bounds.bytesMax / 3) return
        expect(idsIn(ring, { tenantId: 'a' })).toEqual(own.map(({ id }) => id).toReversed())
      }),
    )
  })

  it('end with their time', () => {
    const ring = new OutputRing()
    keep(ring, pairOf('a', 1), 50)
    // The tenant's time was made shorter.
    keep(ring, pairOf('a', 2), 20)
    expect(idsIn(ring, {}, 30)).toEqual(['t1'])
    ring.expire(49)
    expect(ring.count).toBe(2)
    ring.expire(50)
    expect([ring.count, ring.bytes]).toEqual([0, 0])
  })

  it('go with their tenant, those that are still being made too', () => {
    const ring = new OutputRing()
    keep(ring, pairOf('a', 1))
    keep(ring, pairOf('b', 2))
    const { epoch } = ring
    ring.forget('a')
    ring.keep(pairOf('a', 3), { expiresAt: LATE, epoch })
    expect(idsIn(ring)).toEqual(['t2'])
    keep(ring, pairOf('a', 4))
    expect(idsIn(ring)).toEqual(['t4', 't2'])
  })

  it('go when their tenant does not allow them any more', () => {
    const ring = new OutputRing()
    keep(ring, pairOf('a', 1))
    expect(ring.list(2, EVERYTHING, () => false)).toEqual([])
    expect([idsIn(ring), ring.count, ring.bytes]).toEqual([[], 0, 0])
  })
})
