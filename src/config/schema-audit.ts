import { Type } from '../base/schema.ts'
import * as defaults from './defaults.ts'
import { count, httpUrl, item, section } from './schema-fields.ts'

/** The audit: what was decided and by whom, so that a later change of the record shows. */

const SinkSchema = item(
  {
    kind: Type.Enum(['file', 'stdout', 'http', 's3'], {
      description:
        'Where checkpoints go: appended to a file, printed on a line each, sent with POST, or put into a bucket under a name of their own.',
    }),
    path: Type.Optional(Type.String({ minLength: 1, description: 'The file, on another disk than the audit.' })),
    url: Type.Optional(
      httpUrl(
        'Address that is sent each checkpoint; for `s3`, the bucket’s own address with a prefix, as `https://bucket.s3.eu-central-1.amazonaws.com/audit`.',
      ),
    ),
    region: Type.Optional(Type.String({ minLength: 1, description: 'Region of the bucket; `us-east-1` if absent.' })),
    accessKeyId: Type.Optional(Type.String({ minLength: 1, description: 'Name of the bucket’s access key.' })),
    apiKeyEnv: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
        description:
          'Name of the environment variable with the secret: the bearer token for `http`, the secret access key for `s3`.',
      }),
    ),
    apiKey: Type.Optional(Type.String({ minLength: 1, description: 'The secret itself; prefer `apiKeyEnv`.' })),
  },
  'A place outside for checkpoints. One that is away delays and refuses nothing, and is counted.',
)

const strict = {
  description:
    'Whether no byte of an answer leaves before the decision on its request is on the disk, which takes about 10 ms. While the disk does not take it, such requests are refused with 503.',
}
const ON_FULL = {
  description:
    'What happens while the audit is full: requests are refused with 503 (`refuse`), or go on, and the gap is recorded when there is room again (`drop-and-record-gap`).',
}
const FULL_WORDS = ['refuse', 'drop-and-record-gap'] as const

/** What one tenant wants otherwise than the platform. */
export const TenantAuditSchema = item(
  {
    strict: Type.Optional(Type.Boolean({ description: `${strict.description} As \`audit.strict\` if absent.` })),
    onFull: Type.Optional(
      Type.Enum([...FULL_WORDS], { description: `${ON_FULL.description} As \`audit.onFull\` if absent.` }),
    ),
  },
  'What the audit does for this tenant otherwise than for all.',
)

export const AuditSchema = section(
  {
    enabled: Type.Boolean({
      default: false,
      description: 'Whether every decision and every change is written to the audit. Off, it costs nothing.',
    }),
    path: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'Folder of the audit; it must last. Each process has a chain of its own in it. `store.path` with `.audit` behind it if absent.',
      }),
    ),
    name: Type.String({
      default: 'spillway',
      pattern: '^[A-Za-z0-9][A-Za-z0-9._:/-]*$',
      maxLength: 100,
      description:
        'Name of this audit in its checkpoints, best an address of yours without its scheme, as `gateway-1.example.com/audit`. Give each gateway another.',
    }),
    keyFile: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'File with the key that signs checkpoints; made at the first start, for this user only. `signing.key` in the audit’s folder if absent.',
      }),
    ),
    bytesMax: Type.Integer({
      default: defaults.AUDIT_BYTES_MAX,
      minimum: 1_048_576,
      maximum: 100_000_000_000_000,
      description: 'Bytes of one process’ events at most; then the audit is full, until retention makes room.',
    }),
    retentionDays: Type.Integer({
      default: defaults.AUDIT_RETENTION_DAYS,
      minimum: 1,
      maximum: 36_500,
      description: 'Days for which events are kept. Whole segments go; checkpoints stay.',
    }),
    checkpointS: count(10, { description: 'Seconds between two checkpoints, if anything came.' }),
    strict: Type.Boolean({ default: false, ...strict }),
    onFull: Type.Enum([...FULL_WORDS], { default: 'drop-and-record-gap', ...ON_FULL }),
    search: Type.Boolean({
      default: true,
      description:
        'Whether the database gets a copy of events to search in (`GET /admin/v1/audit`). It is never the truth, and nothing waits for it.',
    }),
    witness: Type.Boolean({
      default: true,
      description:
        'Whether the gateways of other regions (`regions.peers`) get every checkpoint, and theirs are kept here.',
    }),
    sinks: Type.Array(SinkSchema, { default: [], maxItems: 8, description: 'Places outside for checkpoints.' }),
  },
  'The audit: what was decided and by whom, so that a later change of the record shows.',
)
