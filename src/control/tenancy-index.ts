import { SortedNames } from '../base/sorted-names.ts'
import type { ListAsk, TreeLevel } from '../gateway/tenancy-admin.ts'
import { type RecordChange, sloInForce, type TenancyTree } from '../policy/authority/tree.ts'

/**
 * What would otherwise be searched in the whole tree at each change: ids in order, for lists, and which promises are
 * given. Both are made of the tree when they are first asked for, and then follow its changes: a change costs the same
 * with 100,000 tenants as with ten.
 */
export class TenancyIndex {
  #tree: TenancyTree
  #lists: Map<TreeLevel, LevelNames> | undefined
  /** The promise in force of each tenant, and how many have each. */
  #promiseOf: Map<string, string> | undefined
  readonly #promiseCounts = new Map<string, number>()

  constructor(tree: TenancyTree) {
    this.#tree = tree
  }

  /** Follows the tree; without changes everything is made anew. */
  follow(tree: TenancyTree, changes?: readonly RecordChange[]): void {
    this.#tree = tree
    if (changes === undefined) {
      this.#lists = undefined
      this.#promiseOf = undefined
      return
    }
    for (const change of changes) {
      this.#relist(change)
      this.#recount(change)
    }
  }

  /** In order of ids. */
  list(level: TreeLevel, { parentId, after = '', limit }: ListAsk): readonly string[] {
    this.#lists ??= listsOf(this.#tree)
    const names = this.#lists.get(level) as LevelNames
    if (parentId === undefined || level === 'org') return names.all.page({ after, limit })
    const prefix = underParent(parentId, '')
    const found = names.byParent.page({ after: prefix + after, prefix, limit })
    return found.map((name) => name.slice(prefix.length))
  }

  /** Names of the promises that tenants have. */
  promises(): readonly string[] {
    if (this.#promiseOf === undefined) {
      this.#promiseOf = new Map()
      this.#promiseCounts.clear()
      for (const [id] of this.#tree.tenants.entries()) this.#count(this.#promiseOf, id)
    }
    return [...this.#promiseCounts.keys()]
  }

  #relist({ level, before, after }: RecordChange): void {
    const names = this.#lists?.get(level)
    if (names === undefined) return
    const [was, is] = [parentOf(before), parentOf(after)]
    if (before !== undefined && (after === undefined || was !== is)) names.byParent.remove(underParent(was, before.id))
    if (before !== undefined && after === undefined) names.all.remove(before.id)
    if (after === undefined) return
    names.all.add(after.id)
    if (level !== 'org') names.byParent.add(underParent(is, after.id))
  }

  #recount(change: RecordChange): void {
    const promiseOf = this.#promiseOf
    const id = (change.after ?? change.before)?.id
    if (promiseOf === undefined || id === undefined || change.level === 'key') return
    if (change.level === 'tenant') this.#count(promiseOf, id)
    else if (String(change.before?.slos) !== String(change.after?.slos)) {
      for (const [tenantId] of this.#tree.tenantIds.get(id)?.entries() ?? []) this.#count(promiseOf, tenantId)
    }
  }

  /** Counts a tenant's promise as the tree has it now, instead of the one that was counted before. */
  #count(promiseOf: Map<string, string>, id: string): void {
    const was = promiseOf.get(id)
    const tenant = this.#tree.tenants.get(id)
    const org = tenant === undefined ? undefined : this.#tree.orgs.get(tenant.orgId)
    const is = tenant === undefined || org === undefined ? undefined : sloInForce(org, tenant)
    if (was === is) return
    if (is === undefined) promiseOf.delete(id)
    else promiseOf.set(id, is)
    const counts = this.#promiseCounts
    if (is !== undefined) counts.set(is, (counts.get(is) ?? 0) + 1)
    if (was === undefined) return
    const left = (counts.get(was) ?? 0) - 1
    if (left > 0) counts.set(was, left)
    else counts.delete(was)
  }
}

interface LevelNames {
  readonly all: SortedNames
  /** Ids behind their parent's. */
  readonly byParent: SortedNames
}

/** No id has this character: those of the file have no control characters either. */
const underParent = (parentId: string, id: string): string => `${parentId}\u0000${id}`

function parentOf(record: RecordChange['after']): string {
  if (record === undefined) return ''
  return 'orgId' in record ? record.orgId : 'tenantId' in record ? record.tenantId : ''
}

function listsOf(tree: TenancyTree): Map<TreeLevel, LevelNames> {
  const namesOf = (level: TreeLevel): LevelNames => {
    const all: string[] = []
    const under: string[] = []
    for (const [id, record] of tree[`${level}s`].entries()) {
      all.push(id)
      if (level !== 'org') under.push(underParent(parentOf(record), id))
    }
    return { all: new SortedNames(all), byParent: new SortedNames(under) }
  }
  return new Map((['org', 'tenant', 'key'] as const).map((level) => [level, namesOf(level)]))
}
