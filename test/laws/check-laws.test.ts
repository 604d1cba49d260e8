import { expect, it } from 'vitest'
import type { Entry } from '../../src/domain/entry.ts'
import { refused, settled, story } from '../support/entries.ts'
import { checkLaws } from './check-laws.ts'

/** The checker is only worth what it finds: each way of breaking a journal is tried on a good one. */

const good = (): Entry[] => [...story(), ...story(settled({ ticketId: 'req_2' }))]
const without = (kind: Entry['kind']): Entry[] => {
  const entries = good()
  entries.splice(
    entries.findIndex((entry) => entry.kind === kind),
    1,
  )
  return entries
}

it('finds nothing wrong with a good journal', () => {
  expect(checkLaws(good(), { isOver: true, concurrencyMaxOf: () => 1 })).toEqual([])
  const rejected = refused({ at: 1_000_000 })
  expect(checkLaws([story(rejected)[0]!, rejected], { isOver: true })).toEqual([])
})

it('lets a run that is not over have tickets alive', () => {
  const entries = without('settled')
  expect(checkLaws(entries)).toEqual([])
  expect(checkLaws(entries, { isOver: true })).toMatchObject([{ law: 'L1', what: 'it never ended' }])
})

const granted = good().find((entry) => entry.kind === 'granted')!
const ended = good().find((entry) => entry.kind === 'attempt-ended')!

it.each<[what: string, law: string, entries: Entry[]]>([
  ['a ticket that arrived twice', 'L1', [...story().slice(0, 1), ...story()]],
  ['a ticket that nobody saw arrive', 'L1', without('arrived')],
  ['a ticket that ended twice', 'L1', [...story(), settled()]],
  ['something after the end', 'L1', [...story(), { ...granted, attempt: 2 } as Entry]],
  ['a lease never returned', 'L2', without('attempt-ended')],
  ['a lease returned twice', 'L2', [...story().slice(0, 4), ended, settled()]],
  ['a lease returned and never granted', 'L2', without('granted')],
  ['attempts out of order', 'L2', [...story().slice(0, 2), { ...granted, attempt: 2 } as Entry, ended, settled()]],
  ['a turn before admission', 'L5', story(settled({ grantedAt: 900_000 }))],
  ['a token before the turn', 'L5', story(settled({ firstTokenAt: 1_200_000 }))],
  ['an end before the last token', 'L5', story(settled({ lastTokenAt: 2_500_000 }))],
  ['a miscounted attempt', 'L1', story(settled({ attempts: 2 }))],
  [
    'a completion that did not finish',
    'L1',
    story().map((e) => (e.kind === 'attempt-ended' ? { ...e, ending: 'lost' } : e)),
  ],
  ['a failure without a reason', 'L1', story(settled({ outcome: 'failed' }))],
  ['a rejection after admission', 'L1', story(refused({ admittedAt: 1_000_000 }))],
  [
    'more cached tokens than there were',
    'L1',
    story(settled({ usage: { promptTokens: 1, cachedTokens: 2, outputTokens: 1 } })),
  ],
])('finds %s', (_what, law, entries) => {
  expect(checkLaws(entries).map((violation) => violation.law)).toContain(law)
})

it('finds a replica with more leases than room', () => {
  const entries = [...story().slice(0, 3), ...story(settled({ ticketId: 'req_2' })).slice(0, 3)]
  expect(checkLaws(entries, { concurrencyMaxOf: () => 2 })).toEqual([])
  expect(checkLaws(entries, { concurrencyMaxOf: () => 1 })).toMatchObject([{ law: 'L2', ticketId: 'req_2' }])
})
