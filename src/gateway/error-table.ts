import type { CorpusRefusal } from '../domain/corpus.ts'
import type { Blame, Refusal, RefusalCode } from '../domain/outcome.ts'
import type { FaultCode, WireFault } from '../wire/openai-error.ts'
import type { AdminCode } from './fleet-admin.ts'

/**
 * Every error that a client of the gateway can be told, by its code. `ErrorCode` is the union of what the layers below
 * can say, and the table must have exactly these rows: a code without a row, or a row without a code, does not type
 * check. On the wire a code has underscores (`queue_full`); inside and in metrics it has dashes. The page
 * docs/operations/errors.md has the same rows, and a test compares them.
 *
 * Blame decides the status where a row allows two: 429 says "your tenant is over its share or limit", 503 says "the
 * platform is". No row is 408, because SDKs answer 408 by trying again at once.
 *
 * The simulated engine's server speaks vLLM's errors instead (src/engine-server/engine-errors.ts): those are vLLM's
 * types, not ours, and are not in this table.
 */
export type ErrorCode =
  | RefusalCode
  | KeyCode
  | IngressCode
  | CorpusCode
  | ArchiveCode
  | JobCode
  | UsageCode
  | AdminCode
  | FaultCode

/** What is wrong with the key that a client sent. */
export type KeyCode =
  | 'invalid-api-key'
  | 'invalid-token'
  | 'token-without-tenant'
  | 'issuer-unavailable'
  | 'key-expired'
  | 'key-not-yet-valid'
  | 'key-not-allowed'
  | 'keys-unavailable'
  | 'not-admin'
  | 'not-a-peer'
  | 'unknown-tenant'

/** Why a request was turned away before it was read. */
export type IngressCode = 'ingress-requests' | 'ingress-bytes' | 'ingress-failed-keys' | 'ingress-full'

/** What a client is told about corpora. Inside retrieval `unavailable` is clear; to a client the code names the part. */
export type CorpusCode = Exclude<CorpusRefusal, 'unavailable'> | 'retrieval-unavailable'

/** What a client is told about stored answers. */
export type ArchiveCode = 'answer-not-found' | 'archive-unavailable'

/** What a client is told about jobs. */
export type JobCode = 'batch-not-found' | 'too-many-batches' | 'jobs-unavailable'

/** What a client is told who asks what was used. */
export type UsageCode = 'ledger-off' | 'ledger-unavailable' | 'audit-off' | 'audit-copy-unavailable'

/** A refusal of any layer, as the gateway tells it. */
export type ToldRefusal<Code extends ErrorCode = ErrorCode> = Refusal<Code>

/** A mistake in what a client sent, found by any layer. */
export type ToldFault = WireFault<ErrorCode>

/** Where the time in Retry-After comes from. */
export type RetryAfter =
  /** The same request would be refused again: `x-should-retry: false`. */
  | 'never'
  /** When the tenant's budget has room for the request; never, if it can never fit. */
  | 'budget'
  /** The predicted wait beyond what the request can afford, with jitter. */
  | 'prediction'
  /** A few health checks from now (5 s), with jitter. */
  | 'health'
  /** What the engine asked for, 300 s at most. */
  | 'engine'
  /** A fixed time, in microseconds. */
  | number

export interface ErrorRow {
  /** The HTTP status; `by-blame`: 429 if the tenant is to blame, 503 if the platform is. */
  readonly status: number | 'by-blame'
  readonly blame: Blame | 'tenant-or-platform'
  readonly retryAfter: RetryAfter
  /** What the client should do. The message of a refusal ends with it; the message of a fault says its own. */
  readonly advice: string
  /** The parameter at fault, where the refusal itself names none. */
  readonly param?: string
}

const COME_BACK = 'Come back after the time in Retry-After.'
const SHORTEN = 'Shorten the prompt or ask for fewer tokens.'
const SECOND_US = 1_000_000

const atFault = (status: number, advice: string): ErrorRow => ({
  status,
  blame: 'request',
  retryAfter: 'never',
  advice,
})

