import { ConfigError } from '../config/config-error.ts'
import { NAME_PATTERN } from '../config/schema-fields.ts'
import { MlflowRegistry, type RegistryVersion } from '../store/http-mlflow.ts'

/**
 * Which releases does an MLflow registry hold? Versions that are ready become releases: where their weights are, when
 * they were made, and what they are called there (aliases, stages). What everybody gets is the champion, or the one in
 * production, or the newest.
 */
export interface MlflowAsk {
  readonly url: string
  readonly model: string
  readonly token?: string | undefined
}

export interface ImportedRelease {
  readonly version: string
  readonly artifact?: string
  readonly labels?: readonly string[]
  readonly createdAtS: number
}

export interface RegistryImport {
  readonly releases: readonly ImportedRelease[]
  readonly stable: string
  /** Versions that cannot be served, and why. */
  readonly skipped: readonly string[]
}

/** MLflow's word for "no stage". */
const NO_STAGE = 'None'
const STABLE_LABELS = ['champion', 'production']

export async function readMlflow({ url, model, token }: MlflowAsk): Promise<RegistryImport> {
  const registry = new MlflowRegistry({ url, token })
  try {
    const [models, versions] = await Promise.all([registry.models(model), registry.versions(model)])
    if (versions.kind === 'failed') throw problem(url, versions.because)
    if (models.kind === 'failed') throw problem(url, models.because)
    const aliases = models.items.find(({ name }) => name === model)?.aliases ?? {}
    if (versions.items.length === 0) throw problem(url, `it has no versions of a model "${model}"`)
    return importOf(versions.items, aliases)
  } finally {
    await registry.close()
  }
}

const problem = (url: string, because: string): ConfigError =>
  new ConfigError([`MLflow at ${withoutPassword(url)}: ${because}. Check --mlflow, --model and --mlflow-token.`])

const withoutPassword = (url: string): string => url.replace(/\/\/[^@/]*@/, '//')

export function importOf(
  versions: readonly RegistryVersion[],
  aliases: Readonly<Record<string, string>>,
): RegistryImport {
  const skipped: string[] = []
  const releases: ImportedRelease[] = []
  for (const one of versions.toSorted((a, b) => Number(a.version) - Number(b.version))) {
    if (one.status !== 'READY' && one.status !== '') skipped.push(`version ${one.version} is ${one.status}`)
    else if (!new RegExp(NAME_PATTERN).test(one.version)) skipped.push(`version "${one.version}" has no usable name`)
    else releases.push(toRelease(one, aliases))
  }
  const called = (label: string) =>
    releases.findLast(({ labels }) => labels?.some((known) => known.toLowerCase() === label))
  const stable = STABLE_LABELS.map(called).find(Boolean) ?? releases.at(-1)
  if (stable === undefined) throw new ConfigError([`no version can be served: ${skipped.join('; ')}.`])
  return { releases, stable: stable.version, skipped }
}

function toRelease(one: RegistryVersion, aliases: Readonly<Record<string, string>>): ImportedRelease {
  const { version, artifact, stage, createdAtMs } = one
  const own = Object.entries(aliases).flatMap(([alias, of]) => (of === version ? [alias] : []))
  const stages = stage === '' || stage === NO_STAGE ? [] : [stage]
  const labels = [...new Set([...one.aliases, ...own, ...stages])].sort()
  return {
    version,
    ...(artifact !== '' && { artifact: artifact.slice(0, 1_024) }),
    ...(labels.length > 0 && { labels }),
    createdAtS: Number.isFinite(createdAtMs) ? Math.max(0, Math.round(createdAtMs / 1_000)) : 0,
  }
}
