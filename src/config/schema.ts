import type { Static } from 'typebox'
import { Type } from '../base/schema.ts'
import { IDLE_POLICIES } from '../policy/cost/idle-sharing.ts'
import { DISPATCHER_DEFAULTS } from '../policy/dispatch/dispatch-options.ts'
import { FAIRNESS_NAMES } from '../policy/fairness/make-fairness.ts'
import * as defaults from './defaults.ts'
import { AdmissionSchema } from './schema-admission.ts'
import { AuditSchema } from './schema-audit.ts'
import { ConsoleSchema } from './schema-console.ts'
import { count, durationMs, port, section } from './schema-fields.ts'
import { ModelSchema, PoolSchema } from './schema-fleet.ts'
import { FRONT_DOOR_SETTINGS } from './schema-front-door.ts'
import { JobsSchema, OfflineSchema } from './schema-jobs.ts'
import { AlertsSchema, LedgerSchema, PricesSchema } from './schema-money.ts'
import { OidcSchema } from './schema-oidc.ts'
import { RegionsSchema } from './schema-regions.ts'
import { RetrievalSchema } from './schema-retrieval.ts'
import { RoutingSchema } from './schema-routing.ts'
import { ScreeningSchema } from './schema-screening.ts'
import { SharingSchema } from './schema-sharing.ts'
import { TelemetrySchema } from './schema-telemetry.ts'
import { AdminSchema, OrgSchema, SloSchema, TenantSchema } from './schema-tenants.ts'
import { UpstreamsSchema } from './schema-upstreams.ts'

/**
 * Every setting there is: its name, its meaning, its bounds, its default. The settings page, `.env.example`, the
 * error messages and the types all come from here.
 *
 * A setting outside a list can also be given in the environment. Its name there is made from its path
 * (`server.bodyBytesMax` is SPILLWAY_SERVER_BODY_BYTES_MAX) unless `env` gives another: names that operators know from
 * elsewhere stay as they are.
 */

const IngressSchema = section(
  {
    requestsPerMinute: count(defaults.INGRESS_REQUESTS_PER_MINUTE, {
      description:
        'Requests a minute that are read of one key, or of one address without a valid key; further ones get 429. A sixth of it may come at once, but no more than 2,000 of an address.',
    }),
    bytesPerMinute: Type.Integer({
      default: defaults.INGRESS_BYTES_PER_MINUTE,
      minimum: 1,
      maximum: 1_000_000_000_000,
      description:
        'Bytes of bodies a minute that are read of one key, or of one address without a valid key; further bodies get 429. A sixth of it may come at once. Static documents (`/openapi.json`, pages of the console) count, too.',
    }),
    failedKeysPerMinute: count(defaults.INGRESS_FAILED_KEYS_PER_MINUTE, {
      description:
        'Wrong keys a minute that are looked up for one address; then keys that have not been valid before get 429 there. Behind a proxy that is not one of `server.trustedProxies`, all clients are one address.',
    }),
  },
  'What is read at all, before budgets: also of requests that are refused later.',
)

/** More than the cores of the largest hosts would only divide limits more finely. */
export const PROCESSES_MAX = 64

