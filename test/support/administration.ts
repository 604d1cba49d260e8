import { BlockList } from 'node:net'
import type { PersistentMap } from '../../src/base/persistent-map.ts'
import { Rng } from '../../src/base/rng.ts'
import { type Actor, KEY_ROLES, type KeyRole, type OperatorRole } from '../../src/domain/actor.ts'
import type { KeyTerms, TermsPatch } from '../../src/domain/key-terms.ts'
import type { KeyRecord, OrgRecord, TenantRecord, TreeEdit } from '../../src/domain/tenancy.ts'
import type { SpendLimit } from '../../src/domain/tenant.ts'
import { applyEdit } from '../../src/policy/authority/apply-edit.ts'
import { actorOfSecret } from '../../src/policy/authority/find-key.ts'
import { loadTree } from '../../src/policy/authority/load-tree.ts'
import type { TenancyTree } from '../../src/policy/authority/tree.ts'

/**
 * Random administrative calls by people of every role, for the laws of `policy/authority`. People know the secrets that
 * they made; they call with any of them, ended ones too, and lie about who they are.
 */

export const DAY_MS = 24 * 3_600_000
export const MODELS = ['m1', 'm2', 'm3', 'm4']
const RANGES = ['10.0.0.0/8', '10.1.0.0/16', '10.1.2.0/24', '192.168.0.0/16', '2001:db8::/32', '2001:db8:1::/48']
export const ADDRESSES = [
  '10.1.2.3',
  '10.1.9.9',
  '10.9.9.9',
  '192.168.1.1',
  '203.0.113.9',
  '2001:db8:1::1',
  '2001:db8:2::1',
]

export interface Person {
  readonly name: string
  /** The org that the person belongs to; undefined for operators. */
  readonly orgId: string | undefined
  readonly operatorRole?: OperatorRole
  /** An actor from an identity provider, which has no key. */
  readonly token?: Actor
  /** Hashes of the secrets that the person knows. */
  readonly knows: Set<string>
}

export interface World {
  readonly rng: Rng
  readonly people: readonly Person[]
  tree: TenancyTree
  nowMs: number
  made: number
}

const OPERATOR_ROLES: readonly OperatorRole[] = ['platform-admin', 'billing-reader', 'auditor', 'metrics-reader']

export const ROOT: Actor = { kind: 'operator', name: 'root', role: 'platform-admin' }

export function hashOf(n: number): string {
  return n.toString(16).padStart(64, '0')
}

