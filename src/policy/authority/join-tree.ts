import type { KeyRecord, OrgRecord, TenantRecord } from '../../domain/tenancy.ts'
import type { LoadedTree, TreeRecords } from './load-tree.ts'
import { applyFact, type RecordChange, type TenancyTree } from './tree.ts'

/**
 * How does a tree of file and store take up a change without being made anew?
 *
 * `loadTree` joins both sources record by record, which takes a second with 100,000 tenants. A change of the store, or of
 * the file, that touches nothing of the other source is applied by itself, and costs what it changes. Where the two meet
 * (one name in both, a parent that goes, a secret that another key has), undefined says: join anew. So it does where a
 * record that is set aside may come back, or stay so for another reason: with any change of the file, and with a change of
 * the store that brings or takes a parent, or frees a secret.
 *
 * Law: the tree is the one that `loadTree` makes of the same records.
 * Example: the file names a tenant that is new to both: one record more. It names a stored tenant: join anew.
 */
export function withStored({ tree, setAside }: LoadedTree, changes: readonly RecordChange[]): TenancyTree | undefined {
  const isOther = setAside.some((aside) => changes.some((change) => mayChange(change, aside)))
  return isOther ? undefined : withChanges(tree, changes, 'registry')
}

/** `changes` are those that `fileChanges` found. */
export function withFile({ tree, setAside }: LoadedTree, changes: readonly RecordChange[]): TenancyTree | undefined {
  return setAside.length > 0 ? undefined : withChanges(tree, changes, 'file')
}

/** May the record come back, or be set aside for another reason? */
function mayChange({ level, before, after }: RecordChange, aside: LoadedTree['setAside'][number]): boolean {
  if (aside.level === level && aside.id === (after ?? before)?.id) return true
  if (aside.because === 'in-file') return false
  if (aside.because === 'no-parent') return level !== 'key'
  // A key whose secret another one has: its tenant may go, which is the better reason.
  return level === 'key' || after === undefined
}

/** What is another between two versions of the file: children go before their parents, and come after them. */
export function fileChanges(
  before: TreeRecords,
  after: TreeRecords,
  isSame: (one: object, other: object) => boolean,
): readonly RecordChange[] {
  const orgs = changesOf<OrgRecord>(before.orgs, after.orgs, isSame).map((one) => ({ level: 'org', ...one }) as const)
  const tenants = changesOf<TenantRecord>(before.tenants, after.tenants, isSame).map(
    (one) => ({ level: 'tenant', ...one }) as const,
  )
  const keys = changesOf<KeyRecord>(before.keys, after.keys, isSame).map((one) => ({ level: 'key', ...one }) as const)
  const isGone = (change: RecordChange): boolean => change.after === undefined
  return [
    ...[...keys, ...tenants, ...orgs].filter(isGone),
    ...[...orgs, ...tenants, ...keys].filter((change) => !isGone(change)),
  ]
}

interface Changed<R> {
  readonly before: R | undefined
  readonly after: R | undefined
}

function changesOf<R extends { readonly id: string }>(
  before: readonly R[],
  after: readonly R[],
  isSame: (one: object, other: object) => boolean,
): Changed<R>[] {
  const was = new Map(before.map((record) => [record.id, record]))
  const changes: Changed<R>[] = []
  for (const record of after) {
    const old = was.get(record.id)
    was.delete(record.id)
    if (old === undefined || !isSame(old, record)) changes.push({ before: old, after: record })
  }
  for (const old of was.values()) changes.push({ before: old, after: undefined })
  return changes
}

function withChanges(
  tree: TenancyTree,
  changes: readonly RecordChange[],
  source: OrgRecord['source'],
): TenancyTree | undefined {
  let next = tree
  for (const change of changes) {
    const id = (change.after ?? change.before)?.id ?? ''
    const present = next[`${change.level}s`].get(id)
    if (present !== undefined && present.source !== source) return undefined
    if (change.after === undefined ? hasChildren(next, change.level, id) : !hasPlace(next, change)) return undefined
    next = applyFact(next, change)
  }
  return next
}

function hasChildren(tree: TenancyTree, level: RecordChange['level'], id: string): boolean {
  if (level === 'key') return false
  return (level === 'org' ? tree.tenantIds : tree.keyIds).has(id)
}

/** The record's parent is there, and nobody else has its secrets. */
function hasPlace(tree: TenancyTree, { level, after }: RecordChange): boolean {
  if (after === undefined || level === 'org') return true
  if ('orgId' in after) return tree.orgs.has(after.orgId)
  if (!('tenantId' in after) || !tree.tenants.has(after.tenantId)) return false
  return after.secrets.every(({ hash }) => (tree.keyIdByHash.get(hash) ?? after.id) === after.id)
}
