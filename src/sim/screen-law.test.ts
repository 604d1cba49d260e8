import { describe, expect, it } from 'vitest'
import { makeRequest } from '../../test/support/requests.ts'
import { screeningTerms } from '../../test/support/scripted-screener.ts'
import type { Entry } from '../domain/entry.ts'
import type { Screened } from '../domain/screening-entry.ts'
import type { Tenant } from '../domain/tenant.ts'
import { ScreenLaw } from './screen-law.ts'

const tenant: Tenant = { ...makeRequest().tenant, id: 't', screening: screeningTerms() }

/** Just what the law reads of an entry. */
const arrived = { kind: 'arrived', ticketId: 'x', tenantId: 't', at: 0 } as Entry
const granted = (at: number) => ({ kind: 'granted', ticketId: 'x', at }) as Entry
const screened = (at: number, verdict: Screened['verdict'] = 'passed', join: Screened['join'] = 'gate') =>
  ({ kind: 'screened', ticketId: 'x', at, verdict, join }) as Entry
const settled = (outcome: string, firstTokenAt?: number, attempts = 0) =>
  ({ kind: 'settled', ticketId: 'x', tenantId: 't', outcome, firstTokenAt, attempts, at: 99 }) as Entry

function broken(entries: readonly Entry[], tenants: readonly Tenant[] | 'unknown' = [tenant]): string[] {
  const found: string[] = []
  const law = new ScreenLaw(tenants === 'unknown' ? undefined : tenants, (_ticketId, what) => found.push(what))
  for (const entry of entries) law.take(entry)
  return found
}

describe('L14', () => {
  it.each([
    ['a verdict, a turn, a token', [arrived, screened(1), granted(2), settled('completed', 3, 1)]],
    ['a blocked one', [arrived, screened(1, 'blocked'), settled('blocked')]],
    [
      'a turn before the verdict that overlaps',
      [arrived, granted(1), screened(2, 'passed', 'overlap'), settled('completed', 2, 1)],
    ],
    [
      'an overlapping one that was blocked',
      [arrived, granted(1), screened(2, 'blocked', 'overlap'), settled('blocked', undefined, 1)],
    ],
    ['one that was refused before its verdict', [arrived, settled('rejected'), screened(5)]],
  ])('holds for %s', (_what, entries) => expect(broken(entries)).toEqual([]))

  it.each([
    ['an answer without a verdict', [arrived, granted(1), settled('completed', 2, 1)], 'without a verdict'],
    [
      'a token before the verdict',
      [arrived, granted(1), screened(3, 'passed', 'overlap'), settled('completed', 2, 1)],
      'first token came at 2',
    ],
    [
      'a turn before the verdict',
      [arrived, granted(1), screened(2), settled('completed', 3, 1)],
      'a turn before its verdict',
    ],
    [
      'a blocked one that is answered',
      [arrived, screened(1, 'blocked'), settled('completed', 3, 0)],
      'blocked, and answered',
    ],
    [
      'a blocked one at an engine',
      [arrived, screened(1, 'blocked'), granted(2), settled('blocked', undefined, 1)],
      'reached an engine',
    ],
    ['two verdicts', [arrived, screened(1), screened(2)], 'two verdicts'],
  ])('is broken by %s', (_what, entries, says) => expect(broken(entries).join()).toContain(says))

  it('looks at what was judged where tenants are not known, and at nothing where nobody has judges', () => {
    const entries = [arrived, granted(1), settled('completed', 2, 1)]
    const early = [arrived, granted(1), screened(3, 'passed', 'overlap'), settled('completed', 2, 1)]
    expect(broken(entries, 'unknown')).toEqual([])
    expect(broken(early, 'unknown')).toHaveLength(1)
    const { screening: _none, ...plain } = tenant
    expect(broken(early, [plain])).toEqual([])
  })
})
