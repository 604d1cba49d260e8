/**
 * What holds when nobody says otherwise. Each number has its reason; a policy that has its own default exports it
 * from its own file, and the schema takes it from there.
 */

/** Loopback only: a fresh start with published demo keys must not be reachable from outside. */
export const HOST = '127.0.0.1'
export const PORT = 8080

/** Four mebibytes hold a prompt of a million tokens; larger bodies are mistakes or attacks. */
export const BODY_BYTES_MAX = 4 * 1024 * 1024
/** A healthy client sends its headers in one packet; ten seconds are for the worst mobile network. */
export const HEADERS_TIMEOUT_MS = 10_000
/** Headers and body together: four mebibytes at 140 kB/s. */
export const REQUEST_TIMEOUT_MS = 30_000
/** Longer than the 60 s after which most load balancers drop idle connections: so they close first, not we. */
export const IDLE_TIMEOUT_MS = 65_000
export const STALLED_READER_MS = 30_000
/** Under the 30 s that Kubernetes waits between SIGTERM and SIGKILL. */
export const SHUTDOWN_GRACE_MS = 20_000
/** Twice the 5,000 open streams that one process is measured to hold. */
export const CONNECTIONS_MAX = 10_000

export const SEED = 1

export const QUEUE_WAIT_MS_MAX = 30_000

/** OpenAI's own limit is 128; one client asking for so many answers is a burst by itself. */
export const CHOICES_MAX = 8

/** Retrieval later than this would eat the time to first token that tenants are promised. */
export const RETRIEVAL_BUDGET_MS = 150
export const CACHE_TTL_S = 300
/** Five passages of 170 tokens: what a small model still reads with attention. */
export const PASSAGES_DEFAULT = 5
export const PASSAGES_MAX = 20
/** Beside the process, where a person would look for it and a container mounts a volume. */
export const STORE_PATH = '.spillway/store'
/** Chosen by `bench/retrieval/calibrate-answers.ts` for the built-in embedder (docs/adr/0016). */
export const ANSWER_SIMILARITY_MIN = 0.8
/** Above this a client wants another answer each time. */
export const ANSWER_TEMPERATURE_MAX = 0.3
/** An hour: what is asked twice is mostly asked twice on the same day, and what was true then mostly still is. */
export const ANSWER_TTL_S = 3_600
/** One in twenty: after a thousand hits a false-hit rate of one per cent is known to within six tenths. */
export const ANSWER_CHECK_RATIO = 0.05
export const RETRIEVAL_PORT = 8_090
export const EMBEDDER_MODEL = 'text-embedding'
export const EMBEDDER_DIMENSIONS = 768
/** For passages; a question waits no longer than the retrieval budget. */
export const EMBEDDER_TIMEOUT_MS = 10_000
/** Far below what anybody notices, and enough for questions of a busy second to meet. */
export const EMBEDDER_BATCH_WAIT_MS = 2

/** vLLM's default for sequences in one batch. */
export const BATCH_SIZE_MAX = 256
/** Dynamic batching (vision, ranking) waits this long for company: far below what anybody notices. */
export const BATCH_TIMEOUT_MS = 5
/** vLLM's own port, which routers expect. */
export const ENGINE_PORT = 8_000

export const CONTEXT_TOKENS_MAX = 32_768
export const OUTPUT_TOKENS_DEFAULT = 1_024
/** 2026-01-01: what `/v1/models` says when a model's date is not configured; fixed, so that answers repeat. */
export const MODEL_CREATED_AT_S = 1_767_225_600

export const REGION = 'local'
/** About where an 8B model on one large GPU stops gaining throughput without hurting time per token. */
export const POOL_CONCURRENCY_MAX = 32
/** What engines run at once at most, by vLLM's default: a limit that learns or computes stays below it. */
export const ENGINE_CONCURRENCY_MAX = 256
/** Another region's gateway queues and refuses by itself: this only bounds what one of us can burden it with. */
export const PEER_CONCURRENCY_MAX = 1_024
export const UPSTREAM_TIMEOUT_MS = 120_000

export const PROFILE_LARGE = 'h100-llama-70b-tp4'
export const PROFILE_SMALL = 'h100-llama-8b'
/** Embedding models in use have a billion parameters or fewer. */
export const PROFILE_EMBEDDING = 'h100-llama-1b'

/** Load balancers hang up on a silent connection after 30 to 60 seconds; clients look sooner. */
export const KEEP_ALIVE_MS = 10_000

/** Nobody balances a laptop. Before a balancer: a little more than the interval of its health checks. */
export const SHUTDOWN_DELAY_MS = 0

/** A replica that came is used after half a minute at the latest. */
export const DISCOVERY_EVERY_MS = 30_000
