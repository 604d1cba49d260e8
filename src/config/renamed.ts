import { isObject, type Problem } from './explain.ts'
import { setIn } from './settings.ts'

/**
 * Settings that had another name once. The old name is still read, in the file and in the environment, and a line at
 * the start says what it is called now. Old and new name in one place with different values are a mistake: nobody can
 * say which was meant. Between the places the usual order holds: the environment wins over the file.
 */
interface Renamed {
  readonly from: readonly [section: string, key: string]
  readonly to: readonly [section: string, key: string]
  /** Where the name in the environment changed with it. */
  readonly env?: { readonly from: string; readonly to: string }
}

const RENAMED: readonly Renamed[] = [
  { from: ['retrieval', 'databaseUrl'], to: ['store', 'url'] },
  {
    from: ['retrieval', 'dataPath'],
    to: ['store', 'path'],
    env: { from: 'SPILLWAY_RETRIEVAL_DATA_PATH', to: 'SPILLWAY_STORE_PATH' },
  },
]

export const OLD_ENV_NAMES: readonly string[] = RENAMED.flatMap(({ env }) => env?.from ?? [])

export interface Moved {
  /** Old names that were used, by the path of the new one. */
  readonly oldNames: ReadonlyMap<string, Renamed['from']>
  readonly problems: readonly Problem[]
}

/** Puts what stands under an old name where the new one is; `tree` is what the file says. */
export function moveRenamed(tree: Record<string, unknown>): Moved {
  const oldNames = new Map<string, Renamed['from']>()
  const problems: Problem[] = []
  for (const { from, to } of RENAMED) {
    const section = tree[from[0]]
    if (!isObject(section) || section[from[1]] === undefined) continue
    const { [from[1]]: old, ...rest } = section
    tree[from[0]] = rest
    const target = tree[to[0]]
    const given = isObject(target) ? target[to[1]] : undefined
    if (given !== undefined && given !== old) {
      problems.push({ path: from, text: `and ${to.join('.')} are set differently. Keep ${to.join('.')} only` })
    }
    setIn(tree, to, given ?? old)
    oldNames.set(to.join('.'), from)
  }
  return { oldNames, problems }
}

export interface MovedEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly warnings: readonly string[]
  readonly problems: readonly string[]
}

/** The environment under its new names. An empty variable is an unset one. */
export function moveRenamedEnv(env: Readonly<Record<string, string | undefined>>): MovedEnvironment {
  const moved: Record<string, string | undefined> = { ...env }
  const warnings: string[] = []
  const problems: string[] = []
  for (const { env: names } of RENAMED) {
    const old = names === undefined ? undefined : env[names.from]
    if (names === undefined || !old) continue
    warnings.push(`${names.from} (environment) is called ${names.to} now.`)
    if (env[names.to] && env[names.to] !== old) {
      problems.push(`${names.from} and ${names.to} (environment) are set differently. Keep ${names.to} only.`)
    }
    moved[names.to] ||= old
  }
  return { env: moved, warnings, problems }
}
