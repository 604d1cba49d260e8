import { describe, expect, it } from 'vitest'
import { type Actor, KEY_ROLES, type KeyRole, type OperatorRole, ROLES } from '../../domain/actor.ts'
import { isRoleWithin, mayDo } from './may-do.ts'

const ACTIONS = [
  'change-org',
  'change-tenant',
  'change-key',
  'read-tree',
  'read-cost',
  'read-history',
  'read-metrics',
] as const

const keyActor = (role: KeyRole): Actor => ({
  kind: 'org-actor',
  name: 'k',
  orgId: 'acme',
  tenantId: 'shop',
  role,
  terms: {},
})
const operator = (role: OperatorRole): Actor => ({ kind: 'operator', name: 'o', role })

const allowed = (actor: Actor, orgId: string, tenantId: string): string =>
  ACTIONS.filter((action) => mayDo(actor, action, { orgId, tenantId }).kind === 'allowed').join(' ')

const READS = 'read-tree read-cost read-history read-metrics'

describe('roles', () => {
  it.each([
    [operator('platform-admin'), `change-org change-tenant change-key ${READS}`],
    [operator('billing-reader'), 'read-cost'],
    [operator('auditor'), 'read-tree read-history'],
    [operator('metrics-reader'), 'read-metrics'],
    [keyActor('org-admin'), `change-tenant change-key ${READS}`],
    [keyActor('billing-reader'), 'read-cost'],
    [keyActor('auditor'), 'read-tree read-history'],
    [keyActor('metrics-reader'), 'read-metrics'],
    [keyActor('member'), 'read-tree read-cost'],
  ])('of %j allow: %s', (actor, actions) => {
    expect(allowed(actor, 'acme', 'shop')).toBe(actions)
    // An operator's authority is the platform's, a key's ends with its org, a member's with its tenant.
    expect(allowed(actor, 'globex', 'shop')).toBe(actor.kind === 'operator' ? actions : '')
    expect(allowed(actor, 'acme', 'other')).toBe(actor.role === 'member' ? '' : actions)
    if (actor.kind === 'org-actor') expect(mayDo(actor, 'read-tree', {}).kind).toBe('refused')
  })

  it('refuse with the rule, whose authority, and who can do it', () => {
    expect(mayDo(keyActor('auditor'), 'change-key', { orgId: 'acme' })).toEqual({
      kind: 'refused',
      refusal: {
        rule: 'role-allows',
        authority: { kind: 'role', id: 'org-admin' },
        param: null,
        because: 'the role auditor does not include change-key. Ask somebody with the role platform-admin or org-admin',
      },
    })
    expect(mayDo(keyActor('org-admin'), 'change-key', { orgId: 'globex' })).toMatchObject({
      refusal: { rule: 'own-org', authority: { kind: 'org', id: 'acme' } },
    })
    expect(mayDo(keyActor('member'), 'read-cost', { orgId: 'acme' })).toMatchObject({
      refusal: { rule: 'own-tenant', authority: { kind: 'tenant', id: 'shop' } },
    })
  })

  it('lie within the administrator’s, and only there', () => {
    for (const role of ROLES) expect(isRoleWithin('platform-admin', role)).toBe(true)
    for (const role of KEY_ROLES) expect(isRoleWithin('org-admin', role)).toBe(true)
    expect(isRoleWithin('org-admin', 'platform-admin')).toBe(false)
    for (const role of KEY_ROLES.slice(1)) expect(isRoleWithin(role, 'org-admin')).toBe(false)
  })
})
