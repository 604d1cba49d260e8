/**
 * The default values of settings. Each number has its reason; a policy with its own default exports it from its own
 * file, and the schema takes it from there.
 */

/** Loopback only: a fresh start with published demo keys must not be reachable from outside. */
export const HOST = '127.0.0.1'
export const PORT = 8080

/** Four mebibytes contain a prompt of a million tokens; sixteen, a few images in base64 beside it. */
export const BODY_BYTES_MAX = 16 * 1024 * 1024
/** Half a gibibyte: hours of compressed speech, and more than any engine takes. */
export const UPLOAD_BYTES_MAX = 512 * 1024 * 1024
/** A healthy client sends its headers in one packet; ten seconds suffice for the worst mobile network. */
export const HEADERS_TIMEOUT_MS = 10_000
/** Headers and body together: four mebibytes at 140 kB/s. */
export const REQUEST_TIMEOUT_MS = 30_000
/** Longer than the 60 s after which most load balancers drop idle connections, so that the balancer closes first. */
export const IDLE_TIMEOUT_MS = 65_000
export const STALLED_READER_MS = 30_000
/** Under the 30 s that Kubernetes waits between SIGTERM and SIGKILL. */
export const SHUTDOWN_GRACE_MS = 20_000
/** A connection pool of one busy client; ten of them are the connections that may be open. */
export const STREAMS_MAX = 1_000
/** Some 300 tokens as events: enough that a reader on a slow way never waits for the engine. */
export const AHEAD_BYTES_MAX = 64 * 1_024
/** Twice the 5,000 open streams that one process is measured to hold. */
export const CONNECTIONS_MAX = 10_000

/** 2,000 a second: a third of what one process can serve, and more than one client sends. */
export const INGRESS_REQUESTS_PER_MINUTE = 120_000
/** One gibibyte: parsing that much takes about a tenth of a processor. */
export const INGRESS_BYTES_PER_MINUTE = 1_073_741_824
/** A person mistypes a key a few times and a broken job retries each second; guessing needs more. */
export const INGRESS_FAILED_KEYS_PER_MINUTE = 120

export const SEED = 1

export const QUEUE_WAIT_MS_MAX = 30_000

/**
 * OpenAI's own limit for `n`. Clients put tens of prompts into one request of `/v1/completions`. All choices count in the
 * price and in the estimate of the time, so a burst in one request pays and waits like any other.
 */
export const CHOICES_MAX = 128

/** A longer retrieval would use up the time to first token that tenants are promised. */
export const RETRIEVAL_BUDGET_MS = 150
export const CACHE_TTL_S = 300
/** Five passages of 170 tokens: what a small model still uses well. */
export const PASSAGES_DEFAULT = 5
export const PASSAGES_MAX = 20
/** Beside the process, where a person would look for it and a container mounts a volume. */
export const STORE_PATH = '.spillway/store'
export const SPOOL_BYTES_MAX = 4_294_967_296
/** A hundred events a second of 600 bytes for three weeks; who has more says so. */
export const AUDIT_BYTES_MAX = 107_374_182_400
/** More than the six months that the AI Act asks for (articles 19 and 26). */
export const AUDIT_RETENTION_DAYS = 190
/** Thirteen months: a year, and the month before it. */
export const LEDGER_LINE_DAYS = 400
/** Chosen by `bench/retrieval/calibrate-answers.ts` for the built-in embedder (docs/adr/0016). */
export const ANSWER_SIMILARITY_MIN = 0.8
/** At a higher temperature a client wants a different answer each time. */
export const ANSWER_TEMPERATURE_MAX = 0.3
/** An hour: most repeated questions come on the same day, and most answers are still true then. */
export const ANSWER_TTL_S = 3_600
/** One in twenty: after a thousand hits a false-hit rate of one per cent is known to within 0.6 percentage points. */
export const ANSWER_CHECK_RATIO = 0.05
export const RETRIEVAL_PORT = 8_090
export const EMBEDDER_MODEL = 'text-embedding'
export const EMBEDDER_DIMENSIONS = 768
/** For passages; a question waits no longer than the retrieval budget. */
export const EMBEDDER_TIMEOUT_MS = 10_000
/** Far below what a client notices, and enough to batch the questions of a busy second. */
export const EMBEDDER_BATCH_WAIT_MS = 2

/** Keys of engines and of providers, as they are usually called; no variable of a database or of a cloud is. */
export const KEY_VARIABLES = ['*_API_KEY', 'UPSTREAM_*', 'ENGINE_*']

/** vLLM's default for sequences in one batch. */
export const BATCH_SIZE_MAX = 256
/** Time for which dynamic batching (vision, ranking) waits to fill a batch: far below what a client notices. */
export const BATCH_TIMEOUT_MS = 5
/** vLLM's own port, which routers expect. */
export const ENGINE_PORT = 8_000

export const CONTEXT_TOKENS_MAX = 32_768
/** 2026-01-01: what `/v1/models` says when a model's date is not configured; fixed, so that answers repeat. */
export const MODEL_CREATED_AT_S = 1_767_225_600

export const REGION = 'local'
/** About the concurrency at which an 8B model on one large GPU gains no more throughput without slower tokens. */
export const POOL_CONCURRENCY_MAX = 32
/** Most sequences that engines run at once, by vLLM's default: a limit that is learned or computed stays below it. */
export const ENGINE_CONCURRENCY_MAX = 256
/** Another region's gateway queues and refuses by itself; this bounds the load that one gateway can put on it. */
export const PEER_CONCURRENCY_MAX = 1_024
export const UPSTREAM_TIMEOUT_MS = 120_000

export const PROFILE_LARGE = 'h100-llama-70b-tp4'
export const PROFILE_SMALL = 'h100-llama-8b'
/** Embedding models in use have a billion parameters or fewer. */
export const PROFILE_EMBEDDING = 'h100-llama-1b'

/** Load balancers close a silent connection after 30 to 60 seconds; some clients close sooner. */
export const KEEP_ALIVE_MS = 10_000

/** No balancer by default. Behind a balancer: a little more than the interval of its health checks. */
export const SHUTDOWN_DELAY_MS = 0

/** A new replica is used after half a minute at the latest. */
export const DISCOVERY_EVERY_MS = 30_000

/** About 150,000 requests with prompts of 800 tokens: 50 minutes at 50 a second. */
export const RECORD_FILE_BYTES_MAX = 128 << 20
/** A gigabyte in all: seven hours at that pace. */
export const RECORD_FILES_MAX = 8

/** Clocks that are kept by NTP differ by less than a second; a minute is what other gateways allow. */
export const TOKEN_LEEWAY_S = 60
/** Issuers publish a new key hours or days before they sign with it. */
export const TOKEN_KEYS_REFRESH_S = 300

/** One in a hundred shows what is usual; what went wrong is sent in any case. */
export const TRACE_SAMPLE_RATIO = 0.01
export const OTLP_METRICS_EVERY_MS = 15_000
/** Autoscaling. */
export const ACTUATOR_TIMEOUT_MS = 10_000
export const IDLE_TO_ZERO_MS = 600_000
export const AUTOSCALE_UTILISATION = 0.85
export const DRAIN_TARGET_MS = 60_000
export const COLD_START_MS = 60_000
