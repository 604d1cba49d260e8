import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DAY_MS, hashOf, ROOT } from '../../../test/support/administration.ts'
import { reachGrowth } from '../../../test/support/administration-laws.ts'
import { type Actor, KEY_ROLES, type KeyRole } from '../../domain/actor.ts'
import type { KeyTerms, TermsPatch } from '../../domain/key-terms.ts'
import type { TreeEdit } from '../../domain/tenancy.ts'
import { applyEdit } from './apply-edit.ts'
import { actorOfSecret } from './find-key.ts'
import { emptyTree } from './tree.ts'

const NOW_MS = 1_000 * DAY_MS
const END_MS = NOW_MS + 15_000
const because = 'test'

/** An org with an administrator for ever, one until `END_MS`, and keys that are stronger or weaker in some part. */
class Org {
  tree = emptyTree()
  nowMs = NOW_MS
  made = 0
  /** Secrets by key, the newest last. */
  readonly hashes = new Map<string, string[]>()
  /** Secrets that the administrator until `END_MS` knows. */
  readonly known = new Set<string>()
  /** Keys that a call made stronger than its actor. */
  readonly grown: string[] = []

  constructor() {
    this.call(ROOT, { kind: 'create-org', because, id: 'acme', slos: ['fast'] })
    this.call(ROOT, { kind: 'create-tenant', because, id: 'shop', orgId: 'acme' })
    this.add('boss', 'org-admin', {})
    this.add('guest', 'org-admin', { expiresAtMs: END_MS })
    this.add('near', 'org-admin', { clientRanges: ['10.0.0.0/8'] })
    this.add('meter', 'metrics-reader', {})
    this.add('app', 'org-admin', { canManage: false })
    this.known.add(this.newestOf('guest'))
  }

  add(id: string, role: KeyRole, terms: KeyTerms): void {
    const hash = this.newHash()
    this.call(ROOT, {
      kind: 'create-key',
      because,
      id,
      tenantId: 'shop',
      hash,
      role,
      terms: { canManage: true, ...terms },
    })
  }

  newHash = (): string => hashOf(++this.made)
  newestOf = (id: string): string => this.hashes.get(id)?.at(-1) ?? ''

  actor(id: string): Actor {
    return actorOfSecret(this.tree, this.newestOf(id), this.nowMs) ?? { ...GONE, name: id }
  }

  /** The rule that refuses the call, or 'applied'. */
  call(actor: Actor, edit: TreeEdit): string {
    const before = this.tree
    const result = applyEdit(before, actor, edit, this.nowMs)
    if (result.kind === 'refused') return result.refusal.rule
    this.tree = result.tree
    if (edit.kind === 'create-key' || edit.kind === 'rotate-key') {
      this.hashes.set(edit.id, [...(this.hashes.get(edit.id) ?? []), edit.hash])
      if (actor.name === 'guest' || [...this.known].some((hash) => actorHash(actor) === hash)) this.known.add(edit.hash)
    }
    this.grown.push(...reachGrowth(before, this.tree, actor, this.nowMs))
    return 'applied'
  }

  change = (by: string, id: string, terms: TermsPatch, role?: KeyRole): string =>
    this.call(this.actor(by), { kind: 'change-key', because, id, terms, ...(role !== undefined && { role }) })

  rotate = (by: string, id: string, graceMs = 0): string =>
    this.call(this.actor(by), { kind: 'rotate-key', because, id, hash: this.newHash(), graceMs })
}

const GONE: Actor = {
  kind: 'org-actor',
  name: '',
  orgId: 'acme',
  tenantId: 'shop',
  role: 'member',
  terms: { expiresAtMs: 0 },
}

const actorHash = (actor: Actor): string | undefined => (actor.kind === 'operator' ? undefined : actor.credential?.hash)

