import type { Actor, KeyRole } from '../../src/domain/actor.ts'
import { GRACE_MS_MAX, type KeyTerms } from '../../src/domain/key-terms.ts'
import type { KeyRecord, TreeEdit } from '../../src/domain/tenancy.ts'
import type { EditResult } from '../../src/policy/authority/apply-edit.ts'
import { KeyFinder } from '../../src/policy/authority/find-key.ts'
import { keyTermsInForce, type TenancyTree } from '../../src/policy/authority/tree.ts'
import {
  ADDRESSES,
  allowsAddress,
  call,
  DAY_MS,
  drawCall,
  excesses,
  makeWorld,
  type Person,
  type RandomCall,
  wholeAllowance,
} from './administration.ts'

/** The laws of administration, held against every one of many random calls. */
export interface AdministrationReport {
  readonly violations: readonly string[]
  /** Calls that were applied, by the edit's kind. */
  readonly applied: ReadonlyMap<string, number>
  /** Refusals, by rule. */
  readonly refused: ReadonlyMap<string, number>
}

const VIOLATIONS_MAX = 5
const CALLS_PER_WORLD = 250

export function administer(seed: number, calls: number): AdministrationReport {
  const violations: string[] = []
  const applied = new Map<string, number>()
  const refused = new Map<string, number>()
  // A world's own people lose their keys in the end; a new one begins with all of them.
  for (let done = 0; done < calls && violations.length < VIOLATIONS_MAX; ) {
    const world = makeWorld(seed + done)
    for (let i = 0; i < CALLS_PER_WORLD && done < calls; i++, done++) {
      world.nowMs += world.rng.below(DAY_MS / 16)
      const { tree: before, nowMs } = world
      const drawn = drawCall(world)
      const powerBefore = powerOf(drawn.person, before, nowMs)
      const result = call(world, drawn)
      const found = [
        ...(result.kind === 'refused' ? refusalFaults(result) : appliedFaults(before, drawn, result, nowMs)),
        ...gains(powerBefore, powerOf(drawn.person, world.tree, nowMs), drawn.person),
      ]
      for (const fault of found) {
        violations.push(
          `seed ${seed + done - i}, call ${i}, ${drawn.person.name} ${JSON.stringify(drawn.edit)}: ${fault}`,
        )
      }
      const [counts, name] = result.kind === 'refused' ? [refused, result.refusal.rule] : [applied, drawn.edit.kind]
      counts.set(name, (counts.get(name) ?? 0) + 1)
    }
  }
  return { violations, applied, refused }
}

/** Every refusal names its rule, and whose authority it protects, on one line. */
function refusalFaults({ refusal }: Extract<EditResult, { kind: 'refused' }>): string[] {
  const { rule, authority, because } = refusal
  const isNamed = !('id' in authority) || authority.id !== ''
  const isPlain = because.length > 10 && !/[\n\r]/.test(because)
  return rule !== undefined && isNamed && isPlain
    ? []
    : [`refusal without rule or authority: ${JSON.stringify(refusal)}`]
}

function appliedFaults(
  before: TenancyTree,
  { person, actor, edit }: RandomCall,
  { tree, facts }: Extract<EditResult, { kind: 'applied' }>,
  nowMs: number,
): string[] {
  return [
    ...reachFaults(before, tree, person),
    ...fileFaults(before, tree),
    ...facts.flatMap((fact) => {
      const records = {
        org: [before.orgs, tree.orgs],
        tenant: [before.tenants, tree.tenants],
        key: [before.keys, tree.keys],
      }
      const [was, is] = records[fact.level] as unknown as [TenancyTree['keys'], TenancyTree['keys']]
      const id = (fact.after ?? fact.before)?.id ?? ''
      const isTrue = was.get(id) === fact.before && is.get(id) === fact.after && fact.because === edit.because
      return isTrue ? [] : [`the fact about ${fact.level} ${id} is not what happened`]
    }),
    ...namedFaults(before, tree, edit),
    ...(actor.kind === 'operator' ? [] : reachGrowth(before, tree, actor, nowMs)),
    ...facts.flatMap((fact) => (fact.level === 'key' ? knownSecretFaults(fact.before, fact.after) : [])),
    ...Array.from(tree.keys.entries(), ([, key]) => keyFaults(tree, key, nowMs)).flat(),
    ...Array.from(tree.tenants.entries(), ([id, tenant]) => {
      const org = tree.orgs.get(tenant.orgId)
      return org?.slos.includes(tenant.slo) === true ? [] : [`${id} has a promise that its org has not`]
    }).flat(),
  ]
}

