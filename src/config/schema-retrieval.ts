import Type from 'typebox'
import * as defaults from './defaults.ts'
import { count, durationMs, port, section } from './schema-fields.ts'

/** Finding passages for a prompt: how long it may take, where corpora live, who makes their vectors. */

const EmbedderSchema = section(
  {
    kind: Type.Optional(
      Type.Enum(['built-in', 'http', 'platform'], {
        description:
          'Who makes vectors: the small model that comes along, a server at `url`, or an embedding model of this platform (`model`). `http` if there is a `url`, else `built-in`.',
      }),
    ),
    url: Type.Optional(
      Type.String({
        pattern: '^https?://[^\\s/]+(/.*)?$',
        description: 'Any server with `/embeddings` under this address, as `http://gpu-1:8000/v1`; built in if absent.',
      }),
    ),
    model: Type.String({
      default: defaults.EMBEDDER_MODEL,
      minLength: 1,
      description: 'The model to ask that server, or this platform, for. A corpus keeps the embedder it was made with.',
    }),
    dimensions: Type.Integer({
      default: defaults.EMBEDDER_DIMENSIONS,
      minimum: 1,
      maximum: 4_000,
      description: 'Length of that model\u2019s vectors.',
    }),
    apiKey: Type.Optional(
      Type.String({ minLength: 1, env: 'EMBEDDER_API_KEY', description: 'Its key; better in the environment.' }),
    ),
    timeoutMs: durationMs(defaults.EMBEDDER_TIMEOUT_MS, {
      minimum: 1,
      description: 'An embedder that is silent for this long is given up; questions wait no longer than the budget.',
    }),
    batchWaitMs: durationMs(defaults.EMBEDDER_BATCH_WAIT_MS, {
      description: 'How long a question waits for others to be embedded with; 0 sends each alone.',
    }),
  },
  'Who makes vectors.',
)

export const RetrievalSchema = section(
  {
    budgetMs: durationMs(defaults.RETRIEVAL_BUDGET_MS, {
      env: 'RETRIEVAL_BUDGET_MS',
      description: 'Retrieval that takes longer is done without.',
    }),
    cacheTtlS: Type.Integer({
      default: defaults.CACHE_TTL_S,
      minimum: 0,
      maximum: 31_536_000,
      env: 'CACHE_TTL_S',
      description: 'Retrieved passages are kept this many seconds; 0 keeps none.',
    }),
    passagesDefault: count(defaults.PASSAGES_DEFAULT, {
      description: 'Passages for a request that names a corpus and no `top_k`.',
    }),
    passagesMax: count(defaults.PASSAGES_MAX, { description: 'The largest `top_k`; more is clamped.' }),
    redisUrl: Type.Optional(
      Type.String({
        pattern: '^rediss?://.+',
        env: 'REDIS_URL',
        description: 'Redis or Valkey for passages that all gateways share; each keeps its own if absent.',
      }),
    ),
    url: Type.Optional(
      Type.String({
        pattern: '^https?://[^\\s/]+(/.*)?$',
        env: 'RETRIEVAL_URL',
        description: 'Address of a `spillway retrieval` that does all this; done in this process if absent.',
      }),
    ),
    apiKey: Type.Optional(
      Type.String({
        minLength: 16,
        env: 'RETRIEVAL_KEY',
        description: 'The secret that gateways and a `spillway retrieval` share.',
      }),
    ),
    listenHost: Type.String({
      default: defaults.HOST,
      minLength: 1,
      description: 'Address on which `spillway retrieval` listens.',
    }),
    listenPort: port({ default: defaults.RETRIEVAL_PORT, description: 'Port on which `spillway retrieval` listens.' }),
    embedder: EmbedderSchema,
  },
  'Finding passages for a prompt.',
)
