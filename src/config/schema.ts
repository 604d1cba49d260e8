import Type from 'typebox'
import { ADMISSION_DEFAULTS } from '../policy/admission/admission.ts'
import { DISPATCHER_DEFAULTS } from '../policy/dispatch/dispatch-options.ts'
import { FAIRNESS_NAMES } from '../policy/fairness/make-fairness.ts'
import * as defaults from './defaults.ts'
import { count, durationMs, port, section } from './schema-fields.ts'
import { ModelSchema, PoolSchema } from './schema-fleet.ts'
import { RegionsSchema } from './schema-regions.ts'
import { RetrievalSchema } from './schema-retrieval.ts'
import { RoutingSchema } from './schema-routing.ts'
import { AdminSchema, SloSchema, TenantSchema } from './schema-tenants.ts'

/**
 * Every setting there is: its name, its meaning, its bounds, its default. The settings page, `.env.example`, the
 * error messages and the types all come from here.
 *
 * A setting outside a list can also be given in the environment. Its name there is made from its path
 * (`server.bodyBytesMax` is SPILLWAY_SERVER_BODY_BYTES_MAX) unless `env` gives another: names that operators know from
 * elsewhere stay as they are.
 */

const ServerSchema = section(
  {
    host: Type.String({
      default: defaults.HOST,
      minLength: 1,
      env: 'HOST',
      description: 'Address to listen on. Anything but loopback needs a configuration file with tenants of your own.',
    }),
    port: port({ default: defaults.PORT, env: 'PORT', description: 'Port to listen on; 0 takes any free one.' }),
    basePath: Type.String({
      default: '',
      pattern: '^(/[A-Za-z0-9._~-]+)*$',
      description: 'Path in front of every route, as `/llm`, for servers behind a shared address.',
    }),
    bodyBytesMax: count(defaults.BODY_BYTES_MAX, { description: 'Larger request bodies get 413.' }),
    headersTimeoutMs: durationMs(defaults.HEADERS_TIMEOUT_MS, {
      minimum: 1,
      description: 'A client must have sent its headers within this time, or is closed.',
    }),
    requestTimeoutMs: durationMs(defaults.REQUEST_TIMEOUT_MS, {
      minimum: 1,
      description: 'A client must have sent headers and body within this time, or is closed.',
    }),
    idleTimeoutMs: durationMs(defaults.IDLE_TIMEOUT_MS, {
      minimum: 1,
      description: 'A kept-alive connection without a request is closed after this time.',
    }),
    stalledReaderMs: durationMs(defaults.STALLED_READER_MS, {
      minimum: 1,
      description: 'A client that stops reading its answer is cut off after this time.',
    }),
    keepAliveMs: durationMs(defaults.KEEP_ALIVE_MS, {
      minimum: 1,
      description: 'A stream that waits this long for its first token gets its headers, then a comment as often.',
    }),
    shutdownDelayMs: durationMs(defaults.SHUTDOWN_DELAY_MS, {
      description:
        'After SIGTERM `/health/ready` says no for this long before anybody is turned away: time for balancers to look.',
    }),
    shutdownGraceMs: durationMs(defaults.SHUTDOWN_GRACE_MS, {
      description: 'After SIGTERM running answers may take this long; then they end with an error frame.',
    }),
    connectionsMax: count(defaults.CONNECTIONS_MAX, { description: 'Connections open at once; more are refused.' }),
    metricsHost: Type.Optional(
      Type.String({ minLength: 1, description: 'Address of the metrics listener; `server.host` if absent.' }),
    ),
    metricsPort: Type.Optional(
      port({ description: 'Serves `/metrics` on a port of its own; on the main one if absent.' }),
    ),
  },
  'The front door.',
)

const QueueSchema = section(
  {
    requestsMax: count(DISPATCHER_DEFAULTS.queueRequestsMax, {
      env: 'MAX_QUEUE_SIZE',
      description: 'Requests waiting for a turn, over all lanes. When it is full the longest lane (by weight) yields.',
    }),
    waitMsMax: durationMs(defaults.QUEUE_WAIT_MS_MAX, {
      description: 'A request that has waited this long without a turn expires.',
    }),
    discipline: Type.Enum(['expiry', 'codel'], {
      default: 'expiry',
      description:
        'Who loses its place before its time is over: nobody, or whoever CoDel (RFC 8289: 5 ms, 100 ms) drops from a standing queue. CoDel is there to compare with.',
    }),
  },
  'Waiting for a turn.',
)

const AdmissionSchema = section(
  {
    safetyMargin: Type.Number({
      default: ADMISSION_DEFAULTS.safetyMarginRatio,
      minimum: 0,
      exclusiveMaximum: 1,
      env: 'ADMISSION_SAFETY_MARGIN',
      description: 'Fraction of the deadline that admission keeps in reserve; calibration may only raise it.',
    }),
    mode: Type.Enum(['enforce', 'observe'], {
      default: 'enforce',
      description: '`observe` decides and journals, but turns nobody away: the way to try Spillway on live traffic.',
    }),
  },
  'Who is taken.',
)