/** An actor of an org changes nothing outside, nor the org itself; an operator needs the role. */
function reachFaults(before: TenancyTree, tree: TenancyTree, { orgId, operatorRole }: Person): string[] {
  if (orgId === undefined) return operatorRole === 'platform-admin' ? [] : [`${operatorRole} has changed something`]
  const orgOfKey = (at: TenancyTree, { tenantId }: KeyRecord) => at.tenants.get(tenantId)?.orgId
  const changed = [
    ...changes(before.orgs, tree.orgs).map(([id]) => `org ${id}`),
    ...changes(before.tenants, tree.tenants).flatMap(([id, one]) => (one.orgId === orgId ? [] : [`tenant ${id}`])),
    ...changes(before.keys, tree.keys).flatMap(([id, one]) =>
      (orgOfKey(before, one) ?? orgOfKey(tree, one)) === orgId ? [] : [`key ${id}`],
    ),
  ]
  return changed.map((what) => `${what} is not the actor's to change`)
}

function changes<V>(before: { entries(): Iterable<readonly [string, V]> }, after: typeof before): Array<[string, V]> {
  const [was, is] = [new Map(before.entries()), new Map(after.entries())]
  const gone = [...was].filter(([id, record]) => is.get(id) !== record)
  return [...gone, ...[...is].filter(([id, record]) => was.get(id) !== record)]
}

function fileFaults(before: TenancyTree, tree: TenancyTree): string[] {
  return [
    ...changes<{ readonly source: string }>(before.orgs, tree.orgs),
    ...changes<{ readonly source: string }>(before.tenants, tree.tenants),
    ...changes<{ readonly source: string }>(before.keys, tree.keys),
  ].flatMap(([id, { source }]) => (source === 'file' ? [`${id} of the file has changed`] : []))
}

/** What an edit asks for by name lies within all parents. */
function namedFaults(before: TenancyTree, tree: TenancyTree, edit: TreeEdit): string[] {
  if (!('terms' in edit) || edit.terms === undefined) return []
  const key = tree.keys.get(edit.kind.endsWith('-key') ? edit.id : '')
  const tenant = tree.tenants.get(key?.tenantId ?? (edit.kind.endsWith('-tenant') ? edit.id : ''))
  const org = tenant === undefined ? undefined : before.orgs.get(tenant.orgId)
  const parents = [org?.terms, key === undefined ? undefined : tenant?.terms].filter((terms) => terms !== undefined)
  const named = Object.fromEntries(Object.entries(edit.terms).filter(([, value]) => value !== null)) as KeyTerms
  return parents.flatMap((parent) => {
    // A part that the edit does not name is the parent's.
    const whole = {
      ...parent,
      ...named,
      ...(named.allowance && { allowance: wholeAllowance(parent, named) }),
    }
    return excesses(parent, whole).map((what) => `asked for more than the parent has: ${what}`)
  })
}

const finder = new KeyFinder()

function keyFaults(tree: TenancyTree, key: KeyRecord, nowMs: number): string[] {
  const tenant = tree.tenants.get(key.tenantId)
  const org = tree.orgs.get(tenant?.orgId ?? '')
  if (tenant === undefined || org === undefined) return [`key ${key.id} has no parent`]
  const terms = keyTermsInForce(tree, key)
  const live = key.secrets.filter(({ endsAtMs }) => endsAtMs === undefined || endsAtMs > nowMs)
  const found = key.secrets.map(({ hash }) => finder.find(tree, hash, nowMs))
  return [
    ...[org.terms, tenant.terms, key.terms].flatMap((parent) => excesses(parent, terms)),
    ...(live.length > 2 ? [`key ${key.id} has ${live.length} live secrets`] : []),
    ...(key.secrets.filter(({ endsAtMs }) => endsAtMs === undefined).length > 1 ? ['two secrets without an end'] : []),
    ...(live.some(({ endsAtMs = 0 }) => endsAtMs > nowMs + GRACE_MS_MAX) ? ['a grace longer than a week'] : []),
    ...((key.role as string) === 'platform-admin' ? [`key ${key.id} is an operator`] : []),
    ...found.flatMap((one) => {
      if (one.kind !== 'found') return []
      const isOwn = one.found.key === key && one.found.tenant === tenant && one.found.org === org
      return isOwn && excesses(terms, one.found.terms).length === 0 ? [] : [`the finder is wrong about ${key.id}`]
    }),
  ]
}