/** Wrong keys. */
const KEY_ROWS: Readonly<Record<KeyCode, ErrorRow>> = {
  'invalid-api-key': atFault(401, 'Send a valid key: Authorization: Bearer sk-…, or x-api-key: sk-…, or api-key: sk-…'),
  'invalid-token': atFault(401, 'Get a new token from your issuer, for the audience of this server.'),
  'token-without-tenant': atFault(403, 'Ask your operator which claim names the tenant (`oidc.issuers`).'),
  'issuer-unavailable': { status: 503, blame: 'platform', retryAfter: 10 * SECOND_US, advice: COME_BACK },
  'key-expired': atFault(401, 'Use the newest secret of the key, or ask whoever manages it for another one.'),
  'key-not-yet-valid': atFault(401, 'Come back when the time of the key has begun, or use another one.'),
  'key-not-allowed': atFault(403, 'Use another key, or ask whoever manages this one to change its terms.'),
  'keys-unavailable': { status: 503, blame: 'platform', retryAfter: 2 * SECOND_US, advice: COME_BACK },
  'not-admin': atFault(
    403,
    'Send a key of `admin.keys`: spillway … --key, or SPILLWAY_ADMIN_KEY. Metrics take one of `admin.metricsKeys`, too.',
  ),
  'not-a-peer': atFault(403, 'Leave out x-spillway-tenant, or use the key of a peer.'),
  'unknown-tenant': atFault(403, 'Give both regions the same tenants.'),
}

/** Callers that send too much, whatever it is. */
const INGRESS_ROWS: Readonly<Record<IngressCode, ErrorRow>> = {
  'ingress-requests': { status: 429, blame: 'tenant', retryAfter: 'budget', advice: COME_BACK },
  'ingress-bytes': { status: 429, blame: 'tenant', retryAfter: 'budget', advice: COME_BACK },
  'ingress-failed-keys': {
    status: 429,
    blame: 'tenant',
    retryAfter: 'budget',
    advice: 'Check the key that you send, then come back after the time in Retry-After.',
  },
  'ingress-full': { status: 503, blame: 'platform', retryAfter: SECOND_US, advice: COME_BACK },
}

