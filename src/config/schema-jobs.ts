import { Type } from '../base/schema.ts'
import { count, httpUrl, item, name, section } from './schema-fields.ts'
import { KEY_HASH_PATTERN } from './schema-tenants.ts'

export const OfflineSchema = section(
  {
    interTokenMs: Type.Optional(
      Type.Number({
        minimum: 0.1,
        maximum: 3_600_000,
        description:
          'Mean time between tokens, in milliseconds, up to which a replica is given requests of the band `offline`, where its step times are known; 0.48 of the tightest promise if absent. As long as the promise itself: offline work may fill a replica.',
      }),
    ),
    kvShare: Type.Number({
      default: 0.5,
      minimum: 0.01,
      maximum: 1,
      description: 'Share of a replica’s KV memory that requests of the band `offline` hold at most, beside others.',
    }),
    wasteRatioMax: Type.Number({
      default: 0.1,
      minimum: 0,
      maximum: 1,
      description:
        'Share of the tokens of the band `offline` that may be thrown away: when another request would wait, the youngest offline requests whose clients have seen nothing yet are called off, and run again later. 0: never.',
    }),
  },
  'What work that may wait takes of engines that serve others too.',
)

const BucketSchema = Type.Object(
  {
    url: httpUrl(
      'The bucket’s own address with a prefix, as `https://bucket.s3.eu-central-1.amazonaws.com/jobs`; every gateway on the same database needs the same.',
    ),
    region: Type.String({ default: 'us-east-1', minLength: 1, description: 'Region of the bucket.' }),
    accessKeyId: Type.Optional(Type.String({ minLength: 1, description: 'Name of the bucket’s access key.' })),
    apiKeyEnv: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
        description: 'Name of the environment variable with the secret access key.',
      }),
    ),
    apiKey: Type.Optional(Type.String({ minLength: 1, description: 'The secret itself; prefer `apiKeyEnv`.' })),
  },
  { additionalProperties: false, description: 'Bucket for the files of jobs, in place of a disk or the database.' },
)

const QueueSchema = item(
  {
    id: Type.String({
      pattern: '^[a-z0-9][a-z0-9-]{0,62}$',
      description: 'Name of the queue. What is known of its messages is kept under this name.',
    }),
    url: httpUrl('Address of the queue of SQS that messages come from, one line in each.'),
    answersUrl: httpUrl('Address of the queue of SQS that answers go to.'),
    region: Type.Optional(
      Type.String({
        pattern: '^[a-z0-9-]{1,64}$',
        description: 'Region of both queues; read from `url` if absent, else `us-east-1`.',
      }),
    ),
    keyHash: Type.String({
      pattern: KEY_HASH_PATTERN,
      description: 'Hash of the key that all lines of the queue run with, as `spillway keys create` prints it.',
    }),
    runningMax: Type.Integer({
      default: 64,
      minimum: 1,
      maximum: 10_000,
      description: 'Lines of the queue that one process runs at once.',
    }),
    receivesMax: Type.Integer({
      default: 5,
      minimum: 1,
      maximum: 1_000,
      description: 'Deliveries of one message; after that its line is answered with `too_many_receives`.',
    }),
    windowMinutes: Type.Integer({
      default: 60,
      minimum: 1,
      maximum: 660,
      description: 'For how long a line is tried. SQS hides a message for 12 hours at most.',
    }),
  },
  'A queue of SQS whose messages are lines of jobs.',
)

/** Jobs: files of requests that may wait (`/v1/batches`). The bounds of a file are OpenAI's. */
export const JobsSchema = section(
  {
    path: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'Folder for the files of jobs, where the database is embedded; `store.path` with `.files` behind it if absent. With a database server they rest in the database.',
      }),
    ),
    bucket: Type.Optional(BucketSchema),
    linesMax: count(50_000, { description: 'Lines of one file.' }),
    fileBytesMax: Type.Integer({
      default: 209_715_200,
      minimum: 1_024,
      maximum: 1_000_000_000,
      description: 'Bytes of one file.',
    }),
    openMax: count(100, { description: 'Jobs of one tenant that have not ended.' }),
    tokensMax: Type.Integer({
      default: 1_000_000_000,
      minimum: 1,
      maximum: 1_000_000_000_000,
      description: 'Prompt tokens in the jobs of one tenant that have not ended, about: four bytes count as one.',
    }),
    storedBytesMax: Type.Integer({
      default: 10_737_418_240,
      minimum: 1_024,
      maximum: 1_000_000_000_000,
      description: 'Bytes of all files of one tenant.',
    }),
    webhooks: Type.Array(
      item(
        {
          tenant: name('Tenant whose jobs are told of; at most one receiver for each.'),
          url: httpUrl('Address that is sent a POST when a job of the tenant has ended.'),
          secret: Type.String({
            pattern: '^whsec_[A-Za-z0-9+/=_-]{16,}$',
            description: 'What the POST is signed with, as Standard Webhooks has it: `whsec_` and base64.',
          }),
        },
        'A receiver of webhooks.',
      ),
      {
        default: [],
        description:
          'Receivers that are told when a job, or a response in the background, has ended (Standard Webhooks).',
      },
    ),
    escalate: Type.Array(name('A tenant.'), {
      default: [],
      description:
        'Tenants whose jobs run their lines in the band `standard` while they would end after their window, where their keys may use that band.',
    }),
    webhookPrivateAddresses: Type.Boolean({
      default: false,
      description:
        'Whether receivers may be at loopback, private or link-local addresses. Names are looked up, and checked, each time.',
    }),
    queues: Type.Array(QueueSchema, {
      default: [],
      maxItems: 64,
      description: 'Queues of SQS whose messages are lines of jobs. The package `@aws-sdk/client-sqs` is needed.',
    }),
    runningMax: Type.Integer({
      default: 256,
      minimum: 1,
      maximum: 10_000,
      description: 'Lines that one process runs at once, of all tenants together.',
    }),
  },
  'Jobs: files of requests that may wait (`/v1/batches`).',
)