/** Two orgs of the registry and one of the file, which has no weight; a key of every role in each. */
export function makeWorld(seed: number): World {
  const nowMs = 1_000 * DAY_MS
  let made = 0
  const orgs: OrgRecord[] = ['acme', 'globex'].map((id) => ({
    id,
    source: 'registry',
    weight: 1,
    slos: ['fast', 'slow'],
    terms: id === 'globex' ? {} : orgTerms(nowMs),
  }))
  orgs.push({ id: 'Filed', source: 'file', slos: ['slow'], terms: {} })
  const tenants = orgs.map(
    ({ id, source, slos }): TenantRecord => ({
      id: `${id}-t`,
      orgId: id,
      source,
      weight: 1,
      slo: slos[0] ?? '',
      contract: 'degrade',
      bidMax: 0,
      // The administrators of this tenant are bound by their tenant alone, whose terms they may change.
      terms: id === 'globex' ? { expiresAtMs: nowMs + 30 * DAY_MS, clientRanges: ['10.0.0.0/8'] } : {},
    }),
  )
  const shut = { canManage: false, canInfer: false, notBeforeAtMs: nowMs - 5 * DAY_MS }
  tenants.push({ ...(tenants[0] as TenantRecord), id: 'acme-shut', terms: shut })
  const people: Person[] = OPERATOR_ROLES.map((role) => ({
    name: `operator-${role}`,
    orgId: undefined,
    operatorRole: role,
    knows: new Set(),
  }))
  const keys = tenants
    .slice(0, 3)
    .flatMap((tenant) => [
      ...KEY_ROLES.map((role) => keyOf(tenant, role, role, {})),
      keyOf(tenant, 'weak', 'org-admin', { expiresAtMs: nowMs + 40 * DAY_MS, clientRanges: ['10.1.0.0/16'] }),
      keyOf(tenant, 'later', 'org-admin', { notBeforeAtMs: nowMs + DAY_MS }),
    ])
  function keyOf({ id, orgId, source }: TenantRecord, name: string, role: KeyRole, terms: KeyTerms): KeyRecord {
    const hash = hashOf(++made)
    people.push({ name: `${orgId}-${name}`, orgId, knows: new Set([hash]) })
    const secrets = [{ hash, createdAtMs: nowMs }]
    return { id: `${id}-${name}`, tenantId: id, source, weight: 1, role, secrets, terms: { canManage: true, ...terms } }
  }
  const terms = { expiresAtMs: nowMs + 20 * DAY_MS }
  const token: Actor = { kind: 'org-actor', name: 'jwt', orgId: 'acme', tenantId: 'acme-t', role: 'org-admin', terms }
  people.push({ name: 'acme-token', orgId: 'acme', token, knows: new Set() })
  const of =
    (source: string) =>
    <T extends { readonly source: string }>(all: readonly T[]) =>
      all.filter((one) => one.source === source)
  const split = (source: string) => ({ orgs: of(source)(orgs), tenants: of(source)(tenants), keys: of(source)(keys) })
  const bounds = { orgsMax: 5, tenantsMax: 14, keysMax: 40, tenantsPerOrgMax: 4, keysPerTenantMax: 12 }
  const { tree } = loadTree(split('file'), split('registry'), bounds)
  return { rng: Rng.stream(seed, 'administration'), people, tree, nowMs, made }
}

const orgTerms = (nowMs: number): KeyTerms => ({
  models: ['m1', 'm2', 'm3'],
  routes: ['chat'],
  bands: ['standard', 'offline'],
  clientRanges: ['10.0.0.0/8', '2001:db8::/32'],
  allowance: { requests: { perMinute: 100, burst: 100 }, concurrencyMax: 100 },
  expiresAtMs: nowMs + 50 * DAY_MS,
})

export interface RandomCall {
  readonly person: Person
  /** What the person says it is. */
  readonly actor: Actor
  readonly edit: TreeEdit
}

/** Most calls are by administrators whose secrets still count, or most would be refused for the role alone. */
export function drawCall(world: World): RandomCall {
  const { rng, people, tree, nowMs } = world
  const isAble = ({ knows, orgId, token, operatorRole }: Person): boolean =>
    orgId === undefined
      ? operatorRole === 'platform-admin'
      : token !== undefined || [...knows].some((hash) => actorOfSecret(tree, hash, nowMs)?.role === 'org-admin')
  const able = people.filter(isAble)
  const roots = able.filter(({ orgId }) => orgId === undefined)
  const person = pick(world, [people, able, able, roots][rng.below(4)] ?? able)
  const actor = drawActor(world, person)
  return { person, actor, edit: drawEdit(world, person, actor) }
}

/** Makes the call, and remembers the secret that the person has learned. */
export function call(world: World, { person, actor, edit }: RandomCall) {
  const result = applyEdit(world.tree, actor, edit, world.nowMs)
  if (result.kind === 'applied') {
    world.tree = result.tree
    if (edit.kind === 'create-key' || edit.kind === 'rotate-key') person.knows.add(edit.hash)
  }
  return result
}

export function pick<T>({ rng }: Pick<World, 'rng'>, list: readonly T[]): T {
  const one = list[rng.below(list.length)]
  if (one === undefined) throw new Error('nothing to choose from')
  return one
}

