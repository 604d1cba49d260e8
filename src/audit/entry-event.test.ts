import { describe, expect, it } from 'vitest'
import type { Entry } from '../domain/entry.ts'
import { ENTRY_KINDS, entryEvent } from './entry-event.ts'

const AT = 1_000_000

const tenancy = (more: Partial<Extract<Entry, { kind: 'tenancy-changed' }>>): Entry => ({
  kind: 'tenancy-changed',
  at: AT,
  edit: 'change-key',
  level: 'key',
  name: 'alice',
  orgId: 'acme',
  tenantId: 'shop',
  by: 'root',
  because: 'contract 17',
  ...more,
})

describe('entries of the journal in the audit', () => {
  it.each([
    ['key.created', tenancy({ edit: 'create-key' })],
    ['key.changed', tenancy({ changed: ['weight', 'terms.allowance'] })],
    ['key.rotated', tenancy({ edit: 'rotate-key', changed: ['secrets'] })],
    ['key.revoked', tenancy({ edit: 'revoke-secret' })],
    ['key.removed', tenancy({ edit: 'remove-key' })],
    ['budget.changed', tenancy({ changed: ['terms.allowance'] })],
    ['policy.changed', tenancy({ edit: 'change-tenant', level: 'tenant', name: 'shop', changed: ['screening'] })],
    ['admin.tenant', tenancy({ edit: 'change-tenant', level: 'tenant', name: 'shop', changed: ['slo'] })],
    ['admin.org', tenancy({ edit: 'create-org', level: 'org', name: 'acme' })],
  ])('%s is told of a change in the tree', (kind, entry) => {
    expect(entryEvent(entry)).toMatchObject({
      kind,
      actor: { kind: 'admin', name: 'root' },
      org: 'acme',
      decision: { because: 'contract 17' },
    })
  })

  it('say who paused a tenant, who changed the mode of admission, and why', () => {
    const by = { by: 'root', because: 'contract 17' }
    const told = { actor: { kind: 'admin', name: 'root' } }
    expect(entryEvent({ kind: 'tenant-paused', at: AT, tenantId: 'shop', isPaused: true, ...by })).toMatchObject({
      kind: 'admin.tenant',
      tenant: 'shop',
      decision: { outcome: 'paused', because: 'contract 17' },
      ...told,
    })
    expect(entryEvent({ kind: 'mode-changed', at: AT, mode: 'observe', ...by })).toMatchObject({
      kind: 'policy.changed',
      decision: { outcome: 'observe', because: 'contract 17' },
      ...told,
    })
  })

  it('say of a key whose it is, and its name only where it is sealed', () => {
    const event = entryEvent(tenancy({}))
    expect(event).toMatchObject({ tenant: 'shop', key: 'alice' })
    const { key: _key, ...rest } = event ?? {}
    expect(JSON.stringify(rest)).not.toContain('alice')
  })

  it('say who acts: a person, or a part of the platform', () => {
    const changed = { kind: 'config-changed', at: AT, because: 'b', summary: 's', version: 'v' } as const
    expect(entryEvent({ ...changed, by: 'root' })?.actor).toEqual({ kind: 'admin', name: 'root' })
    expect(entryEvent({ ...changed, by: 'config' })?.actor).toEqual({ kind: 'platform', name: 'config' })
  })

  it.each([
    ['org', 'acme', { org: 'acme' }],
    ['tenant', 'shop', { tenant: 'shop' }],
    ['key', 'alice', { key: 'alice' }],
    ['model', 'shop/org/m', { tenant: 'shop', model: 'org/m' }],
    ['user', 'shop/u/1', { tenant: 'shop', user: 'u/1' }],
  ] as const)('tell a budget’s mark of %s %s, with names only where they are sealed', (scope, scopeId, found) => {
    const event = entryEvent({
      kind: 'budget-marked',
      at: AT,
      id: `${scope}:${scopeId}:month:0.8`,
      scope,
      scopeId,
      period: 'month',
      isHard: true,
      mark: 0.8,
      usedNano: 8,
      nanoMax: 10,
      usedTokens: 0,
      tokensMax: undefined,
      resetsAt: AT,
    })
    expect(event).toMatchObject({ kind: 'budget.marked', decision: { outcome: '80 %' }, ...found })
    expect(JSON.stringify(event?.detail)).not.toContain(scopeId)
  })

  it('leave out reports and measurements', () => {
    expect(entryEvent({ kind: 'replica-reported', at: AT, replicaId: 'r', isReady: true, because: '' })).toBeUndefined()
    expect(ENTRY_KINDS.has('settled')).toBe(false)
  })
})