/** Requests that were read, and then turned away or failed. */
const REFUSAL_ROWS: Readonly<Record<RefusalCode, ErrorRow>> = {
  'rate-limit-requests': { status: 429, blame: 'tenant', retryAfter: 'budget', advice: COME_BACK },
  'rate-limit-tokens': { status: 429, blame: 'tenant', retryAfter: 'budget', advice: COME_BACK },
  'concurrency-limit': {
    status: 429,
    blame: 'tenant',
    retryAfter: 'budget',
    advice: 'Wait for one of your running requests to end.',
  },
  'budget-exhausted': {
    status: 429,
    blame: 'tenant',
    retryAfter: 'budget',
    advice: 'Ask for less, wait for the time in Retry-After, or have the budget raised. GET /v1/spillway/me shows it.',
  },
  'limits-unknown': { status: 503, blame: 'platform', retryAfter: 'budget', advice: COME_BACK },
  'tenant-paused': {
    status: 429,
    blame: 'tenant',
    retryAfter: 60 * SECOND_US,
    advice: 'Ask your operator when the pause ends; the message says why there is one.',
  },
  'model-not-found': { ...atFault(404, 'GET /v1/models lists the models.'), param: 'model' },
  'context-length-exceeded': atFault(400, SHORTEN),
  'too-big': atFault(400, SHORTEN),
  'deadline-infeasible': {
    ...atFault(400, 'Allow more time or ask for a shorter answer.'),
    param: 'spillway.deadline_ms',
  },
  'predicted-late': {
    status: 'by-blame',
    blame: 'tenant-or-platform',
    retryAfter: 'prediction',
    advice: 'Come back after the time in Retry-After, allow more time, or ask for fewer tokens.',
  },
  'band-shed': {
    status: 'by-blame',
    blame: 'tenant-or-platform',
    retryAfter: 'prediction',
    advice: 'Come back after the time in Retry-After, or send the request in a higher band.',
  },
  'no-replica': { status: 503, blame: 'platform', retryAfter: 'health', advice: COME_BACK },
  'no-such-corpus': atFault(404, 'GET /v1/vector_stores lists your vector stores.'),
  'content-filter': atFault(400, 'Leave out what the category names, or ask your operator about the policy.'),
  'key-paused': {
    status: 429,
    blame: 'tenant',
    retryAfter: 'budget',
    advice: 'The pause ends after the time in Retry-After; ask your operator if the requests were meant.',
  },
  'unknown-pool': { status: 503, blame: 'platform', retryAfter: 'prediction', advice: COME_BACK },
  'expired-on-arrival': { ...atFault(400, 'Allow more time.'), param: 'spillway.deadline_ms' },
  'fits-no-replica': atFault(400, SHORTEN),
  'lane-full': {
    status: 429,
    blame: 'tenant',
    retryAfter: 'prediction',
    advice: 'You have too many requests waiting; come back after the time in Retry-After.',
  },
  'lane-work-full': {
    status: 429,
    blame: 'tenant',
    retryAfter: 'prediction',
    advice: 'You have too much work waiting; come back after the time in Retry-After.',
  },
  'queue-full': { status: 503, blame: 'platform', retryAfter: 'prediction', advice: COME_BACK },
  'waited-too-long': { status: 503, blame: 'platform', retryAfter: 'prediction', advice: COME_BACK },
  evicted: { status: 503, blame: 'platform', retryAfter: 'prediction', advice: COME_BACK },
  'replica-refused': { status: 503, blame: 'platform', retryAfter: 'engine', advice: COME_BACK },
  'replica-denied': {
    status: 502,
    blame: 'platform',
    retryAfter: 'never',
    advice: 'Tell the operator of this server; trying again does not help.',
  },
  'replica-rejected-request': atFault(400, 'Change the request as the message says.'),
  'engine-stalled': { status: 503, blame: 'platform', retryAfter: 'health', advice: COME_BACK },
  'replica-lost': { status: 502, blame: 'platform', retryAfter: SECOND_US, advice: 'Try again.' },
  'deadline-passed': {
    status: 504,
    blame: 'platform',
    retryAfter: 'never',
    param: 'spillway.deadline_ms',
    advice: 'Allow more time, ask for fewer tokens, or send spillway.cut_off: false to get late answers whole.',
  },
  'audit-unavailable': { status: 503, blame: 'platform', retryAfter: SECOND_US, advice: COME_BACK },
  'shutting-down': {
    status: 503,
    blame: 'platform',
    retryAfter: SECOND_US,
    advice: 'This server is going away; try again and reach another one.',
  },
  'internal-error': {
    status: 500,
    blame: 'platform',
    retryAfter: SECOND_US,
    advice: 'This is a fault of Spillway and was counted. Try again.',
  },
}

/** Vector stores and files. */
const CORPUS_ROWS: Readonly<Record<CorpusCode, ErrorRow>> = {
  'no-such-corpus': REFUSAL_ROWS['no-such-corpus'],
  'no-such-document': atFault(404, 'GET /v1/vector_stores/ID/files lists the files of a vector store.'),
  'no-such-file': atFault(404, 'GET /v1/files lists your files.'),
  'name-taken': { ...atFault(409, 'Choose another name.'), param: 'name' },
  'too-much': atFault(413, 'Send less at a time.'),
  'lane-full': REFUSAL_ROWS['lane-full'],
  'retrieval-unavailable': { status: 503, blame: 'platform', retryAfter: SECOND_US, advice: COME_BACK },
}

/** Stored answers. */
const ARCHIVE_ROWS: Readonly<Record<ArchiveCode, ErrorRow>> = {
  'answer-not-found': atFault(404, 'Only answers that were stored, and have not expired, can be asked for.'),
  'archive-unavailable': { status: 503, blame: 'platform', retryAfter: SECOND_US, advice: COME_BACK },
}

/** Jobs. */
const JOB_ROWS: Readonly<Record<JobCode, ErrorRow>> = {
  'batch-not-found': atFault(404, 'GET /v1/batches lists your batches.'),
  'too-many-batches': {
    status: 429,
    blame: 'tenant',
    retryAfter: 60 * SECOND_US,
    advice: 'Wait for one of your batches to end, or cancel one.',
  },
  'jobs-unavailable': { status: 503, blame: 'platform', retryAfter: SECOND_US, advice: COME_BACK },
}