/**
 * How long, from when and from where can this person manage, with each role? By role and address: the latest instant and
 * the earliest, over all secrets that the person knows.
 */
type Power = ReadonlyMap<string, { readonly until: number; readonly from: number }>

function powerOf({ knows, token }: Pick<Person, 'knows' | 'token'>, tree: TenancyTree, nowMs: number): Power {
  const power = new Map<string, { until: number; from: number }>()
  if (token?.kind === 'org-actor') addPower(power, token, nowMs)
  for (const hash of knows) {
    const key = tree.keys.get(tree.keyIdByHash.get(hash) ?? '')
    const secret = key?.secrets.find((one) => one.hash === hash)
    if (key === undefined || secret === undefined) continue
    const terms = keyTermsInForce(tree, key)
    if (terms.canManage === true) addPower(power, { role: key.role, terms }, nowMs, secret.endsAtMs)
  }
  return power
}

/** An administrator can do what every other role of its org can. */
function addPower(
  power: Map<string, { until: number; from: number }>,
  { role, terms }: { readonly role: KeyRole; readonly terms: KeyTerms },
  nowMs: number,
  endsAtMs = Infinity,
): void {
  const until = Math.min(terms.expiresAtMs ?? Infinity, endsAtMs)
  const from = terms.notBeforeAtMs ?? -Infinity
  if (until <= nowMs || until <= from) return
  for (const one of role === 'org-admin' ? ROLES_OF_ADMIN : [role]) {
    for (const address of ADDRESSES.filter((each) => allowsAddress(terms, each))) {
      const name = `${one} from ${address}`
      const known = power.get(name) ?? { until: -Infinity, from: Infinity }
      power.set(name, { until: Math.max(known.until, until), from: Math.min(known.from, from) })
    }
  }
}

/**
 * Over all keys, whoever knows their secrets: a key that manages after an org's call manages no more than the actor did,
 * or no more than the key itself did, each as a whole.
 */
export function reachGrowth(before: TenancyTree, after: TenancyTree, caller: Actor, nowMs: number): string[] {
  if (caller.kind === 'operator') return []
  const hash = caller.credential?.hash
  const actorPower =
    hash === undefined
      ? powerOf({ token: caller, knows: new Set() }, before, nowMs)
      : powerOf({ knows: new Set([hash]) }, before, nowMs)
  return Array.from(after.keys.entries()).flatMap(([id, key]) => {
    const now = keyPower(after, key, nowMs)
    const was = before.keys.get(id)
    const had = was === undefined ? new Map() : keyPower(before, was, nowMs)
    return isPowerWithin(actorPower, now) || isPowerWithin(had, now)
      ? []
      : [`the key ${id} manages more than its actor`]
  })
}

function keyPower(tree: TenancyTree, key: KeyRecord, nowMs: number): Power {
  const power = new Map<string, { until: number; from: number }>()
  const terms = keyTermsInForce(tree, key)
  if (terms.canManage === true) addPower(power, { role: key.role, terms }, nowMs)
  return power
}

const isPowerWithin = (outer: Power, inner: Power): boolean =>
  [...inner].every(([name, { until, from }]) => {
    const had = outer.get(name)
    return had !== undefined && until <= had.until && from >= had.from
  })

/** A key that begins to manage has no secret from before. */
function knownSecretFaults(before: KeyRecord | undefined, after: KeyRecord | undefined): string[] {
  if (before === undefined || before.terms.canManage === true || after?.terms.canManage !== true) return []
  const known = new Set(before.secrets.map(({ hash }) => hash))
  return after.secrets.some(({ hash }) => known.has(hash)) ? [`a known secret of ${after.id} begins to manage`] : []
}

const ROLES_OF_ADMIN: readonly KeyRole[] = ['org-admin', 'billing-reader', 'auditor', 'metrics-reader', 'member']

/** A person's own call gives it no role, no time and no address that it did not have before. */
function gains(before: Power, after: Power, { orgId }: Person): string[] {
  if (orgId === undefined) return []
  return [...after].flatMap(([name, { until, from }]) => {
    const had = before.get(name)
    if (had !== undefined && until <= had.until && from >= Math.min(had.from, from)) {
      return from >= had.from ? [] : [`manages earlier: ${name}`]
    }
    return [`manages longer or more: ${name}`]
  })
}