const ServerSchema = section(
  {
    host: Type.String({
      default: defaults.HOST,
      minLength: 1,
      env: 'HOST',
      description:
        'Address that the gateway listens on. Any address but loopback needs a configuration file with tenants of your own.',
    }),
    port: port({
      default: defaults.PORT,
      env: 'PORT',
      description: 'Port that the gateway listens on; 0 takes any free port.',
    }),
    basePath: Type.String({
      default: '',
      pattern: '^(/[A-Za-z0-9._~-]+)*$',
      description: 'Path prefix of every route, as `/llm`, for a gateway behind a shared address.',
    }),
    bodyBytesMax: count(defaults.BODY_BYTES_MAX, {
      description: 'Largest request body, in bytes; a larger one is refused with 413.',
    }),
    uploadBytesMax: count(defaults.UPLOAD_BYTES_MAX, {
      description:
        'Largest form with files at `/v1/audio` and `/v1/images`, in bytes; it passes through and is not held in memory. A larger one is refused with 413.',
    }),
    headersTimeoutMs: durationMs(defaults.HEADERS_TIMEOUT_MS, {
      minimum: 1,
      description: 'Time in which a client must send its headers, in milliseconds; after it the connection is closed.',
    }),
    requestTimeoutMs: durationMs(defaults.REQUEST_TIMEOUT_MS, {
      minimum: 1,
      description:
        'Time in which a client must send headers and body, in milliseconds; after it the connection is closed.',
    }),
    idleTimeoutMs: durationMs(defaults.IDLE_TIMEOUT_MS, {
      minimum: 1,
      description: 'Time after which a connection without a request is closed, in milliseconds.',
    }),
    stalledReaderMs: durationMs(defaults.STALLED_READER_MS, {
      minimum: 1,
      description: 'Time after which a client that has stopped reading its answer is cut off, in milliseconds.',
    }),
    keepAliveMs: durationMs(defaults.KEEP_ALIVE_MS, {
      minimum: 1,
      description:
        'Interval of keep-alive comments, in milliseconds. After this long without a token, send the headers of a stream, then a comment at this interval.',
    }),
    shutdownDelayMs: durationMs(defaults.SHUTDOWN_DELAY_MS, {
      description:
        'Time between SIGTERM and the first refused request, in milliseconds. `/health/ready` says no meanwhile, so that load balancers can notice.',
    }),
    shutdownGraceMs: durationMs(defaults.SHUTDOWN_GRACE_MS, {
      description:
        'Time that running answers may still take after SIGTERM, in milliseconds; then each ends with an error frame.',
    }),
    connectionsMax: count(defaults.CONNECTIONS_MAX, {
      description: 'Connections that may be open at once at one process; further ones are refused.',
    }),
    processes: Type.Union([Type.Integer({ minimum: 1, maximum: PROCESSES_MAX }), Type.Literal('auto')], {
      default: 1,
      description:
        'Processes that serve on this host, behind one socket; `auto`: one for each core that this process may use. With 1 there is no supervisor (docs/operations/processes.md).',
    }),
    metricsHost: Type.Optional(
      Type.String({ minLength: 1, description: 'Address of the separate metrics listener; `server.host` if absent.' }),
    ),
    metricsPort: Type.Optional(
      port({
        description:
          'Port of a separate listener for `/metrics`, which asks for no key. If absent, `server.port` serves it to keys of `admin.keys` and `admin.metricsKeys`.',
      }),
    ),
    ...FRONT_DOOR_SETTINGS,
    trustedProxies: Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
      default: [],
      maxItems: 256,
      description:
        'Addresses of proxies before the gateway, as `10.0.0.0/8`. Of a request that comes from one of them, `x-forwarded-for` says the client’s address; of any other request it is not read.',
    }),
    ingress: IngressSchema,
  },
  'The HTTP server of the gateway.',
)

const QueueSchema = section(
  {
    requestsMax: count(DISPATCHER_DEFAULTS.queueRequestsMax, {
      env: 'MAX_QUEUE_SIZE',
      description:
        'Requests that may wait for a turn, over all tenants. When the queue is full, the tenant with the most waiting requests for its weight gives up its last one.',
    }),
    waitMsMax: durationMs(defaults.QUEUE_WAIT_MS_MAX, {
      description:
        'Longest wait for a turn, in milliseconds; then the request expires. With 0 nothing waits: a request that cannot start at once is refused.',
    }),
    discipline: Type.Enum(['expiry', 'codel'], {
      default: 'expiry',
      description:
        'When a waiting request loses its place. `expiry`: when its time is over. `codel`: also when CoDel (RFC 8289: 5 ms, 100 ms) drops it from a standing queue; for comparison.',
    }),
  },
  'The queue of requests that wait for a turn.',
)

const FairnessSchema = section(
  {
    order: Type.Enum([...FAIRNESS_NAMES], {
      default: 'deficit-round-robin',
      description: 'Order in which tenants get turns. All but the default are for comparison.',
    }),
  },
  'Fairness: how capacity is shared between tenants.',
)

const LadderSchema = section(
  {
    enabled: Type.Boolean({
      default: true,
      description:
        'Whether a request that does not fit in full may be served at lower quality: fewer passages, a shorter prompt or answer, a smaller model. If false, such a request is refused.',
    }),
  },
  'The degradation ladder: what is given up under load.',
)

const CostSchema = section(
  {
    idle: Type.Enum([...IDLE_POLICIES], {
      default: 'platform',
      description:
        'Who pays for the time in which a replica runs no step: the platform (`platform`), the tenants that a dedicated pool is reserved for (`owners`, in equal parts), all tenants of the file by weight (`weights`), or the tenants that used the replica in the same second, by use (`pro-rata`). Where it names nobody, the platform pays.',
    }),
  },
  'Cost: who pays for what engines cost.',
)

const LimitsSchema = section(
  {
    choicesMax: count(defaults.CHOICES_MAX, {
      description: 'Largest number of choices (`n` times prompts) in one request.',
    }),
    promptTokensMax: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100_000_000,
        description:
          'Longest prompt, in tokens, for every model; the model\u2019s own context is a bound besides. Tokens are counted where the model\u2019s tokenizer is known, else estimated.',
      }),
    ),
  },
  'Bounds on a single request.',
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
      description: 'Address that `spillway engine` listens on.',
    }),
    listenPort: port({ default: defaults.ENGINE_PORT, description: 'Port that `spillway engine` listens on.' }),
    batchSizeMax: count(defaults.BATCH_SIZE_MAX, {
      env: 'MAX_BATCH_SIZE',
      description: 'Largest batch of a simulated engine: sequences, or texts and images.',
    }),
    batching: Type.Enum(['continuous', 'static', 'micro-batch'], {
      default: 'continuous',
      description:
        'How a simulated language model forms batches. `continuous`: sequences join at every step, as in vLLM. `static`: a batch runs until its last answer is done, then the next is formed. `micro-batch`: the same, and an idle engine first gathers for `batchTimeoutMs`. For comparison.',
    }),
    batchTimeoutMs: durationMs(defaults.BATCH_TIMEOUT_MS, {
      env: 'BATCH_TIMEOUT_MS',
      description:
        'Time that a simulated embedding, ranking or vision model waits to fill a batch, and a language model with `batching: micro-batch`, in milliseconds.',
    }),
  },
  'The simulated engine.',
)