/** What was used. */
const USAGE_ROWS: Readonly<Record<UsageCode, ErrorRow>> = {
  'ledger-off': atFault(404, 'Ask the operator of this server to set `ledger.enabled` and a `store` that lasts.'),
  'audit-off': atFault(404, 'Ask the operator of this server to set `audit.enabled` and `audit.search`.'),
  'audit-copy-unavailable': { status: 503, blame: 'platform', retryAfter: 2 * SECOND_US, advice: COME_BACK },
  'ledger-unavailable': { status: 503, blame: 'platform', retryAfter: 2 * SECOND_US, advice: COME_BACK },
}

/** What cannot be read, and what it names that is not there. */
const FAULT_ROWS: Readonly<Record<FaultCode, ErrorRow>> = {
  'invalid-http': atFault(400, 'Speak HTTP/1.1 to this port.'),
  'headers-too-large': atFault(431, 'Send fewer or shorter headers.'),
  'request-too-slow': atFault(400, 'Send headers and body within `server.requestTimeoutMs`.'),
  'request-too-large': atFault(413, 'Keep the body under `server.bodyBytesMax`.'),
  'unsupported-expectation': atFault(417, 'Leave out the Expect header, or send 100-continue.'),
  'unknown-url': atFault(404, 'GET /openapi.json lists every path.'),
  'method-not-allowed': atFault(405, 'Use a method of the Allow header.'),
  'unsupported-content-type': atFault(415, 'Send application/json; files as multipart/form-data.'),
  'unsupported-content-encoding': atFault(415, 'Send the body uncompressed.'),
  'invalid-encoding': atFault(400, 'Send the body as UTF-8.'),
  'invalid-json': atFault(400, 'Correct the JSON at the position in the message.'),
  'body-too-complex': atFault(400, 'Send fewer or flatter values in one request.'),
  'invalid-file': atFault(400, 'Upload UTF-8 text, Markdown or JSON Lines in the form field `file`.'),
  'missing-required-parameter': atFault(400, 'Add the parameter in `param`.'),
  'invalid-type': atFault(400, 'Give the parameter in `param` one of the types in the message.'),
  'invalid-value': atFault(400, 'Change the parameter in `param` as the message says.'),
  'empty-array': atFault(400, 'Give the list in `param` at least one element.'),
  'integer-above-max-value': atFault(400, 'Ask for fewer choices: `limits.choicesMax` at most.'),
  'unsupported-parameter': atFault(400, 'Leave the parameter in `param` out.'),
  'context-length-exceeded': REFUSAL_ROWS['context-length-exceeded'],
  'content-filter': REFUSAL_ROWS['content-filter'],
  'model-not-found': REFUSAL_ROWS['model-not-found'],
  'model-not-supported': atFault(400, 'Use the endpoint that the message names.'),
  'request-not-found': atFault(404, 'Ask soon after the request, with a key of the same tenant.'),
  'previous-response-not-found': atFault(400, 'Send the whole conversation in `input`, with `store: false`.'),
  'wrong-tenant': atFault(403, 'Send the tenant that the key belongs to.'),
}

/** A change to the platform can be tried again this long after its store was away or busy. */
const STORE_RETRY_US = 2 * SECOND_US

