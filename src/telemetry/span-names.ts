/**
 * Names of spans and attributes, in one table, because others' names move: OpenTelemetry's conventions for generative AI
 * left the main repository and are being renamed. No other file spells a name. Those of `gen_ai.` and `error.` are of
 * semantic conventions 1.41; those of `spillway.` are ours, and keep to the glossary.
 */
export const SPAN_SCHEMA_URL = 'https://opentelemetry.io/schemas/1.41.0'

export const SPAN = {
  screen: 'screen',
  retrieve: 'retrieve',
  wait: 'wait',
  attempt: 'attempt',
  prefill: 'prefill',
  decode: 'decode',
} as const

export const ATTRIBUTE = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  responseModel: 'gen_ai.response.model',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cachedTokens: 'gen_ai.usage.cache_read.input_tokens',
  firstChunk: 'gen_ai.response.time_to_first_chunk',
  error: 'error.type',
  requestId: 'spillway.request_id',
  tenant: 'spillway.tenant',
  key: 'spillway.key',
  band: 'spillway.band',
  rung: 'spillway.rung',
  outcome: 'spillway.outcome',
  because: 'spillway.because',
  isKept: 'spillway.promise_kept',
  pool: 'spillway.pool',
  replica: 'spillway.replica',
  release: 'spillway.release',
  attempt: 'spillway.attempt',
  ending: 'spillway.ending',
  predictedWaitS: 'spillway.predicted_wait',
  predictedFirstTokenS: 'spillway.predicted_first_token',
  verdict: 'spillway.screen.verdict',
  findings: 'spillway.screen.findings',
  skipped: 'spillway.screen.skipped',
  passages: 'spillway.retrieval.passages',
  retrieval: 'spillway.retrieval.outcome',
  interTokenMeanS: 'spillway.inter_token_mean',
} as const
