import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { isObject, type Path, type Problem } from './explain.ts'
import type { SecretFile } from './schema.ts'
import { settings } from './settings.ts'

/**
 * Secrets that stand in files, as Kubernetes and Docker mount them, instead of in the environment or in the settings:
 *
 *   DATABASE_URL_FILE=/run/secrets/database-url      for every variable of ours, and for those that `apiKeyEnv` names
 *   password: { file: /run/secrets/redis }           in the configuration file, for the settings of `IN_SETTINGS`
 *
 * The value is the file's text without the line breaks at its end. Which files were read is remembered, so that a change
 * of one of them can be noticed; their text is in no message.
 */
type Variables = Readonly<Record<string, string | undefined>>

/** Longer ones are no secrets but a mistake, and would be held in memory. */
const SECRET_BYTES_MAX = 65_536

const SUFFIX = '_FILE'

/** Names of settings that may be `{ file: PATH }` in the configuration file. */
const IN_SETTINGS: ReadonlySet<string> = new Set(['apiKey', 'password', 'secret', 'url'])

/** The secret in a file, or why there is none. */
export function readSecretFile(path: string): { readonly value: string } | { readonly problem: string } {
  try {
    const text = readFileSync(path)
    if (text.length > SECRET_BYTES_MAX) return { problem: `has ${text.length} bytes, more than a secret has` }
    const value = text.toString('utf8').replace(/[\r\n]+$/, '')
    return value === '' ? { problem: 'is empty' } : { value }
  } catch (error) {
    return { problem: `cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})` }
  }
}

/** A variable, from itself or from the file that `NAME_FILE` names. The variable wins only where it stands alone. */
export function variableOf(
  name: string,
  env: Variables,
): { readonly value: string | undefined; readonly file?: SecretFile; readonly problem?: string } {
  const path = env[`${name}${SUFFIX}`]
  if (!path) return { value: env[name] || undefined }
  if (env[name]) return { value: undefined, problem: `${name} and ${name}${SUFFIX} are both set. Keep one of them` }
  const read = readSecretFile(path)
  if ('value' in read) return { value: read.value, file: { name, path } }
  return { value: undefined, problem: `${name}${SUFFIX} names ${path}, which ${read.problem}` }
}

/** Variables of settings, whose `_FILE` is not a setting itself (`SPILLWAY_SHARING_REDIS_PASSWORD_FILE` is one). */
const NAMES = settings.flatMap(({ env }) => env ?? [])
export const FILE_VARIABLES: readonly string[] = NAMES.filter((name) => !NAMES.includes(`${name}${SUFFIX}`))

export const fileVariable = (name: string): string => `${name}${SUFFIX}`

/** The environment with the secrets of its files in it, under the names of the settings. */
export function withVariableFiles(env: Variables): {
  readonly env: Variables
  readonly files: readonly SecretFile[]
  readonly problems: readonly string[]
} {
  const found: Record<string, string> = {}
  const files: SecretFile[] = []
  const problems: string[] = []
  for (const name of FILE_VARIABLES) {
    if (!env[`${name}${SUFFIX}`]) continue
    const { value, file, problem } = variableOf(name, env)
    if (problem !== undefined) problems.push(`${problem}.`)
    if (value === undefined || file === undefined) continue
    found[name] = value
    const setting = settings.find((one) => one.env === name)
    files.push({ ...file, name: setting?.path.join('.') ?? name })
  }
  return { env: { ...env, ...found }, files, problems }
}

/** Puts the text of files where the tree says `{ file: PATH }`; a path is relative to the configuration file. */
export function laySecretFiles(
  tree: Record<string, unknown>,
  configPath: string | undefined,
): { readonly files: readonly SecretFile[]; readonly problems: readonly Problem[] } {
  const files: SecretFile[] = []
  const problems: Problem[] = []
  const walk = (node: unknown, path: Path): void => {
    if (Array.isArray(node)) for (const [i, one] of node.entries()) walk(one, [...path, i])
    if (!isObject(node)) return
    for (const [key, value] of Object.entries(node)) {
      const at = [...path, key]
      const named = IN_SETTINGS.has(key) ? fileNamed(value) : undefined
      if (named === undefined) {
        walk(value, at)
        continue
      }
      const file = resolve(dirname(configPath ?? '.'), named)
      const read = readSecretFile(file)
      if ('value' in read) {
        node[key] = read.value
        files.push({ name: at.join('.'), path: file })
      } else {
        // The check of the settings must not complain about the block itself, too.
        delete node[key]
        problems.push({ path: at, text: `is in ${file}, which ${read.problem}` })
      }
    }
  }
  walk(tree, [])
  return { files, problems }
}

function fileNamed(value: unknown): string | undefined {
  if (!isObject(value) || Object.keys(value).length !== 1) return undefined
  return typeof value['file'] === 'string' ? value['file'] : undefined
}