function drawActor(world: World, { name, orgId, operatorRole, token, knows }: Person): Actor {
  if (operatorRole !== undefined) return { kind: 'operator', name, role: operatorRole }
  if (token !== undefined && knows.size === 0) return token
  const secrets = [...knows]
  const live = secrets.filter((one) => actorOfSecret(world.tree, one, world.nowMs) !== undefined)
  const hash = pick(world, live.length === 0 || world.rng.below(8) === 0 ? secrets : live)
  const honest = actorOfSecret(world.tree, hash, world.nowMs)
  if (honest !== undefined && world.rng.below(4) > 0) return honest
  // A forgery: everything but the secret is invented.
  const lie = { orgId: pick(world, ['acme', 'globex', orgId ?? 'acme']), tenantId: 'globex-t', terms: {} }
  return { kind: 'org-actor', name, ...lie, role: 'org-admin', credential: { keyId: 'acme-t-org-admin', hash } }
}

function drawEdit(world: World, { orgId: own }: Person, actor: Actor): TreeEdit {
  const { rng, tree } = world
  const fresh = (stem: string): string => (rng.below(20) === 0 ? `Not\nplain` : `${stem}-${rng.below(30)}`)
  // Two calls in three stay in the caller's own org, or most would be refused for that alone.
  const isHome = own !== undefined && rng.below(3) > 0
  const idsOf = <T>(map: PersistentMap<T>, orgIdOf: (record: T) => string | undefined): string[] =>
    Array.from(map.entries()).flatMap(([id, record]) => (isHome && orgIdOf(record) !== own ? [] : [id]))
  const choose = (ids: readonly string[]): string =>
    rng.below(15) === 0 ? 'none' : pick(world, [...ids.toSorted(), 'none'])
  const orgId = choose(idsOf(tree.orgs, ({ id }) => id))
  const tenantId = choose(idsOf(tree.tenants, (tenant) => tenant.orgId))
  const anyKeyId = choose(idsOf(tree.keys, (key) => tree.tenants.get(key.tenantId)?.orgId))
  // People often try to help themselves: the key that they call with.
  const ownKeyId = actor.kind === 'operator' ? undefined : tree.keyIdByHash.get(actor.credential?.hash ?? '')
  const keyId = ownKeyId !== undefined && rng.below(3) === 0 ? ownKeyId : anyKeyId
  const because = rng.below(30) === 0 ? 'a\nb' : 'because'
  const values = { ...maybe(rng, 'weight', drawWeight(rng)), ...maybe(rng, 'terms', drawPatch(world)) }
  // A secret is new, or in use: nobody is told a hash, so nobody can bring back the hash of a removed secret.
  const used = Array.from(tree.keyIdByHash.entries(), ([known]) => known).sort()
  const hash = used.length > 0 && rng.below(15) === 0 ? pick(world, used) : hashOf(++world.made)
  const secret = tree.keys.get(keyId)?.secrets[0]?.hash ?? hash
  const role = maybe(rng, 'role', pick<KeyRole>(world, [...KEY_ROLES, 'org-admin', 'platform-admin' as KeyRole]))
  const slo = maybe(rng, 'slo', pick(world, ['fast', 'slow', 'instant']))
  const greedy = pick<TermsPatch>(world, [
    { canManage: true },
    { canManage: true, expiresAtMs: world.nowMs + rng.below(60) * DAY_MS },
    { canManage: true, clientRanges: ['10.0.0.0/8'] },
    { canManage: true, notBeforeAtMs: 0 },
  ])
  const edits: readonly TreeEdit[] = [
    { kind: 'create-org', because, id: fresh('o'), slos: ['fast'], ...values },
    { kind: 'change-org', because, id: orgId, ...values },
    { kind: 'remove-org', because, id: orgId },
    { kind: 'create-tenant', because, id: fresh('t'), orgId, ...values, ...slo },
    { kind: 'create-tenant', because, id: fresh('t'), orgId, ...values, ...slo },
    { kind: 'change-tenant', because, id: tenantId, ...values, ...slo },
    { kind: 'change-tenant', because, id: tenantId, ...values },
    rng.below(2) === 0 ? { kind: 'remove-tenant', because, id: tenantId } : { kind: 'remove-key', because, id: keyId },
    { kind: 'create-key', because, id: fresh('k'), tenantId, hash, ...role, ...values },
    { kind: 'create-key', because, id: fresh('k'), tenantId, hash, ...role, ...values },
    { kind: 'change-key', because, id: keyId, ...role, ...values },
    { kind: 'change-key', because, id: keyId, ...role, ...values },
    { kind: 'rotate-key', because, id: keyId, hash, graceMs: pick(world, [0, 1, DAY_MS, 7 * DAY_MS, 8 * DAY_MS]) },
    { kind: 'rotate-key', because, id: keyId, hash, graceMs: pick(world, [0, DAY_MS, 7 * DAY_MS]) },
    { kind: 'revoke-secret', because, id: keyId, hash: secret },
    // Attempts to manage for longer, or from elsewhere.
    { kind: 'change-tenant', because, id: tenantId, terms: { expiresAtMs: null, clientRanges: null } },
    { kind: 'change-key', because, id: keyId, terms: { expiresAtMs: null, clientRanges: null } },
    { kind: 'create-key', because, id: fresh('k'), tenantId, hash, role: 'org-admin', terms: greedy },
    { kind: 'change-key', because, id: keyId, role: 'org-admin' },
    { kind: 'change-key', because, id: keyId, terms: rng.below(2) === 0 ? { canManage: false } : greedy },
  ]
  return pick(world, edits)
}

