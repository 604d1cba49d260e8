import { describe, expect, it } from 'vitest'
import { DAY_MS, hashOf, ROOT } from '../../../test/support/administration.ts'
import type { Actor } from '../../domain/actor.ts'
import type { TreeEdit } from '../../domain/tenancy.ts'
import { applyEdit, type EditResult } from './apply-edit.ts'
import { actorOfSecret, KeyFinder } from './find-key.ts'
import { loadTree } from './load-tree.ts'
import { applyFact, emptyTree, sloInForce, type TenancyTree, type TreeBounds } from './tree.ts'

type Call = Omit<TreeEdit, 'because'> & { readonly because?: string }

const NOW_MS = 1_000 * DAY_MS

/** A tree that is changed call by call; a refused call fails the test. */
class Tree {
  value: TenancyTree
  nowMs = NOW_MS
  constructor(bounds: Partial<TreeBounds> = {}) {
    this.value = emptyTree(bounds)
  }
  try(edit: Call, actor: Actor = ROOT): EditResult {
    return applyEdit(this.value, actor, { because: 'test', ...edit } as TreeEdit, this.nowMs)
  }
  do(edit: Call, actor: Actor = ROOT): this {
    const result = this.try(edit, actor)
    if (result.kind === 'refused') throw new Error(`${result.refusal.rule}: ${result.refusal.because}`)
    this.value = result.tree
    return this
  }
  ruleOf(edit: Call, actor: Actor = ROOT): string {
    const result = this.try(edit, actor)
    return result.kind === 'refused' ? result.refusal.rule : 'applied'
  }
  readonly finder = new KeyFinder()
  find(hash: string) {
    return this.finder.find(this.value, hash, this.nowMs)
  }
  actor(hash: string): Actor {
    const actor = actorOfSecret(this.value, hash, this.nowMs)
    if (actor === undefined) throw new Error('no actor')
    return actor
  }
}

const [A, B, C] = [hashOf(0xa), hashOf(0xb), hashOf(0xc)]

/** Org acme with the tenant shop and the key web. */
const shop = (bounds: Partial<TreeBounds> = {}): Tree =>
  new Tree(bounds)
    .do({ kind: 'create-org', id: 'acme', slos: ['fast'] } as Call)
    .do({ kind: 'create-tenant', id: 'shop', orgId: 'acme' } as Call)
    .do({ kind: 'create-key', id: 'web', tenantId: 'shop', hash: A } as Call)

const admin = (tree: Tree, terms: object = {}): Actor =>
  tree
    .do({
      kind: 'create-key',
      id: 'boss',
      tenantId: 'shop',
      hash: B,
      role: 'org-admin',
      terms: { canManage: true, ...terms },
    } as Call)
    .actor(B)

