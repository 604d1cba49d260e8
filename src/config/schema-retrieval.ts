import { Type } from '../base/schema.ts'
import * as defaults from './defaults.ts'
import { count, durationMs, port, section } from './schema-fields.ts'

/** Finding passages for a prompt: how long it may take, where corpora live, who makes their vectors. */

const EmbedderSchema = section(
  {
    kind: Type.Optional(
      Type.Enum(['built-in', 'http', 'platform'], {
        description:
          'Embedder that makes vectors: `built-in` (a small model that comes with Spillway), `http` (a server at `url`) or `platform` (`model`, an embedding model of this platform). If absent, `http` if there is a `url`, else `built-in`.',
      }),
    ),
    url: Type.Optional(
      Type.String({
        pattern: '^https?://[^\\s/]+(/.*)?$',
        description: 'Address of a server with `/embeddings` under it, as `http://gpu-1:8000/v1`.',
      }),
    ),
    model: Type.String({
      default: defaults.EMBEDDER_MODEL,
      minLength: 1,
      description:
        'Embedding model of that server, or of this platform. A corpus keeps the embedder that it was made with.',
    }),
    dimensions: Type.Integer({
      default: defaults.EMBEDDER_DIMENSIONS,
      minimum: 1,
      maximum: 4_000,
      description: 'Length of the model\u2019s vectors.',
    }),
    apiKey: Type.Optional(
      Type.String({
        minLength: 1,
        env: 'EMBEDDER_API_KEY',
        description: 'Key of the server at `url`; prefer the environment.',
      }),
    ),
    timeoutMs: durationMs(defaults.EMBEDDER_TIMEOUT_MS, {
      minimum: 1,
      description:
        'Time without an answer after which an embedder is given up, in milliseconds; a question waits no longer than `retrieval.budgetMs`.',
    }),
    batchWaitMs: durationMs(defaults.EMBEDDER_BATCH_WAIT_MS, {
      description: 'Time that a question waits for others to share its batch, in milliseconds; 0 sends each alone.',
    }),
  },
  'The embedder, which makes vectors of texts.',
)

export const RetrievalSchema = section(
  {
    budgetMs: durationMs(defaults.RETRIEVAL_BUDGET_MS, {
      env: 'RETRIEVAL_BUDGET_MS',
      description: 'Longest retrieval, in milliseconds; then the request goes on without passages.',
    }),
    cacheTtlS: Type.Integer({
      default: defaults.CACHE_TTL_S,
      minimum: 0,
      maximum: 31_536_000,
      env: 'CACHE_TTL_S',
      description: 'Time that retrieved passages are kept, in seconds; 0 keeps none.',
    }),
    passagesDefault: count(defaults.PASSAGES_DEFAULT, {
      description: 'Passages of a request that names a corpus and no `top_k`.',
    }),
    passagesMax: count(defaults.PASSAGES_MAX, {
      description: 'Most passages of a request; a larger `top_k` is lowered to it.',
    }),
    redisUrl: Type.Optional(
      Type.String({
        pattern: '^rediss?://.+',
        env: 'REDIS_URL',
        description:
          'Address of the Redis or Valkey in which gateways share retrieved passages and cached answers; if absent, each keeps its own.',
      }),
    ),
    url: Type.Optional(
      Type.String({
        pattern: '^https?://[^\\s/]+(/.*)?$',
        env: 'RETRIEVAL_URL',
        description:
          'Address of a `spillway retrieval` process that retrieves for this gateway; if absent, the gateway does it itself.',
      }),
    ),
    apiKey: Type.Optional(
      Type.String({
        minLength: 16,
        env: 'RETRIEVAL_KEY',
        description: 'Secret that gateways and a `spillway retrieval` process share.',
      }),
    ),
    listenHost: Type.String({
      default: defaults.HOST,
      minLength: 1,
      description: 'Address that `spillway retrieval` listens on.',
    }),
    listenPort: port({ default: defaults.RETRIEVAL_PORT, description: 'Port that `spillway retrieval` listens on.' }),
    embedder: EmbedderSchema,
  },
  'Retrieval: finding passages for a prompt.',
)
