import { describe, expect, it } from 'vitest'
import { arrived, fault, settled, story } from '../../test/support/entries.ts'
import type { Settled } from '../domain/entry.ts'
import { RecentTickets } from './recent.ts'

describe('RecentTickets', () => {
  it('tells a ticket’s story in order, with the faults that named it', () => {
    const recent = new RecentTickets()
    const entries = [...story(settled({ ticketId: 'a' })), fault({ ticketId: 'a' })]
    for (const entry of entries) recent.take(entry)
    recent.take(fault())
    expect(recent.storyOf('a')).toEqual(entries)
    expect(recent.storyOf('b')).toBeUndefined()
  })

  it('forgets the oldest of those that settled, and of those on their way', () => {
    const recent = new RecentTickets({ ticketsMax: 2 })
    for (const ticketId of ['a', 'b', 'c']) {
      recent.take(arrived({ ticketId }))
      recent.take(settled({ ticketId }))
    }
    for (const ticketId of ['d', 'e', 'f']) recent.take(arrived({ ticketId }))
    expect(recent.ticketIds()).toEqual(['b', 'c', 'e', 'f'])
    recent.take(fault({ ticketId: 'b' }))
    expect(recent.storyOf('b')?.map(({ kind }) => kind)).toEqual(['arrived', 'settled', 'fault-seen'])
  })

  it('keeps so many in a second of those that went well, and as many others', () => {
    const recent = new RecentTickets({ keptPerSecondMax: 2 })
    const settle = (ticketId: string, more: Partial<Settled>): void => {
      recent.take(arrived({ ticketId }))
      recent.take(settled({ ticketId, ...more }))
    }
    for (const ticketId of ['a', 'b', 'c']) settle(ticketId, { at: 1_000_000 })
    settle('refused', { at: 1_100_000, outcome: 'rejected' })
    settle('retried', { at: 1_200_000, attempts: 2 })
    settle('degraded', { at: 1_300_000, rung: 'cap-output' })
    settle('d', { at: 2_000_000 })
    settle('late', { at: 2_200_000, outcome: 'expired' })
    expect(recent.ticketIds()).toEqual(['a', 'b', 'refused', 'retried', 'd', 'late'])
    expect(recent.storyOf('c')).toBeUndefined()
  })

  it('keeps every ticket that is on its way', () => {
    const recent = new RecentTickets({ keptPerSecondMax: 0 })
    for (let i = 0; i < 100; i++) recent.take(arrived({ ticketId: `t${i}` }))
    expect(recent.ticketIds().length).toBe(100)
    recent.take(settled({ ticketId: 't7' }))
    expect(recent.storyOf('t7')).toBeUndefined()
  })

  it('keeps the beginning and the end of a story without end', () => {
    const recent = new RecentTickets({ entriesPerTicketMax: 3 })
    for (let at = 0; at < 10; at++) recent.take(arrived({ at }))
    expect(recent.storyOf('req_1')?.map((entry) => entry.at)).toEqual([0, 1, 9])
  })
})
