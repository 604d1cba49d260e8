import { addressProblem } from '../config/check-address.ts'
import { loadConfig } from '../config/load.ts'
import { NAME_PATTERN } from '../config/schema-fields.ts'
import { type Command, textFlag, UsageError } from './command.ts'
import { ADMIN_FLAGS, AdminClient, BECAUSE_FLAG, becauseOf } from './http-admin-client.ts'

/** Releases in one call, below the server's bound of 200. */
const CALL_RELEASES_MAX = 100

interface KnownRelease {
  readonly version: string
  readonly artifact?: string
  readonly labels?: readonly string[]
}

export const modelsImportMlflowCommand: Command = {
  name: 'models import-mlflow',
  summary: 'import the versions of a model from an MLflow registry as releases',
  about:
    'Versions that are ready become releases, with their aliases and stages. An import serves nothing: give a release a\n' +
    'pool with "spillway models add", and requests with "spillway rollout start". The import can be repeated: releases\n' +
    'that exist are left alone. A new model gets as stable its champion, else its version in production, else the newest.',
  flags: {
    mlflow: { type: 'string', short: 'm', value: 'URL', meaning: 'the MLflow server (required)' },
    model: { type: 'string', value: 'NAME', meaning: 'the registered model in MLflow (required)' },
    as: { type: 'string', value: 'MODEL', meaning: 'the name of the model in Spillway (default: the same)' },
    'mlflow-token': { type: 'string', value: 'TOKEN', meaning: 'a bearer token; a user and password go into the URL' },
    ...BECAUSE_FLAG,
    ...ADMIN_FLAGS,
  },
  examples: ['spillway models import-mlflow --mlflow https://mlflow.example.org --model llama-8b --because "nightly"'],
  async run(flags, io) {
    const url = textFlag(flags, 'mlflow')
    const model = textFlag(flags, 'model')
    if (url === undefined) throw new UsageError('--mlflow is missing. Give the http address of the MLflow server.')
    const { hostsAllowed } = loadConfig({ path: textFlag(flags, 'config') }).upstreams
    const wrong = addressProblem(url, hostsAllowed)
    if (wrong !== undefined) throw new UsageError(`--mlflow ${wrong}.`)
    if (model === undefined) throw new UsageError('--model is missing. Give the name of the registered model.')
    const name = textFlag(flags, 'as') ?? model
    if (!new RegExp(NAME_PATTERN).test(name)) {
      throw new UsageError(`"${name}" cannot be the name of a model in Spillway. Give another name with --as.`)
    }
    const because = becauseOf(flags)
    const client = new AdminClient(flags)
    const { readMlflow } = await import('../control/http-mlflow-import.ts')
    const { releases, stable, skipped } = await readMlflow({ url, model, token: textFlag(flags, 'mlflow-token') })
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
    if (flags['json'] === true)
      io.out(JSON.stringify({ model: name, imported: news.map((one) => one.version), skipped }))
    else {
      const what = news.length === 0 ? 'Nothing new' : `Imported ${news.map(({ version }) => version).join(', ')}`
      io.out([`${what} for ${name}.`, ...skipped.map((one) => `Left out: ${one}.`)].join('\n'))
    }
    return 0
  },
}

const isSame = (known: KnownRelease, release: KnownRelease): boolean =>
  known.version === release.version &&
  (known.artifact ?? '') === (release.artifact ?? '') &&
  JSON.stringify(known.labels ?? []) === JSON.stringify(release.labels ?? [])