/** The admin API. */
const ADMIN_ROWS: Readonly<Record<AdminCode, ErrorRow>> = {
  'missing-required-parameter': FAULT_ROWS['missing-required-parameter'],
  'invalid-value': FAULT_ROWS['invalid-value'],
  'no-such-model': atFault(404, 'GET /admin/v1/models lists the models.'),
  'no-such-release': atFault(404, 'GET /admin/v1/models lists every model’s releases.'),
  'no-such-pool': atFault(404, 'GET /admin/v1/pools lists the pools.'),
  'no-such-replica': atFault(404, 'GET /admin/v1/pools lists every pool’s replicas.'),
  'no-such-drain': atFault(404, 'GET /admin/v1/pools shows which replicas are drained.'),
  'no-such-pause': atFault(404, 'GET /admin/v1/admission lists the tenants that are paused.'),
  'no-such-mode': atFault(404, 'GET /admin/v1/admission shows the mode.'),
  'no-such-rollout': atFault(404, 'GET /admin/v1/rollouts lists the rollouts.'),
  'nothing-to-change': atFault(409, 'GET /admin/v1/rollouts/MODEL shows what the rollout is doing.'),
  'in-configuration-file': atFault(409, 'Change the configuration file, then reload it.'),
  'still-used': atFault(409, 'Remove what the message names first.'),
  discovered: atFault(409, 'Drain the replica, or take it out where discovery finds it.'),
  'pool-is-running': atFault(409, 'Add a pool with another id, then remove this one.'),
  'pool-is-closing': atFault(409, 'Wait until the pool is gone, or choose another id.'),
  'simulated-engines': atFault(409, 'Change the number of its replicas where the pool is written.'),
  'invalid-configuration': atFault(400, 'Mend the lines that the message names; spillway config check finds them too.'),
  'contradicts-registry': atFault(
    409,
    'Remove the entries of the registry that the message names, or keep what they need.',
  ),
  'nothing-to-reload': atFault(409, 'Restart the server with the new configuration.'),
  'nothing-to-restart': atFault(409, 'Restart the server where it was started, or wait until the restart has ended.'),
  'registry-full': atFault(409, 'Remove models, releases or pools that are not used.'),
  'changed-meanwhile': atFault(409, 'Look at what changed, then send the change again.'),
  'too-many-changes': { status: 503, blame: 'platform', retryAfter: STORE_RETRY_US, advice: COME_BACK },
  'registry-unavailable': { status: 503, blame: 'platform', retryAfter: STORE_RETRY_US, advice: COME_BACK },
  'no-such-record': atFault(404, 'GET …/orgs, …/tenants and …/keys list what there is.'),
  'id-taken': atFault(409, 'Choose another id.'),
  'two-live-secrets': atFault(409, 'Revoke one of the two secrets, or rotate with graceMs 0, which ends both.'),
  'beyond-authority': atFault(403, 'Ask for less, or ask whoever `error.spillway.authority` names.'),
  'too-many-recordings': { status: 503, blame: 'platform', retryAfter: STORE_RETRY_US, advice: COME_BACK },
}

export const ERROR_TABLE: Readonly<Record<ErrorCode, ErrorRow>> = {
  ...KEY_ROWS,
  ...INGRESS_ROWS,
  ...REFUSAL_ROWS,
  ...CORPUS_ROWS,
  ...ARCHIVE_ROWS,
  ...JOB_ROWS,
  ...USAGE_ROWS,
  ...ADMIN_ROWS,
  ...FAULT_ROWS,
}

const STATUS_OF_BLAME: Readonly<Record<Blame, number>> = { tenant: 429, platform: 503, request: 400 }

/** The row's status; for a mistake that an engine found, the engine's own. */
export function statusOf({ code, blame, told }: Pick<ToldRefusal, 'code' | 'blame' | 'told'>): number {
  if (told !== undefined) return told.status
  const { status } = ERROR_TABLE[code]
  return status === 'by-blame' ? STATUS_OF_BLAME[blame] : status
}

/** A fault without a code is a body that is wrong as a whole. */
export function statusOfFault({ code }: ToldFault): number {
  return code === null ? 400 : statusOf({ code, blame: 'request' })
}

/** The time to come back after, for codes whose row has a fixed one. */
export function fixedRetryUs(code: ErrorCode): number | undefined {
  const { retryAfter } = ERROR_TABLE[code]
  return typeof retryAfter === 'number' ? retryAfter : undefined
}

/**
 * What a 401 asks for (RFC 9110, 15.5.2): a bearer's key or token. A credential that was one and does not count any more
 * is named as such (RFC 6750, 3.1); where nothing usable was sent, nothing is said of it.
 */
export function challengeOf(code: ErrorCode): readonly string[] {
  return ['www-authenticate', STALE_CREDENTIALS.has(code) ? 'Bearer error="invalid_token"' : 'Bearer']
}

const STALE_CREDENTIALS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'invalid-token',
  'key-expired',
  'key-not-yet-valid',
])

/** The code as clients see it. */
export const wireCode = (code: ErrorCode): string => code.replaceAll('-', '_')

/** OpenAI's type of error; SDKs map it and the status to their classes. */
export function typeOfStatus(status: number): 'rate_limit_error' | 'server_error' | 'invalid_request_error' {
  if (status === 429) return 'rate_limit_error'
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}
