/**
 * What do key look-ups and edits of the tenancy tree cost, and how does the cost grow?
 *
 * Trees of ten and of 100,000 tenants, one key each, 1,000 tenants to an org. The claims: a look-up by hash takes at most
 * 2 µs at 100,000 keys; building that tree takes at most 2 s; an edit there costs what it costs among ten tenants, but
 * for the depth of the maps (four nodes instead of one) and for memory that is not in the processor's cache. A plain
 * `Map` of the same hashes is timed beside, for comparison.
 *
 *   node bench/micro/key-lookup.ts [keys]
 */
import { hash } from 'node:crypto'
import { Rng } from '../../src/base/rng.ts'
import type { Actor } from '../../src/domain/actor.ts'
import type { KeyRecord, OrgRecord, TenantRecord, TreeEdit } from '../../src/domain/tenancy.ts'
import { applyEdit } from '../../src/policy/authority/apply-edit.ts'
import { KeyFinder } from '../../src/policy/authority/find-key.ts'
import { loadTree } from '../../src/policy/authority/load-tree.ts'
import type { TenancyTree } from '../../src/policy/authority/tree.ts'

const KEYS = Number(process.argv[2] ?? 100_000)
const TENANTS_PER_ORG = 1_000
const LOOKUPS = 1_000_000
const EDITS = 20_000
const NOW_MS = 1_800_000_000_000

const ROOT: Actor = { kind: 'operator', name: 'bench', role: 'platform-admin' }
const hashOf = (i: number): string => hash('sha256', `secret-${i}`, 'hex')
const NOTHING = { orgs: [], tenants: [], keys: [] }

function recordsOf(count: number) {
  const orgs = Array.from(
    { length: Math.ceil(count / TENANTS_PER_ORG) },
    (_, i): OrgRecord => ({
      id: `org-${i}`,
      source: 'registry',
      weight: 1,
      slos: ['steady'],
      terms: { models: ['m1', 'm2'] },
    }),
  )
  const tenants = Array.from(
    { length: count },
    (_, i): TenantRecord => ({
      id: `tenant-${i}`,
      orgId: `org-${Math.floor(i / TENANTS_PER_ORG)}`,
      source: 'registry',
      weight: 1,
      slo: 'steady',
      contract: 'degrade',
      bidMax: 0,
      terms: { allowance: { concurrencyMax: 100 } },
    }),
  )
  const keys = Array.from(
    { length: count },
    (_, i): KeyRecord => ({
      id: `key-${i}`,
      tenantId: `tenant-${i}`,
      source: 'registry',
      weight: 1,
      role: 'member',
      secrets: [{ hash: hashOf(i), createdAtMs: NOW_MS }],
      terms: { models: ['m1'], canManage: false },
    }),
  )
  return { orgs, tenants, keys }
}

/** Wall and processor time; the processor's is the truer one on a busy machine. */
function time<T>(work: () => T): { readonly result: T; readonly wallMs: number; readonly cpuMs: number } {
  const [cpuFrom, wallFrom] = [process.threadCpuUsage(), performance.now()]
  const result = work()
  const wallMs = performance.now() - wallFrom
  const { user, system } = process.threadCpuUsage(cpuFrom)
  return { result, wallMs, cpuMs: (user + system) / 1_000 }
}

const each = ({ wallMs, cpuMs }: { wallMs: number; cpuMs: number }, count: number): string =>
  `wall ${((wallMs * 1_000) / count).toFixed(2)} µs, processor ${((cpuMs * 1_000) / count).toFixed(2)} µs`

function timeEdits(tree: TenancyTree, count: number, rng: Rng, of: (i: number, n: number) => TreeEdit): string {
  let next = tree
  const edits = Array.from({ length: EDITS }, (_, i) => of(rng.below(count), i))
  const took = time(() => {
    for (const edit of edits) {
      const result = applyEdit(next, ROOT, edit, NOW_MS)
      if (result.kind === 'refused') throw new Error(result.refusal.because)
      next = result.tree
    }
  })
  return each(took, EDITS)
}

for (const count of [10, KEYS]) {
  const records = recordsOf(count)
  const built = time(() => loadTree(NOTHING, records))
  const { tree, setAside } = built.result
  if (setAside.length > 0) throw new Error('records were set aside')
  const { wallMs, cpuMs } = built
  console.log(`${count} keys: built in ${wallMs.toFixed(0)} ms (processor ${cpuMs.toFixed(0)} ms)`)

  const rng = Rng.stream(1, 'bench')
  // Hashes as a request makes them: strings of their own, not those that the tree holds.
  const asked = Array.from({ length: Math.min(LOOKUPS, 10 * count) }, () => hashOf(rng.below(count)))
  const finder = new KeyFinder()
  const lookUp = (): number => {
    let found = 0
    for (let i = 0; i < LOOKUPS; i++) {
      if (finder.find(tree, asked[i % asked.length] as string, NOW_MS).kind === 'found') found++
    }
    return found
  }
  const first = time(lookUp)
  const second = time(lookUp)
  if (first.result !== LOOKUPS || second.result !== LOOKUPS) throw new Error('a key was not found')
  console.log(`  look-up, first million: ${each(first, LOOKUPS)}; second: ${each(second, LOOKUPS)}`)
  const edited = applyEdit(tree, ROOT, { kind: 'change-tenant', because: 'bench', id: 'tenant-0', weight: 2 }, NOW_MS)
  if (edited.kind === 'refused') throw new Error(edited.refusal.because)
  const walk = time(() => records.keys.map((key) => finder.find(edited.tree, key.secrets[0]?.hash ?? '', NOW_MS).kind))
  // Ten look-ups are too few for a clock.
  if (count > 1_000) console.log(`  the first look-up of each key after an edit of a tenant: ${each(walk, count)}`)
  const plain = new Map(records.keys.map((key) => [key.secrets[0]?.hash ?? '', key]))
  const map = time(() => {
    let found = 0
    for (let i = 0; i < LOOKUPS; i++) if (plain.get(asked[i % asked.length] as string) !== undefined) found++
    return found
  })
  console.log(`  plain Map, for comparison: ${each(map, LOOKUPS)}`)

  const because = 'bench'
  const change = (i: number, n: number): TreeEdit => ({
    kind: 'change-tenant',
    because,
    id: `tenant-${i}`,
    weight: 1 + (n % 9),
  })
  const rotate = (i: number, n: number): TreeEdit => ({
    kind: 'rotate-key',
    because,
    id: `key-${i}`,
    hash: hashOf(10_000_000 + n),
    graceMs: 0,
  })
  timeEdits(tree, count, rng, change)
  console.log(`  change of a tenant: ${timeEdits(tree, count, rng, change)}`)
  console.log(`  rotation of a key: ${timeEdits(tree, count, rng, rotate)}`)
}
