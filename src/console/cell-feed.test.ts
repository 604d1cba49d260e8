import { describe, expect, it } from 'vitest'
import { settled, story } from '../../test/support/entries.ts'
import { CellFeed, type ConsoleReport, type ConsoleWants } from './cell-feed.ts'
import { ConsoleFeed } from './console-feed.ts'
import { COUNTED } from './minute-counts.ts'

const SECOND = 1_000_000
const START = 1_000 * SECOND
const VIEW: ConsoleWants = { what: 'view', tenants: [] }

/** A gateway that has served this many requests of each tenant, and refused one of the first. */
function gateway(name: string, requests: Readonly<Record<string, number>>): { own: ConsoleFeed; cell: CellFeed } {
  const own = new ConsoleFeed()
  let n = 0
  for (const [tenantId, count] of Object.entries(requests)) {
    for (let i = 0; i < count; i++)
      for (const entry of story(settled({ ticketId: `${name}-${n++}`, tenantId, model: 'm', at: START })))
        own.take(entry)
  }
  const [first = 'acme'] = Object.keys(requests)
  own.take(
    settled({ ticketId: `${name}-no`, tenantId: first, outcome: 'rejected', because: `full at ${name}`, at: START }),
  )
  own.take({ kind: 'replica-health', at: START + 2 * SECOND, replicaId: 'r', health: 'steady', because: '' })
  return { own, cell: new CellFeed(own, name) }
}

const count = (counts: readonly number[], name: (typeof COUNTED)[number]): number =>
  counts[COUNTED.indexOf(name)] as number
const NOW = START + 5 * SECOND

describe('CellFeed', () => {
  it('adds up what gateways see, and says how many it heard', () => {
    const [a, b] = [gateway('a', { acme: 3, globex: 1 }), gateway('b', { globex: 4 })]
    a.cell.hear(NOW, [b.cell.report(NOW, VIEW)], 3)
    const view = a.cell.view(NOW, 0)
    expect(view.gateways).toEqual({ heard: 2, of: 3 })
    expect(count(view.total, 'completed')).toBe(8)
    expect(view.tenants.map(({ name, counts }) => [name, count(counts, 'completed')])).toEqual([
      ['globex', 5],
      ['acme', 3],
    ])
    expect(a.cell.history(NOW).at(-1)).toMatchObject([START / SECOND, 6, 8, 2, 0, 0, 0, 500])
  })

  it('forgets a gateway that is not heard any more', () => {
    const [a, b] = [gateway('a', { acme: 3 }), gateway('b', { globex: 4 })]
    a.cell.hear(NOW, [b.cell.report(NOW, VIEW)], 2)
    a.cell.hear(NOW + 5 * SECOND, [], 2)
    const view = a.cell.view(NOW + 5 * SECOND, 0)
    expect(view.gateways).toEqual({ heard: 1, of: 2 })
    expect(view.tenants.map(({ name }) => name)).toEqual(['acme'])
  })

  it('numbers events of all gateways, each once', () => {
    const [a, b] = [gateway('a', { acme: 1 }), gateway('b', { globex: 1 })]
    a.cell.hear(NOW, [b.cell.report(NOW, VIEW)], 2)
    const first = a.cell.view(NOW, 0)
    // What the other told before it was heard of is its own past.
    expect(first.events.map(({ text }) => text)).not.toContainEqual(expect.stringContaining('full at b'))
    b.own.take(settled({ ticketId: 'late', tenantId: 'globex', outcome: 'rejected', because: 'still full', at: NOW }))
    const told = a.cell.lastEvent
    for (let i = 0; i < 2; i++) a.cell.hear(NOW + i, [b.cell.report(NOW, VIEW)], 2)
    const { events } = a.cell.view(NOW + 2, told)
    expect(events.map(({ ticketId }) => ticketId)).toEqual(['late'])
    expect(a.cell.view(NOW + 3, a.cell.lastEvent).events).toEqual([])
  })

  it('gives a tenant its own figures of all gateways, and nobody else’s', () => {
    const [a, b] = [gateway('a', { acme: 3 }), gateway('b', { acme: 2, globex: 4 })]
    a.cell.hear(NOW, [b.cell.report(NOW, { what: 'view', tenants: ['acme'] })], 2)
    const own = a.cell.ofTenant(NOW, 'acme', 0)
    expect(count(own.total, 'completed')).toBe(5)
    expect(JSON.stringify(own)).not.toContain('globex')
  })

  it('takes nothing from texts that are no reports, nor from itself', () => {
    const { cell } = gateway('a', { acme: 1 })
    const report = JSON.parse(gateway('b', { acme: 1 }).cell.report(NOW, VIEW)) as ConsoleReport
    const broken = [
      'null',
      '{',
      '[]',
      '{"gateway":"b"}',
      JSON.stringify({ ...report, seconds: 3 }),
      JSON.stringify({ ...report, view: { ...report.view, pools: {} } }),
      cell.report(NOW, VIEW),
    ]
    cell.hear(NOW, broken, 1)
    expect(cell.view(NOW, 0).gateways).toEqual({ heard: 1, of: 1 })
  })

  it('is bounded: a report of ten thousand tenants and many events stays small', () => {
    const { own, cell } = gateway('a', { acme: 1 })
    for (let i = 0; i < 10_000; i++)
      own.take(
        settled({ tenantId: `tenant-${i}`, outcome: 'rejected', because: 'x'.repeat(100), at: START + i * 1_000 }),
      )
    expect(cell.report(NOW, { what: 'view', tenants: [] }).length).toBeLessThan(100_000)
  })
})