describe('an edit', () => {
  it('makes facts that say who, why, before and after, and that make the same tree again', () => {
    const tree = shop()
    const result = tree.try({ kind: 'change-tenant', id: 'shop', weight: 3, because: 'grew' } as Call)
    expect(result).toMatchObject({
      facts: [
        {
          atMs: NOW_MS,
          by: 'root',
          byKind: 'operator',
          role: 'platform-admin',
          because: 'grew',
          orgId: 'acme',
          edit: 'change-tenant',
          level: 'tenant',
          before: { weight: 1 },
          after: { weight: 3, slo: 'fast' },
        },
      ],
    })
    if (result.kind !== 'applied') throw new Error('refused')
    expect(result.facts.reduce(applyFact, tree.value).tenants.get('shop')).toEqual(result.tree.tenants.get('shop'))
    expect(tree.value.tenants.get('shop')?.weight).toBe(1)
  })

  it('takes effect below at once: a model that the org loses, its keys lose', () => {
    const tree = shop().do({ kind: 'change-key', id: 'web', terms: { models: ['m1', 'm2'] } } as Call)
    const models = () => {
      const found = tree.find(A)
      return found.kind === 'found' ? found.found.terms.models : found.kind
    }
    expect(models()).toEqual(['m1', 'm2'])
    tree.do({ kind: 'change-org', id: 'acme', terms: { models: ['m2', 'm3'] } } as Call)
    expect(models()).toEqual(['m2'])
    expect(tree.ruleOf({ kind: 'change-key', id: 'web', terms: { models: ['m1'] } } as Call)).toBe(
      'models-within-parent',
    )
    // A change that does not name the models is not refused for them.
    tree.do({ kind: 'change-key', id: 'web', weight: 2 } as Call)
    tree.do({ kind: 'change-org', id: 'acme', terms: { models: null } } as Call)
    expect(models()).toEqual(['m1', 'm2'])
  })

  it('takes a promise from the org’s tenants too', () => {
    const tree = shop().do({ kind: 'change-org', id: 'acme', slos: ['slow', 'fast'] } as Call)
    const promise = () => sloInForce(tree.value.orgs.get('acme')!, tree.value.tenants.get('shop')!)
    expect(promise()).toBe('fast')
    tree.do({ kind: 'change-org', id: 'acme', slos: ['slow'] } as Call)
    expect(promise()).toBe('slow')
  })

  it('names the highest authority that forbids', () => {
    const tree = shop()
      .do({ kind: 'change-org', id: 'acme', terms: { models: ['m1'] } } as Call)
      .do({ kind: 'change-tenant', id: 'shop', terms: { expiresAtMs: NOW_MS + DAY_MS } } as Call)
    const refusal = (terms: object) => tree.try({ kind: 'change-key', id: 'web', terms } as Call)
    expect(refusal({ models: ['m2'] })).toMatchObject({ refusal: { authority: { kind: 'org', id: 'acme' } } })
    const later = refusal({ expiresAtMs: NOW_MS + 2 * DAY_MS })
    expect(later).toMatchObject({
      refusal: { rule: 'expiresAtMs-within-parent', authority: { kind: 'tenant', id: 'shop' } },
    })
  })

  it('removes a tenant with its keys, and an org only when it is empty', () => {
    const tree = shop()
    expect(tree.ruleOf({ kind: 'remove-org', id: 'acme' } as Call)).toBe('org-is-empty')
    tree.do({ kind: 'remove-tenant', id: 'shop' } as Call)
    expect([tree.find(A).kind, tree.value.keys.size, tree.value.keyIds.size]).toEqual(['unknown', 0, 0])
    tree.do({ kind: 'remove-org', id: 'acme' } as Call)
    expect(tree.value.orgs.size).toBe(0)
  })

  it.each([
    ['orgsMax', { kind: 'create-org', id: 'b', slos: ['fast'] }],
    ['tenantsMax', { kind: 'create-tenant', id: 'b', orgId: 'acme' }],
    ['tenantsPerOrgMax', { kind: 'create-tenant', id: 'b', orgId: 'acme' }],
    ['keysMax', { kind: 'create-key', id: 'b', tenantId: 'shop', hash: B }],
    ['keysPerTenantMax', { kind: 'create-key', id: 'b', tenantId: 'shop', hash: B }],
  ])('keeps the bound %s', (bound, edit) => {
    expect(shop({ [bound]: 1 }).ruleOf(edit as Call)).toBe('within-bound')
    expect(shop({ [bound]: 2 }).ruleOf(edit as Call)).toBe('applied')
  })

  it.each([
    [{ kind: 'create-org', id: 'x', slos: [] }, 'value-is-valid'],
    [{ kind: 'create-org', id: 'x', slos: ['a\n'] }, 'value-is-valid'],
    [{ kind: 'create-tenant', id: 'x', orgId: 'acme', slo: 'instant' }, 'slo-of-org'],
    [{ kind: 'create-tenant', id: 'x', orgId: 'nobody' }, 'exists'],
    [{ kind: 'change-tenant', id: 'shop', bidMax: -1 }, 'value-is-valid'],
    [{ kind: 'change-tenant', id: 'shop', contract: 'both' }, 'value-is-valid'],
    [{ kind: 'change-tenant', id: 'shop', queueUsMax: 0.5 }, 'value-is-valid'],
    [{ kind: 'create-key', id: 'x', tenantId: 'shop', hash: 'abc' }, 'value-is-valid'],
    [{ kind: 'create-key', id: 'x', tenantId: 'shop', hash: A }, 'hash-is-new'],
    [{ kind: 'create-key', id: 'x', tenantId: 'shop', hash: B, role: 'platform-admin' }, 'value-is-valid'],
    [{ kind: 'change-key', id: 'web', terms: { models: ['a', 'a'] } }, 'value-is-valid'],
    [
      { kind: 'change-key', id: 'web', terms: { models: Array.from({ length: 257 }, (_, i) => `m${i}`) } },
      'value-is-valid',
    ],
    [{ kind: 'change-key', id: 'web', terms: { routes: ['admin'] } }, 'value-is-valid'],
    [{ kind: 'change-key', id: 'web', terms: { clientRanges: ['10.1.2.3/8'] } }, 'value-is-valid'],
    [{ kind: 'change-key', id: 'web', terms: { allowance: { concurrencyMax: 0.5 } } }, 'value-is-valid'],
    [{ kind: 'change-key', id: 'web', terms: { expiresAtMs: 5, notBeforeAtMs: 5 } }, 'value-is-valid'],
    [{ kind: 'change-key', id: 'web', terms: { canManage: 'yes' } }, 'value-is-valid'],
    [{ kind: 'change-key', id: 'web', because: ' ' }, 'text-is-plain'],
    [{ kind: 'revoke-secret', id: 'web', hash: B }, 'exists'],
  ])('%j is refused: %s', (edit, rule) => expect(shop().ruleOf(edit as unknown as Call)).toBe(rule))
})

