import { describe, expect, it } from 'vitest'
import { arrived, refused, settled } from '../../test/support/entries.ts'
import { RecentRefusals } from './recent-refusals.ts'

const idsOf = (recent: RecentRefusals, tenantId?: string, limit = 100): string[] =>
  recent.list({ tenantId, limit }).map(({ ticketId }) => ticketId)

describe('RecentRefusals', () => {
  it('lists what was refused, the newest first, and nothing that was answered or called off', () => {
    const recent = new RecentRefusals()
    recent.take(arrived({ ticketId: 'x' }))
    recent.take(settled({ ticketId: 'x' }))
    recent.take(settled({ ticketId: 'gone', outcome: 'cancelled' }))
    recent.take(refused({ ticketId: 'a', at: 1 }))
    recent.take(refused({ ticketId: 'b', at: 3, tenantId: 'globex' }))
    recent.take(refused({ ticketId: 'c', at: 2, outcome: 'failed' }))
    expect(idsOf(recent)).toEqual(['b', 'c', 'a'])
    expect(idsOf(recent, undefined, 2)).toEqual(['b', 'c'])
    expect(idsOf(recent, 'acme')).toEqual(['c', 'a'])
    expect(idsOf(recent, 'nobody')).toEqual([])
  })

  it('keeps so many of each tenant: one that is refused without end hides nobody else', () => {
    const recent = new RecentRefusals({ perTenantMax: 3 })
    recent.take(refused({ ticketId: 'calm', tenantId: 'calm', at: 0 }))
    for (let at = 1; at <= 1_000; at++) recent.take(refused({ ticketId: `t${at}`, at }))
    expect(idsOf(recent)).toEqual(['t1000', 't999', 't998', 'calm'])
  })

  it('keeps so many tenants, and forgets the one that was refused longest ago', () => {
    const recent = new RecentRefusals({ tenantsMax: 2 })
    for (const [at, tenantId] of ['a', 'b', 'a', 'c'].entries())
      recent.take(refused({ ticketId: `${tenantId}${at}`, tenantId, at }))
    expect(idsOf(recent)).toEqual(['c3', 'a2', 'a0'])
  })
})
