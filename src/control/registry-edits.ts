import { poolIdOf, versionsOf } from '../config/cross-check.ts'
import { nearest } from '../config/nearest.ts'
import type { Config, PoolConfig } from '../config/schema.ts'
import { toPools } from '../config/to-domain.ts'
import { checkEdit, checkTogether, type EntryProblem } from '../config/with-registry.ts'
import { releaseIdOf } from '../domain/fleet.ts'
import type { RegistryEdit, RegistryEntry, RegistryKind } from '../domain/registry.ts'
import type { AdminRefusal } from '../gateway/fleet-admin.ts'

/** Which edits of the registry make sense? Pure: entries and edits in, new entries or a refusal out. */

export type Edited =
  | { readonly kind: 'edited'; readonly entries: readonly RegistryEntry[] }
  | { readonly kind: 'refused'; readonly refusal: AdminRefusal }

export function editEntries(config: Config, entries: readonly RegistryEntry[], edits: readonly RegistryEdit[]): Edited {
  for (const edit of edits) {
    const refusal = inFile(config, edit) ?? (edit.body === undefined ? unknownOf(entries, edit) : undefined)
    if (refusal !== undefined) return { kind: 'refused', refusal }
  }
  const next = new Map(entries.map((entry) => [keyOf(entry), entry]))
  for (const { kind, name, body } of edits) {
    if (body === undefined) next.delete(keyOf({ kind, name }))
    else next.set(keyOf({ kind, name }), { kind, name, body })
  }
  const edited = [...next.values()]
  if (edited.length > ENTRIES_MAX) return { kind: 'refused', refusal: FULL }
  const put = edited.filter((entry) => edits.some((edit) => keyOf(edit) === keyOf(entry)))
  const problems = put.flatMap((entry) => checkEdit(config, entry))
  if (problems.length === 0) problems.push(...checkTogether(config, edited), ...orphans(config, edited))
  const [first] = problems
  return first === undefined
    ? { kind: 'edited', entries: edited }
    : { kind: 'refused', refusal: refusalOf(first, edits) }
}

/** Entries of the registry at most: more than any platform serves. All of them are in memory. */
const ENTRIES_MAX = 10_000

const FULL: AdminRefusal = {
  code: 'registry-full',
  because: `the registry has ${ENTRIES_MAX} entries already. Remove what is not used`,
  param: null,
}

/** The removal of a model also removes its releases and pools; what is removed is not drained any more. */
export function removalOf(entries: readonly RegistryEntry[], kind: RegistryKind, name: string): RegistryEdit[] {
  const belongs = (entry: RegistryEntry): boolean => {
    if (entry.kind === 'drain' && kind === 'pool') return entry.body['pool'] === name
    if (entry.kind === 'drain' && kind === 'replica') return entry.name === name
    return kind === 'model' && (entry.kind === 'rollout' ? entry.name === name : entry.body['model'] === name)
  }
  const along = entries.filter((entry) => belongs(entry))
  return [{ kind, name, body: undefined }, ...along.map((entry) => ({ ...entry, body: undefined }))]
}

/** A refusal for an entry that the file has. */
function inFile(config: Config, { kind, name }: RegistryEdit): AdminRefusal | undefined {
  const names: Readonly<Record<RegistryKind, () => readonly string[]>> = {
    model: () => config.models.map((model) => model.name),
    release: () =>
      config.models.flatMap((model) => versionsOf(model).map((version) => releaseIdOf(model.name, version))),
    pool: () => config.pools.map((pool: PoolConfig) => poolIdOf(pool)),
    replica: () => toPools(config).flatMap(({ pool }) => pool.replicas.map(({ id }) => id)),
    drain: () => [],
    pause: () => [],
    mode: () => [],
    rollout: () => [],
  }
  if (!names[kind]().includes(name)) return undefined
  const because = `the ${kind} ${name} is in the configuration file, which wins. Change the file, then reload it`
  return { code: 'in-configuration-file', because, param: kind }
}

function unknownOf(entries: readonly RegistryEntry[], { kind, name }: RegistryEdit): AdminRefusal | undefined {
  const names = entries.filter((entry) => entry.kind === kind).map((entry) => entry.name)
  if (names.includes(name)) return undefined
  const guess = nearest(name, names)
  const advice = guess === undefined ? '' : `. Did you mean "${guess}"?`
  return { code: `no-such-${kind}`, because: `there is no ${kind} ${name}${advice}`, param: kind }
}

/** Problems of releases whose model does not exist. */
function orphans(config: Config, entries: readonly RegistryEntry[]): EntryProblem[] {
  const known = [
    ...config.models.map((model) => model.name),
    ...entries.filter(({ kind }) => kind === 'model').map(({ name }) => name),
  ]
  return entries.flatMap(({ kind, name, body }) => {
    const model = String(body['model'])
    if (kind !== 'release' || known.includes(model)) return []
    const guess = nearest(model, known)
    const advice = guess === undefined ? `Known: ${known.join(', ')}` : `Did you mean "${guess}"?`
    return [{ kind, name, param: 'model', text: `is "${model}", but there is no such model. ${advice}` }]
  })
}

function refusalOf({ kind, name, param, text }: EntryProblem, edits: readonly RegistryEdit[]): AdminRefusal {
  const isRemoval = edits.every((edit) => edit.body === undefined)
  const at = param === '' ? kind : `${kind}.${param}`
  const because = `${kind} ${name}: ${param === '' ? 'it' : param} ${text}`
  return isRemoval ? { code: 'still-used', because, param: at } : { code: 'invalid-value', because, param: at }
}

const keyOf = ({ kind, name }: { readonly kind: string; readonly name: string }): string => `${kind}\u0000${name}`