describe('a finder', () => {
  const all = (tree: Tree, hash: string) => {
    const answer = tree.find(hash)
    return answer.kind === 'found' ? answer.found : undefined
  }

  it('gives the same object until one of the three records changes', () => {
    const tree = shop()
    const first = all(tree, A)
    tree.do({ kind: 'create-tenant', id: 'other', orgId: 'acme' } as Call)
    expect(all(tree, A)).toBe(first)
    for (const edit of [
      { kind: 'change-org', id: 'acme', weight: 2 },
      { kind: 'change-tenant', id: 'shop', weight: 2 },
      { kind: 'change-key', id: 'web', weight: 2 },
    ]) {
      const before = all(tree, A)
      tree.do(edit as Call)
      expect(all(tree, A)).not.toBe(before)
      expect(all(tree, A)).toBe(all(tree, A))
    }
  })

  it('forgets what has gone, and remembers no stranger', () => {
    const tree = shop()
    for (let i = 0; i < 10; i++) expect(tree.find(hashOf(1_000 + i)).kind).toBe('unknown')
    expect(tree.finder.rememberedCount).toBe(0)
    tree.find(A)
    tree.do({ kind: 'remove-key', id: 'web' } as Call)
    expect(tree.find(A).kind).toBe('unknown')
    expect(tree.finder.rememberedCount).toBe(0)
    // Secrets that came and went, and that nobody asked for again.
    for (let i = 0; i < 1_200; i++) {
      tree.do({ kind: 'create-key', id: 'web', tenantId: 'shop', hash: hashOf(2_000 + i) } as Call)
      expect(tree.find(hashOf(2_000 + i)).kind).toBe('found')
      tree.do({ kind: 'remove-key', id: 'web' } as Call)
    }
    expect(tree.finder.rememberedCount).toBeLessThanOrEqual(1_001)
  })
})

it('keeps the screening of a tenant until an operator takes it back', () => {
  const tree = shop().do({ kind: 'change-tenant', id: 'shop', screening: { pii: 'redact' } } as Call)
  tree.do({ kind: 'change-tenant', id: 'shop', contract: 'reject' } as Call)
  expect(tree.value.tenants.get('shop')?.screening).toEqual({ pii: 'redact' })
  const end = { kind: 'change-tenant', id: 'shop', screening: null } as Call
  expect(tree.ruleOf(end, admin(tree))).toBe('role-allows')
  expect(tree.do(end).value.tenants.get('shop')).not.toHaveProperty('screening')
})

describe('storing of a tenant', () => {
  const storingOf = (tree: Tree) => tree.value.tenants.get('shop')?.storing

  it('is off at first, has defaults, is changed part by part, and ends', () => {
    const tree = shop()
    expect(storingOf(tree)).toBeUndefined()
    tree.do({ kind: 'change-tenant', id: 'shop', storing: { ttlS: 60 } } as Call)
    expect(storingOf(tree)).toEqual({ ttlS: 60, countMax: 10_000, bytesMax: 268_435_456 })
    tree.do({ kind: 'change-tenant', id: 'shop', storing: { countMax: 5 } } as Call)
    tree.do({ kind: 'change-tenant', id: 'shop', weight: 2 } as Call)
    expect(storingOf(tree)).toEqual({ ttlS: 60, countMax: 5, bytesMax: 268_435_456 })
    tree.do({ kind: 'change-tenant', id: 'shop', storing: null } as Call)
    expect(tree.value.tenants.get('shop')).not.toHaveProperty('storing')
    tree.do({ kind: 'create-tenant', id: 'late', orgId: 'acme', storing: {} } as Call)
    expect(tree.value.tenants.get('late')?.storing?.ttlS).toBe(2_592_000)
  })

  it.each([{ ttlS: 0 }, { ttlS: 31_536_001 }, { countMax: 1.5 }, { bytesMax: Number.NaN }])('refuses %j', (storing) => {
    expect(shop().ruleOf({ kind: 'change-tenant', id: 'shop', storing } as Call)).toBe('value-is-valid')
  })

  it('is granted by operators only; an org may end it', () => {
    const tree = shop().do({ kind: 'change-tenant', id: 'shop', storing: {} } as Call)
    const boss = admin(tree)
    const change = (storing: object | null) => tree.ruleOf({ kind: 'change-tenant', id: 'shop', storing } as Call, boss)
    expect([change({ ttlS: 5 }), change(null)]).toEqual(['role-allows', 'applied'])
  })
})

