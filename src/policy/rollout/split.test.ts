import { describe, expect, it } from 'vitest'
import { chooseRelease, type Pin, type Split, type SplitAsk } from './split.ts'

const SPLIT: Split = {
  name: 'r',
  stickyBy: 'session',
  shares: [
    { release: 'canary', weight: 0.2 },
    { release: 'stable', weight: 0.8 },
  ],
  pins: [],
}
const ASK: SplitAsk = { tenantId: 't', keyId: 'k', session: 's', headers: { 'x-try': 'new' } }

describe('a pin', () => {
  const chosen = (pin: Omit<Pin, 'release'>): string =>
    chooseRelease({ ...SPLIT, pins: [{ release: 'pinned', ...pin }] }, ASK).because

  it.each<[string, Omit<Pin, 'release'>, boolean]>([
    ['its tenant', { tenantId: 't' }, true],
    ['another tenant', { tenantId: 'u' }, false],
    ['its key', { keyId: 'k' }, true],
    ['another key', { keyId: 'l' }, false],
    ['another key of its tenant', { tenantId: 't', keyId: 'l' }, false],
    ['a header with its value', { header: { name: 'x-try', value: 'new' } }, true],
    ['a header with another value', { header: { name: 'x-try', value: 'old' } }, false],
    ['a header with any value', { header: { name: 'x-try' } }, true],
    ['a header that is not sent', { header: { name: 'x-other' } }, false],
    ['its header and another tenant', { tenantId: 'u', header: { name: 'x-try' } }, false],
    ['nothing', {}, false],
  ])('that names %s', (_, pin, fits) => expect(chosen(pin)).toBe(fits ? 'pinned' : 'split'))
})

describe('a split', () => {
  const sessions = Array.from({ length: 2_000 }, (_, i) => ({ ...ASK, session: `s${i}` }))
  const isCanary = (split: Split, ask: SplitAsk): boolean => chooseRelease(split, ask).release === 'canary'
  const withCanary = (weight: number): Split => ({
    ...SPLIT,
    shares: [
      { release: 'canary', weight },
      { release: 'stable', weight: 1 - weight },
    ],
  })

  it('gives each release its part of the sessions, and each session one release', () => {
    const count = sessions.filter((ask) => isCanary(SPLIT, ask)).length
    expect(count / sessions.length).toBeGreaterThan(0.17)
    expect(count / sessions.length).toBeLessThan(0.23)
    for (const ask of sessions.slice(0, 50))
      expect(isCanary(SPLIT, { ...ask, keyId: 'other' })).toBe(isCanary(SPLIT, ask))
  })

  it('leaves its sessions to a canary that grows', () => {
    for (const ask of sessions.filter((one) => isCanary(SPLIT, one))) expect(isCanary(withCanary(0.4), ask)).toBe(true)
  })

  it('goes by the tenant, or by the key where there is no session', () => {
    const byTenant: Split = { ...SPLIT, stickyBy: 'tenant' }
    expect(new Set(sessions.map((ask) => isCanary(byTenant, ask))).size).toBe(1)
    const keys = sessions.map((_, i) => ({ ...ASK, session: undefined, keyId: `k${i}` }))
    expect(new Set(keys.map((ask) => isCanary(SPLIT, ask))).size).toBe(2)
  })

  it('has one release where there is only one', () => {
    const one = { ...SPLIT, shares: [{ release: 'stable', weight: 1 }] }
    expect(chooseRelease(one, ASK)).toEqual({ release: 'stable', because: 'only release' })
  })
})