const RecordSchema = section(
  {
    path: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'File to which every request is recorded without its text; older files are PATH.1, PATH.2 and so on. If absent, nothing is recorded unless `spillway record` asks for it.',
      }),
    ),
    fileBytesMax: Type.Integer({
      default: defaults.RECORD_FILE_BYTES_MAX,
      minimum: 65_536,
      maximum: 1_000_000_000_000,
      description: 'Largest size of one file, in bytes; then the next one begins.',
    }),
    filesMax: Type.Integer({
      default: defaults.RECORD_FILES_MAX,
      minimum: 1,
      maximum: 1_000,
      description: 'Number of files that are kept, with the newest; the oldest is overwritten.',
    }),
  },
  'The flight recorder, for `spillway simulate --replay` and `spillway plan`: tenants, times and lengths, never text.',
)

const LoggingSchema = section(
  {
    level: Type.Enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'], {
      default: 'info',
      env: 'LOG_LEVEL',
      description: 'Least important lines that are logged.',
    }),
    format: Type.Enum(['auto', 'json', 'pretty'], {
      default: 'auto',
      env: 'LOG_FORMAT',
      description: 'Format of log lines; `auto` is `pretty` on a terminal and `json` elsewhere.',
    }),
  },
  'The log. It never holds prompt text or keys.',
)

export const ConfigSchema = Type.Object(
  {
    server: ServerSchema,
    seed: Type.Integer({
      default: defaults.SEED,
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      env: 'SPILLWAY_SEED',
      description: 'Seed of the simulated engines: the same seed gives the same answers.',
    }),
    models: Type.Array(ModelSchema, { minItems: 1, description: 'Models that clients can ask for.' }),
    pools: Type.Array(PoolSchema, { minItems: 1, description: 'Pools of replicas that serve the models.' }),
    slos: Type.Array(SloSchema, { minItems: 1, description: 'Latency promises (SLOs), by name.' }),
    orgs: Type.Array(OrgSchema, {
      default: [],
      description: 'Organisations with a weight of their own. The others weigh as much as their tenants that wait.',
    }),
    tenants: Type.Array(TenantSchema, { minItems: 1, description: 'Tenants: who may send requests.' }),
    admin: AdminSchema,
    oidc: OidcSchema,
    upstreams: UpstreamsSchema,
    queue: QueueSchema,
    admission: AdmissionSchema,
    fairness: FairnessSchema,
    routing: RoutingSchema,
    regions: RegionsSchema,
    ladder: LadderSchema,
    cost: CostSchema,
    limits: LimitsSchema,
    screening: ScreeningSchema,
    store: StoreSchema,
    sharing: SharingSchema,
    ledger: LedgerSchema,
    audit: AuditSchema,
    prices: PricesSchema,
    alerts: AlertsSchema,
    jobs: JobsSchema,
    offline: OfflineSchema,
    retrieval: RetrievalSchema,
    engine: EngineSchema,
    logging: LoggingSchema,
    record: RecordSchema,
    telemetry: TelemetrySchema,
    console: ConsoleSchema,
  },
  { additionalProperties: false },
)

type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T

/** The settings, as read: complete, checked and frozen. */
export type Settings = DeepReadonly<Static<typeof ConfigSchema>>

/** A file that held a secret when the settings were read. */
export interface SecretFile {
  /** What it holds: `store.url`, or `pools.0.backend.apiKey`. */
  readonly name: string
  readonly path: string
}

export type Config = Settings & {
  /** The file that it came from; without one the demo tenants and their published keys are in force. */
  readonly file: string | undefined
  /** What to change although it works: settings under their old names, engines in two pools. One line each. */
  readonly warnings: readonly string[]
  /** Files with secrets that were read: a change of one is a change of the settings. */
  readonly secretFiles?: readonly SecretFile[]
}

export type ModelConfig = Settings['models'][number]
export type PoolConfig = Settings['pools'][number]
export type BackendConfig = PoolConfig['backend']
export type PeerConfig = Settings['regions']['peers'][number]
export type IssuerConfig = Settings['oidc']['issuers'][number]
export type TenantConfig = Settings['tenants'][number]
export type SloConfig = Settings['slos'][number]
export type ScreeningConfig = NonNullable<TenantConfig['screening']>