describe('a rotation', () => {
  it('lets the old secret live for the grace, and no third one beside', () => {
    const tree = shop().do({ kind: 'rotate-key', id: 'web', hash: B, graceMs: DAY_MS } as Call)
    expect([tree.find(A).kind, tree.find(B).kind]).toEqual(['found', 'found'])
    expect(tree.ruleOf({ kind: 'rotate-key', id: 'web', hash: C, graceMs: 1 } as Call)).toBe('two-live-secrets')
    tree.nowMs += DAY_MS - 1
    expect(tree.find(A).kind).toBe('found')
    tree.nowMs += 1
    expect([tree.find(A).kind, tree.find(B).kind]).toEqual(['secret-ended', 'found'])
    tree.do({ kind: 'rotate-key', id: 'web', hash: C, graceMs: DAY_MS } as Call)
    expect([A, B, C].map((hash) => tree.find(hash).kind)).toEqual(['unknown', 'found', 'found'])
  })

  it('without a grace ends all older secrets', () => {
    const tree = shop()
      .do({ kind: 'rotate-key', id: 'web', hash: B, graceMs: 7 * DAY_MS } as Call)
      .do({ kind: 'rotate-key', id: 'web', hash: C, graceMs: 0 } as Call)
    expect([A, B, C].map((hash) => tree.find(hash).kind)).toEqual(['unknown', 'unknown', 'found'])
  })

  it.each([-1, 0.5, 7 * DAY_MS + 1, Number.NaN])('refuses a grace of %s', (graceMs) => {
    expect(shop().ruleOf({ kind: 'rotate-key', id: 'web', hash: B, graceMs } as Call)).toBe('grace-within-week')
  })

  it('after a revocation gives the key a secret again', () => {
    const tree = shop().do({ kind: 'revoke-secret', id: 'web', hash: A } as Call)
    expect(tree.find(A).kind).toBe('unknown')
    tree.do({ kind: 'rotate-key', id: 'web', hash: B, graceMs: 0 } as Call)
    expect(tree.find(B).kind).toBe('found')
  })
})

