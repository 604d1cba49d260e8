import { LiveClock } from '../base/live-clock.ts'
import { addressProblem } from '../config/check-address.ts'
import { awsOfEnvironment, loadConfig } from '../config/load.ts'
import { type Command, textFlag, UsageError } from './command.ts'
import { ADMIN_FLAGS, BECAUSE_FLAG } from './http-admin-client.ts'
import { importReleases } from './import-releases.ts'

export const modelsImportSagemakerCommand: Command = {
  name: 'models import-sagemaker',
  summary: 'import the approved versions of a model package group of SageMaker as releases',
  about:
    'Versions that are completed and approved become releases, with their stage. An import serves nothing, and can be\n' +
    'repeated, as "spillway models import-mlflow". A new model gets as stable its version in the stage Production, else the\n' +
    'newest. Credentials come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.',
  flags: {
    group: { type: 'string', short: 'g', value: 'NAME', meaning: 'the model package group, or its ARN (required)' },
    as: { type: 'string', value: 'MODEL', meaning: 'the name of the model in Spillway (default: the group’s)' },
    region: { type: 'string', value: 'REGION', meaning: 'the region (or set AWS_REGION)' },
    endpoint: { type: 'string', value: 'URL', meaning: 'the address of a VPC endpoint (default: the region’s)' },
    ...BECAUSE_FLAG,
    ...ADMIN_FLAGS,
  },
  examples: ['spillway models import-sagemaker --group llama-8b --region eu-central-1 --because "nightly"'],
  async run(flags, io) {
    const group = textFlag(flags, 'group')
    if (group === undefined) throw new UsageError('--group is missing. Give the name of the model package group.')
    const { accessKeyId, secretKey, sessionToken, region: usual } = awsOfEnvironment()
    if (accessKeyId === undefined || secretKey === undefined) {
      throw new UsageError('credentials are missing. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.')
    }
    const region = textFlag(flags, 'region') ?? usual
    if (region === undefined || !/^[a-z0-9-]{1,32}$/.test(region)) {
      throw new UsageError('the region is missing or no name. Give --region, or set AWS_REGION, as eu-central-1.')
    }
    const endpoint = textFlag(flags, 'endpoint')
    const { hostsAllowed } = loadConfig({ path: textFlag(flags, 'config') }).upstreams
    const wrong = endpoint === undefined ? undefined : addressProblem(endpoint, hostsAllowed)
    if (wrong !== undefined) throw new UsageError(`--endpoint ${wrong}.`)
    const ask = {
      group,
      region,
      endpoint,
      credential: { accessKeyId, secretKey, sessionToken },
      clock: new LiveClock(),
    }
    const read = async () => (await import('../control/http-sagemaker-import.ts')).readSagemaker(ask)
    return importReleases(flags, io, { model: group.replace(/^.*\//, ''), read })
  },
}