const FairnessSchema = section(
  {
    order: Type.Enum([...FAIRNESS_NAMES], {
      default: 'deficit-round-robin',
      description: 'Who goes next. The others are for comparison.',
    }),
  },
  'Sharing capacity between tenants.',
)

const LadderSchema = section(
  {
    enabled: Type.Boolean({
      default: true,
      description: 'Give up quality before answers. Off, whoever does not fit in full is refused.',
    }),
  },
  'Degradation.',
)

const LimitsSchema = section(
  {
    choicesMax: count(defaults.CHOICES_MAX, { description: 'Largest `n` in a request.' }),
    promptTokensMax: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100_000_000,
        description: 'Longest prompt, for every model; the model\u2019s own context bounds it anyway.',
      }),
    ),
  },
  'What one request may ask for.',
)

const StoreSchema = section(
  {
    url: Type.Optional(
      Type.String({
        pattern: '^postgres(ql)?://.+',
        env: 'DATABASE_URL',
        description:
          'PostgreSQL server with pgvector 0.7 or later, as `postgres://user:password@host/name`; the embedded database if absent. The old name `retrieval.databaseUrl` is still read.',
      }),
    ),
    path: Type.String({
      default: defaults.STORE_PATH,
      minLength: 1,
      description:
        'Folder of the embedded database, created at the first write; `memory:` keeps nothing over a restart. The old name `retrieval.dataPath` is still read.',
    }),
  },
  'The database of corpora and of the registry: models, releases and pools that were added while Spillway ran.',
)

const EngineSchema = section(
  {
    // Not `port`: Kubernetes sets SPILLWAY_ENGINE_PORT to an address of its own beside a service `spillway-engine`.
    listenHost: Type.String({
      default: defaults.HOST,
      minLength: 1,
      description: 'Address on which `spillway engine` listens.',
    }),
    listenPort: port({ default: defaults.ENGINE_PORT, description: 'Port on which `spillway engine` listens.' }),
    batchSizeMax: count(defaults.BATCH_SIZE_MAX, {
      env: 'MAX_BATCH_SIZE',
      description: 'Sequences, or texts and images, that a simulated engine runs in one batch.',
    }),
    batchTimeoutMs: durationMs(defaults.BATCH_TIMEOUT_MS, {
      env: 'BATCH_TIMEOUT_MS',
      description: 'How long a simulated embedding, ranking or vision model waits to fill a batch.',
    }),
  },
  'The simulated engine.',
)

const LoggingSchema = section(
  {
    level: Type.Enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'], {
      default: 'info',
      env: 'LOG_LEVEL',
      description: 'What is worth a line.',
    }),
    format: Type.Enum(['auto', 'json', 'pretty'], {
      default: 'auto',
      env: 'LOG_FORMAT',
      description: '`auto` is `pretty` on a terminal and `json` elsewhere.',
    }),
  },
  'Logs never hold prompt text or keys.',
)

export const ConfigSchema = Type.Object(
  {
    server: ServerSchema,
    seed: Type.Integer({
      default: defaults.SEED,
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      env: 'SPILLWAY_SEED',
      description: 'Same seed, same simulated answers.',
    }),
    models: Type.Array(ModelSchema, { minItems: 1, description: 'What clients can ask for.' }),
    pools: Type.Array(PoolSchema, { minItems: 1, description: 'What it runs on.' }),
    slos: Type.Array(SloSchema, { minItems: 1, description: 'Latency promises, by name.' }),
    tenants: Type.Array(TenantSchema, { minItems: 1, description: 'Who may ask.' }),
    admin: AdminSchema,
    queue: QueueSchema,
    admission: AdmissionSchema,
    fairness: FairnessSchema,
    routing: RoutingSchema,
    regions: RegionsSchema,
    ladder: LadderSchema,
    limits: LimitsSchema,
    store: StoreSchema,
    retrieval: RetrievalSchema,
    engine: EngineSchema,
    logging: LoggingSchema,
  },
  { additionalProperties: false },
)

type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T

/** The settings, as read: complete, checked and frozen. */
export type Settings = DeepReadonly<Type.Static<typeof ConfigSchema>>

export type Config = Settings & {
  /** The file that it came from; without one the demo tenants and their published keys are in force. */
  readonly file: string | undefined
  /** What to change although it works: settings under their old names. One line each. */
  readonly warnings: readonly string[]
}

export type ModelConfig = Settings['models'][number]
export type PoolConfig = Settings['pools'][number]
export type BackendConfig = PoolConfig['backend']
export type PeerConfig = Settings['regions']['peers'][number]
export type TenantConfig = Settings['tenants'][number]
export type SloConfig = Settings['slos'][number]