function maybe<Name extends string, T>(rng: Rng, name: Name, value: T): { [K in Name]?: T } {
  return (rng.below(2) === 0 ? {} : { [name]: value }) as { [K in Name]?: T }
}

const drawWeight = (rng: Rng): number => [1, 2, 1_000_000, 0, Number.NaN, 2_000_000][rng.below(6)] ?? 1

function drawPatch(world: World): TermsPatch {
  const { rng, nowMs } = world
  const some = <T>(list: readonly T[]): T[] => list.filter(() => rng.below(2) === 0)
  const soon = (): number => nowMs + rng.below(60) * DAY_MS - DAY_MS
  const rate = (): number => [10, 100, 1_000][rng.below(3)] ?? 10
  const parts: Array<() => TermsPatch> = [
    () => ({ notBeforeAtMs: rng.below(3) === 0 ? null : soon() - 20 * DAY_MS }),
    () => ({ expiresAtMs: rng.below(3) === 0 ? null : soon() }),
    () => ({ models: rng.below(3) === 0 ? null : some(MODELS) }),
    () => ({ routes: rng.below(3) === 0 ? null : some(['chat', 'embeddings'] as const) }),
    () => ({ bands: rng.below(3) === 0 ? null : some(['interactive', 'standard', 'offline'] as const) }),
    () => ({ clientRanges: rng.below(3) === 0 ? null : some(RANGES) }),
    () => ({ allowance: rng.below(3) === 0 ? null : { requests: { perMinute: rate(), burst: rate() } } }),
    () => ({ allowance: { tokens: { perMinute: rate(), burst: rate() }, concurrencyMax: rate() } }),
    () => ({ allowance: { budgets: drawBudgets(rate, rng) } }),
    () => ({ canInfer: [true, false, null][rng.below(3)] ?? null }),
    () => ({ canManage: [true, true, false, null][rng.below(4)] ?? null }),
    () => ({ canManage: true }),
    () => ({ clientRanges: ['10.1.2.3/8'] }),
    () => ({ allowance: { concurrencyMax: Number.NaN } }),
  ]
  return Object.assign({}, ...Array.from({ length: 1 + rng.below(3) }, () => pick(world, parts)())) as TermsPatch
}

/** One budget in five is no budget: without an amount. */
function drawBudgets(rate: () => number, rng: Rng): SpendLimit[] {
  const amount = (): Partial<SpendLimit> =>
    [{ nanoMax: rate() }, { tokensMax: rate() }, { nanoMax: rate(), tokensMax: rate() }, { nanoMax: rate() }, {}][
      rng.below(5)
    ] ?? {}
  return (['month', 'day'] as const)
    .filter(() => rng.below(2) === 0)
    .map((period) => ({ period, isHard: rng.below(4) > 0, marks: [0.5], ...amount() }))
}

