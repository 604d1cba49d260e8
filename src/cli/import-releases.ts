import type { Io } from '../base/running.ts'
import { NAME_PATTERN } from '../config/schema-fields.ts'
import type { RegistryImport } from '../control/http-mlflow-import.ts'
import { type FlagValues, textFlag, UsageError } from './command.ts'
import { AdminClient, becauseOf } from './http-admin-client.ts'

/** Versions of another registry become releases of a running server: the part that all imports share. */

/** Releases in one call, below the server's bound of 200. */
const CALL_RELEASES_MAX = 100

interface KnownRelease {
  readonly version: string
  readonly artifact?: string
  readonly labels?: readonly string[]
}

/** Reads what the flags say of the import before anything is asked; `read` asks the other registry. */
export async function importReleases(
  flags: FlagValues,
  io: Io,
  { model, read }: { readonly model: string; readonly read: () => Promise<RegistryImport> },
): Promise<number> {
  const name = textFlag(flags, 'as') ?? model
  if (!new RegExp(NAME_PATTERN).test(name)) {
    throw new UsageError(`"${name}" cannot be the name of a model in Spillway. Give another name with --as.`)
  }
  const because = becauseOf(flags)
  const client = new AdminClient(flags)
  const { releases, stable, skipped } = await read()
  const { data } = await client.call<{ data: Array<{ name: string; releases: KnownRelease[] }> }>('GET', '/models')
  const known = data.find((one) => one.name === name)
  const news = releases.filter((release) => !known?.releases.some((one) => isSame(one, release)))
  for (let from = 0; from < news.length; from += CALL_RELEASES_MAX) {
    const part = news.slice(from, from + CALL_RELEASES_MAX).map((release) => ({ model: name, ...release }))
    const isFirst = from === 0 && known === undefined
    // The stable release comes with the model that names it.
    const all = isFirst && !part.some(({ version }) => version === stable)
    const first = all ? [{ model: name, ...releases.find(({ version }) => version === stable)! }, ...part] : part
    const body = { ...(isFirst && { model: { name, stable } }), releases: first, because }
    await client.call('POST', '/models', body)
  }
  if (flags['json'] === true) io.out(JSON.stringify({ model: name, imported: news.map((one) => one.version), skipped }))
  else {
    const what = news.length === 0 ? 'Nothing new' : `Imported ${news.map(({ version }) => version).join(', ')}`
    io.out([`${what} for ${name}.`, ...skipped.map((one) => `Left out: ${one}.`)].join('\n'))
  }
  return 0
}

const isSame = (known: KnownRelease, release: KnownRelease): boolean =>
  known.version === release.version &&
  (known.artifact ?? '') === (release.artifact ?? '') &&
  JSON.stringify(known.labels ?? []) === JSON.stringify(release.labels ?? [])