describe('an org’s administrator', () => {
  it('is told the same of another org’s tenant and of one that does not exist', () => {
    const tree = shop()
      .do({ kind: 'create-org', id: 'globex', slos: ['fast'] } as Call)
      .do({ kind: 'create-tenant', id: 'secret', orgId: 'globex' } as Call)
    const boss = admin(tree)
    const told = (id: string) =>
      JSON.stringify(tree.try({ kind: 'remove-tenant', id } as Call, boss)).replaceAll(id, 'ID')
    expect(told('secret')).toBe(told('absent'))
    const made = (orgId: string) =>
      JSON.stringify(tree.try({ kind: 'create-tenant', id: 'x', orgId } as Call, boss)).replaceAll(orgId, 'ID')
    expect(made('globex')).toBe(made('absent'))
  })

  it('changes tenants and keys, and not its own org', () => {
    const tree = shop()
    const boss = admin(tree)
    expect(tree.ruleOf({ kind: 'change-tenant', id: 'shop', weight: 9 } as Call, boss)).toBe('applied')
    expect(tree.ruleOf({ kind: 'change-org', id: 'acme', weight: 9 } as Call, boss)).toBe('role-allows')
  })

  it('gives new managing keys its own bounds, and cannot go beyond them', () => {
    const tree = shop()
    const until = NOW_MS + DAY_MS
    const boss = admin(tree, { expiresAtMs: until, clientRanges: ['10.0.0.0/8'] })
    const make = (terms: object): Call =>
      ({
        kind: 'create-key',
        id: 'two',
        tenantId: 'shop',
        hash: C,
        role: 'org-admin',
        terms: { canManage: true, ...terms },
      }) as Call
    expect(tree.try(make({}), boss)).toMatchObject({
      facts: [{ after: { terms: { expiresAtMs: until, clientRanges: ['10.0.0.0/8'] } } }],
    })
    expect(tree.try(make({ expiresAtMs: until + 1 }), boss)).toMatchObject({
      refusal: { rule: 'expiresAtMs-within-actor', authority: { kind: 'key', id: 'boss' } },
    })
    expect(tree.ruleOf(make({ clientRanges: ['0.0.0.0/0'] }), boss)).toBe('clientRanges-within-actor')
    expect(tree.ruleOf(make({ canManage: false, expiresAtMs: until + 1 }), boss)).toBe('applied')
    expect(tree.ruleOf({ kind: 'change-key', id: 'boss', terms: { expiresAtMs: null } } as Call, boss)).toBe(
      'expiresAtMs-within-actor',
    )
  })

  it('with the old secret of a rotation cannot take the key over', () => {
    const tree = shop()
    const boss = admin(tree)
    tree.do({ kind: 'rotate-key', id: 'boss', hash: C, graceMs: DAY_MS } as Call)
    const again: Call = { kind: 'rotate-key', id: 'boss', hash: hashOf(0xd), graceMs: 0 } as Call
    expect(tree.ruleOf(again, boss)).toBe('expiresAtMs-within-actor')
    expect(tree.ruleOf(again, tree.actor(C))).toBe('applied')
    tree.nowMs += DAY_MS
    expect(tree.ruleOf({ kind: 'remove-key', id: 'web' } as Call, boss)).toBe('actor-is-live')
  })

  it('rotates its own key with the newest secret, wherever its bounds come from', () => {
    const tree = shop()
    admin(tree)
    const own = { kind: 'rotate-key', id: 'boss', hash: C, graceMs: DAY_MS } as Call
    tree.do({ kind: 'change-org', id: 'acme', terms: { expiresAtMs: NOW_MS + 9 * DAY_MS } } as Call)
    expect(tree.ruleOf(own, tree.actor(B))).toBe('applied')
    tree.do({ kind: 'change-tenant', id: 'shop', terms: { expiresAtMs: NOW_MS + 8 * DAY_MS } } as Call)
    expect(tree.ruleOf(own, tree.actor(B))).toBe('applied')
  })

  it('is not bound twice by its org, and cannot lift the bounds of its own tenant', () => {
    const tree = shop().do({ kind: 'change-org', id: 'acme', terms: { expiresAtMs: NOW_MS + 9 * DAY_MS } } as Call)
    const boss = admin(tree)
    const managing = { role: 'org-admin', terms: { canManage: true } }
    tree.do({ kind: 'create-key', id: 'two', tenantId: 'shop', hash: C, ...managing } as Call, boss)
    expect(tree.ruleOf({ kind: 'rotate-key', id: 'two', hash: hashOf(0xd), graceMs: 0 } as Call, boss)).toBe('applied')
    tree.do({ kind: 'change-tenant', id: 'shop', terms: { expiresAtMs: NOW_MS + DAY_MS } } as Call)
    const lift = { kind: 'change-tenant', id: 'shop', terms: { expiresAtMs: null } } as Call
    expect(tree.ruleOf(lift, tree.actor(B))).toBe('expiresAtMs-within-actor')
    expect(tree.ruleOf(lift)).toBe('applied')
  })

  it('of an org of the file without a weight cannot raise the org’s share', () => {
    const org = { id: 'Filed', source: 'file', slos: ['slow'], terms: {} } as const
    const tenant = {
      id: 'filed',
      orgId: 'Filed',
      weight: 1,
      slo: 'slow',
      contract: 'degrade',
      bidMax: 0,
      terms: {},
    } as const
    const tree = new Tree()
    const file = { orgs: [org], tenants: [], keys: [] }
    tree.value = loadTree(file, { orgs: [], tenants: [{ ...tenant, source: 'registry' }], keys: [] }).tree
    const actor: Actor = {
      kind: 'org-actor',
      name: 'jwt',
      orgId: 'Filed',
      tenantId: 'filed',
      role: 'org-admin',
      terms: {},
    }
    const edits = [
      { kind: 'create-tenant', id: 'x', orgId: 'Filed' },
      { kind: 'change-tenant', id: 'filed', weight: 9 },
    ]
    for (const edit of edits) {
      expect(tree.ruleOf(edit as Call, actor)).toBe('org-has-weight')
      expect(tree.ruleOf(edit as Call)).toBe('applied')
    }
  })
})
