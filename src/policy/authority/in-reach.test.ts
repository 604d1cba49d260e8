import { describe, expect, it } from 'vitest'
import { DAY_MS, makeWorld, ROOT } from '../../../test/support/administration.ts'
import { KEY_ROLES, type KeyRole, type OrgActor } from '../../domain/actor.ts'
import { applyEdit } from './apply-edit.ts'
import { actorOfSecret } from './find-key.ts'
import { idsInReach, readRefusal, recordInReach } from './in-reach.ts'
import { actorOfToken, orgRoleOf } from './token-actor.ts'

const { tree, people, nowMs } = makeWorld(1)
const LEVELS = ['org', 'tenant', 'key'] as const

const actors = people.flatMap(({ knows }) => [...knows].flatMap((hash) => actorOfSecret(tree, hash, nowMs) ?? []))

const actorOf = (orgId: string, role: KeyRole): OrgActor =>
  actors.find((one) => one.orgId === orgId && one.role === role && one.name.endsWith(role)) as OrgActor

describe('what somebody of an org can read', () => {
  it('is of its org alone, for every role, asked one by one and as lists', () => {
    expect(new Set(actors.map(({ role }) => role))).toEqual(new Set(KEY_ROLES))
    const orgOfKey = (id: string) => tree.tenants.get(tree.keys.get(id)?.tenantId ?? '')?.orgId
    for (const actor of actors) {
      for (const level of LEVELS) {
        for (const [id] of tree[`${level}s`].entries()) {
          const record = recordInReach(tree, actor, level, id)
          const orgId = level === 'org' ? id : level === 'tenant' ? tree.tenants.get(id)?.orgId : orgOfKey(id)
          if (orgId !== actor.orgId) expect(record).toBeUndefined()
          expect(idsInReach(tree, actor, level, undefined).includes(id)).toBe(record !== undefined)
        }
        for (const parentId of ['acme', 'globex', 'acme-t', 'globex-t', 'nobody']) {
          for (const id of idsInReach(tree, actor, level, parentId)) {
            expect(recordInReach(tree, actor, level, id)).toBeDefined()
          }
        }
      }
    }
  })

  it.each([
    ['org-admin', ['acme-shut', 'acme-t'], true, true],
    ['auditor', ['acme-shut', 'acme-t'], true, true],
    ['member', ['acme-t'], true, false],
    ['billing-reader', [], false, false],
    ['metrics-reader', [], false, false],
  ] as const)('for a key with the role %s', (role, tenantIds, readsTree, readsHistory) => {
    const actor = actorOf('acme', role)
    expect([...idsInReach(tree, actor, 'tenant', undefined)].sort()).toEqual(tenantIds)
    expect(readRefusal(actor, 'read-tree') === undefined).toBe(readsTree)
    expect(readRefusal(actor, 'read-history') === undefined).toBe(readsHistory)
  })
})

describe('the actor of a token', () => {
  const claim = {
    name: 'corp@ada',
    tenantId: 'globex-t',
    role: 'org-admin',
    terms: { expiresAtMs: nowMs + DAY_MS },
  } as const

  it('has its tenant’s org, and the terms of both', () => {
    expect(actorOfToken(tree, claim, nowMs)).toMatchObject({
      orgId: 'globex',
      terms: { expiresAtMs: nowMs + DAY_MS, clientRanges: ['10.0.0.0/8'] },
    })
  })

  it('is nobody without its tenant, after its end, and where the tenant may not manage', () => {
    expect(actorOfToken(tree, { ...claim, tenantId: 'nobody' }, nowMs)).toBeUndefined()
    expect(actorOfToken(tree, claim, nowMs + DAY_MS)).toBeUndefined()
    expect(actorOfToken(tree, { ...claim, tenantId: 'acme-shut' }, nowMs)).toBeUndefined()
  })

  it('is held against the tree when its edit’s turn comes', () => {
    const actor = actorOfToken(tree, claim, nowMs) as OrgActor
    const edit = { kind: 'create-tenant', id: 'new', orgId: 'globex', because: 'a test' } as const
    expect(applyEdit(tree, actor, edit, nowMs).kind).toBe('applied')
    expect(applyEdit(tree, actor, edit, nowMs + DAY_MS)).toMatchObject({ refusal: { rule: 'actor-is-live' } })
    const without = applyEdit(tree, ROOT, { kind: 'remove-tenant', id: 'globex-t', because: 'a test' }, nowMs)
    if (without.kind !== 'applied') throw new Error('it can be removed')
    expect(applyEdit(without.tree, actor, edit, nowMs)).toMatchObject({ refusal: { rule: 'actor-is-live' } })
    const moved = applyEdit(
      without.tree,
      ROOT,
      { kind: 'create-tenant', id: 'globex-t', orgId: 'acme', because: 'a test' },
      nowMs,
    )
    if (moved.kind !== 'applied') throw new Error('it can be made')
    expect(applyEdit(moved.tree, actor, edit, nowMs)).toMatchObject({ refusal: { rule: 'actor-is-live' } })
  })

  it('has one role, and none of the platform’s', () => {
    expect(orgRoleOf(['member', 'auditor', 'org-admin'])).toBe('org-admin')
    expect(orgRoleOf(['billing-reader', 'auditor'])).toBe('auditor')
    expect(orgRoleOf(['platform-admin', 'metrics-reader'])).toBeUndefined()
  })
})