describe('an administrator for 15 seconds', () => {
  it('does not promote an unbounded reader to an administrator', () => {
    const org = new Org()
    expect(org.change('guest', 'meter', {}, 'org-admin')).toBe('expiresAtMs-within-actor')
    // Bounded as the actor is, the same is fine.
    expect(org.change('guest', 'meter', { expiresAtMs: END_MS }, 'org-admin')).toBe('applied')
  })

  it('does not add up the addresses that one key has and the time that another has', () => {
    const org = new Org()
    org.add('far', 'org-admin', { expiresAtMs: NOW_MS + 1_000, clientRanges: ['192.168.0.0/16'] })
    org.add('wide', 'org-admin', { clientRanges: ['10.0.0.0/8'] })
    // `far` would keep its own addresses, and get the end of `wide`.
    expect(org.change('wide', 'far', { expiresAtMs: null })).toBe('clientRanges-within-actor')
    expect(org.change('boss', 'far', { expiresAtMs: null })).toBe('applied')
  })

  it('does not make a reader of the whole org out of a member for ever, who reads its own tenant', () => {
    const org = new Org()
    org.add('peer', 'member', {})
    expect(org.change('guest', 'peer', {}, 'billing-reader')).toBe('expiresAtMs-within-actor')
    expect(org.change('boss', 'peer', {}, 'billing-reader')).toBe('applied')
  })

  it('may weaken a stronger key, and may change what has nothing to do with managing', () => {
    const org = new Org()
    expect(org.change('guest', 'near', { models: ['m'] })).toBe('applied')
    expect(org.change('guest', 'boss', { expiresAtMs: END_MS + DAY_MS })).toBe('applied')
    expect(org.change('guest', 'boss', { expiresAtMs: END_MS + 2 * DAY_MS })).toBe('expiresAtMs-within-actor')
  })

  it('does not keep the secret of a stronger key that did not manage for a while', () => {
    const org = new Org()
    expect(org.change('guest', 'boss', { canManage: false })).toBe('applied')
    expect(org.rotate('guest', 'boss')).toBe('applied')
    const give = { kind: 'change-key', because, id: 'boss', terms: { canManage: true } } as const
    expect(org.call(ROOT, give)).toBe('canManage-with-new-secret')
    expect(org.call(ROOT, { kind: 'revoke-secret', because, id: 'boss', hash: org.newestOf('boss') })).toBe('applied')
    expect(org.call(ROOT, give)).toBe('applied')
    expect(org.rotate('guest', 'boss')).toBe('expiresAtMs-within-actor')
    expect(org.call(ROOT, { kind: 'rotate-key', because, id: 'boss', hash: org.newHash(), graceMs: 0 })).toBe('applied')
    org.nowMs = END_MS
    for (const hash of org.known) expect(actorOfSecret(org.tree, hash, org.nowMs)).toBeUndefined()
  })
})

const idArb = fc.constantFrom('boss', 'guest', 'near', 'meter', 'app', 'new')
const termsArb: fc.Arbitrary<TermsPatch> = fc.record(
  {
    canManage: fc.boolean(),
    expiresAtMs: fc.constantFrom(null, END_MS, END_MS + DAY_MS),
    notBeforeAtMs: fc.constantFrom(null, NOW_MS),
    clientRanges: fc.constantFrom(null, ['10.0.0.0/8'], ['10.1.0.0/16', '192.168.0.0/16']),
  },
  { requiredKeys: [] },
)
const roleArb = fc.constantFrom(...KEY_ROLES)

/** A call, given the org as it is. */
type Draw = (org: Org) => TreeEdit

const anyCallArb: fc.Arbitrary<Draw> = fc.oneof(
  fc.tuple(idArb, termsArb, fc.option(roleArb, { nil: undefined })).map(
    ([id, terms, role]): Draw =>
      () => ({ kind: 'change-key', because, id, terms, ...(role !== undefined && { role }) }),
  ),
  fc.tuple(idArb, termsArb, roleArb).map(
    ([id, terms, role]): Draw =>
      (org) => ({ kind: 'create-key', because, id, tenantId: 'shop', hash: org.newHash(), role, terms }),
  ),
  termsArb.map(
    (terms): Draw =>
      () => ({ kind: 'change-tenant', because, id: 'shop', terms }),
  ),
  idArb.map(
    (id): Draw =>
      () => ({ kind: 'remove-key', because, id }),
  ),
)
/** Calls that strengthen nothing but by giving `canManage` back. */
const keepingCallArb: fc.Arbitrary<Draw> = fc.oneof(
  fc.tuple(idArb, fc.constantFrom(0, DAY_MS)).map(
    ([id, graceMs]): Draw =>
      (org) => ({ kind: 'rotate-key', because, id, hash: org.newHash(), graceMs }),
  ),
  idArb.map(
    (id): Draw =>
      (org) => ({ kind: 'revoke-secret', because, id, hash: org.newestOf(id) }),
  ),
  fc.tuple(idArb, fc.boolean()).map(
    ([id, canManage]): Draw =>
      () => ({ kind: 'change-key', because, id, terms: { canManage } }),
  ),
)

describe('over all keys of an org', () => {
  it('no call of any key leaves a key that manages more than the caller or the key did', () => {
    const stepArb = fc.tuple(idArb, fc.oneof(anyCallArb, keepingCallArb))
    fc.assert(
      fc.property(fc.array(stepArb, { maxLength: 30 }), (steps) => {
        const org = new Org()
        for (const [by, draw] of steps) org.call(org.actor(by), draw(org))
        expect(org.grown).toEqual([])
      }),
      { numRuns: 500 },
    )
  })

  it('an administrator until an instant knows no secret that manages from then on, whatever comes back to keys', () => {
    const stepArb = fc.oneof(
      fc.tuple(fc.constant('guest'), fc.oneof(anyCallArb, keepingCallArb)),
      fc.tuple(fc.constantFrom('boss', 'root'), keepingCallArb),
    )
    fc.assert(
      fc.property(fc.array(stepArb, { maxLength: 30 }), (steps) => {
        const org = new Org()
        for (const [by, draw] of steps) org.call(by === 'root' ? ROOT : org.actor(by), draw(org))
        org.nowMs = END_MS
        for (const hash of org.known) expect(actorOfSecret(org.tree, hash, org.nowMs)).toBeUndefined()
      }),
      { numRuns: 500 },
    )
  })
})
