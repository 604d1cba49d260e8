import { describe, expect, it } from 'vitest'
import { arrived, fault, settled, story } from '../../test/support/entries.ts'
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

  it('forgets the ticket that has been quiet for longest', () => {
    const recent = new RecentTickets({ ticketsMax: 2 })
    for (const ticketId of ['a', 'b', 'a', 'c']) recent.take(arrived({ ticketId }))
    expect(recent.ticketIds()).toEqual(['a', 'c'])
    expect(recent.storyOf('a')?.length).toBe(2)
  })

  it('keeps the beginning and the end of a story without end', () => {
    const recent = new RecentTickets({ entriesPerTicketMax: 3 })
    for (let at = 0; at < 10; at++) recent.take(arrived({ at }))
    expect(recent.storyOf('req_1')?.map((entry) => entry.at)).toEqual([0, 1, 9])
  })
})