// ── Oracles: what terms allow, asked case by case, without the code under test ─────────────────────────────────────────

const lists = new Map<string, BlockList>()

/** Whether a range contains an address, as Node's own block list says. */
function rangeHas(range: string, address: string): boolean {
  const [network = '', bits] = range.split('/')
  const familyOf = (text: string): 'ipv4' | 'ipv6' => (text.includes(':') ? 'ipv6' : 'ipv4')
  let list = lists.get(range)
  if (list === undefined) {
    list = new BlockList()
    list.addSubnet(network, Number(bits ?? (familyOf(network) === 'ipv4' ? 32 : 128)), familyOf(network))
    lists.set(range, list)
  }
  return familyOf(network) === familyOf(address) && list.check(address, familyOf(address))
}

export const allowsAddress = ({ clientRanges }: KeyTerms, address: string): boolean =>
  clientRanges === undefined || clientRanges.some((range) => rangeHas(range, address))

/** Everything that the child may and the parent may not, in words. */
export function excesses(parent: KeyTerms, child: KeyTerms): string[] {
  const found: string[] = []
  const has = (list: readonly string[] | undefined, word: string): boolean => list?.includes(word) ?? true
  for (const model of MODELS) if (has(child.models, model) && !has(parent.models, model)) found.push(model)
  for (const route of ['chat', 'embeddings', 'files']) {
    if (has(child.routes, route) && !has(parent.routes, route)) found.push(route)
  }
  for (const band of ['interactive', 'standard', 'offline']) {
    if (has(child.bands, band) && !has(parent.bands, band)) found.push(band)
  }
  for (const address of ADDRESSES) {
    if (allowsAddress(child, address) && !allowsAddress(parent, address)) found.push(address)
  }
  if ((child.expiresAtMs ?? Infinity) > (parent.expiresAtMs ?? Infinity)) found.push('expires later')
  if ((child.notBeforeAtMs ?? -Infinity) < (parent.notBeforeAtMs ?? -Infinity)) found.push('begins earlier')
  const childLimits = limitsOf(child)
  for (const [i, [name, max]] of limitsOf(parent).entries())
    if ((childLimits[i]?.[1] ?? Infinity) > max) found.push(name)
  if (child.canInfer !== false && parent.canInfer === false) found.push('infers')
  if (child.canManage !== false && parent.canManage === false) found.push('manages')
  return found
}

/** Limits, and budgets of periods and kinds, that are not named are the parent's. */
export function wholeAllowance(parent: KeyTerms, named: KeyTerms): NonNullable<KeyTerms['allowance']> {
  const ours = named.allowance?.budgets ?? []
  const theirs = (parent.allowance?.budgets ?? []).filter(
    (one) => !ours.some(({ period, isHard }) => period === one.period && isHard === one.isHard),
  )
  return { ...parent.allowance, ...named.allowance, budgets: [...theirs, ...ours] }
}

function limitsOf({ allowance }: KeyTerms): ReadonlyArray<readonly [string, number]> {
  const { requests, tokens, concurrencyMax = Infinity, budgets = [] } = allowance ?? {}
  const least = (period: string, unit: 'nanoMax' | 'tokensMax', isHard = true): number => {
    let max = Infinity
    for (const one of budgets) if (one.period === period && one.isHard === isHard) max = Math.min(max, one[unit] ?? max)
    return max
  }
  return [
    ['requests', requests?.perMinute ?? Infinity],
    ['request burst', requests?.burst ?? Infinity],
    ['tokens', tokens?.perMinute ?? Infinity],
    ['token burst', tokens?.burst ?? Infinity],
    ['concurrency', concurrencyMax],
    ['money a month', least('month', 'nanoMax')],
    ['tokens a month', least('month', 'tokensMax')],
    ['money a day', least('day', 'nanoMax')],
    ['money a month, told', least('month', 'nanoMax', false)],
    ['tokens a month, told', least('month', 'tokensMax', false)],
    ['money a day, told', least('day', 'nanoMax', false)],
  ]
}
