import { addressProblem } from '../config/check-address.ts'
import { loadConfig } from '../config/load.ts'
import { type Command, textFlag, UsageError } from './command.ts'
import { ADMIN_FLAGS, BECAUSE_FLAG } from './http-admin-client.ts'
import { importReleases } from './import-releases.ts'

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
    const token = textFlag(flags, 'mlflow-token')
    const read = async () => (await import('../control/http-mlflow-import.ts')).readMlflow({ url, model, token })
    return importReleases(flags, io, { model, read })
  },
}
