import Type from 'typebox'
import * as defaults from './defaults.ts'
import { DiscoverSchema } from './schema-discovery.ts'
import { durationMs, httpUrl, item } from './schema-fields.ts'

/** How a pool's engines are reached: in this process, by OpenAI's API, or by the Open Inference Protocol. */

const SimulatedBackendSchema = item(
  {
    kind: Type.Literal('simulated', { description: 'The built-in engine: real scheduling, simulated GPU.' }),
    profile: Type.String({
      default: defaults.PROFILE_SMALL,
      minLength: 1,
      description: 'The GPU and model size whose step times it follows.',
    }),
    profiles: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), {
        minItems: 1,
        maxItems: 1_000,
        description: 'Where the GPUs of a pool differ: one profile for each replica in turn, and again from the first.',
      }),
    ),
  },
  'Simulated engines inside this process.',
)

const TlsSchema = item(
  {
    caFile: Type.Optional(
      Type.String({ minLength: 1, description: 'PEM file of the authorities to trust instead of the usual ones.' }),
    ),
    certFile: Type.Optional(
      Type.String({ minLength: 1, description: 'PEM file of our own certificate, for engines that ask for one.' }),
    ),
    keyFile: Type.Optional(Type.String({ minLength: 1, description: 'PEM file of that certificate\u2019s key.' })),
    serverName: Type.Optional(
      Type.String({ minLength: 1, description: 'Name that the engine\u2019s certificate must have, if not its host.' }),
    ),
    insecure: Type.Boolean({
      default: false,
      description: 'Trust any certificate: for a laboratory. Whoever is in between can read prompts and keys.',
    }),
  },
  'TLS, for addresses that begin with `https`.',
)

/** What every engine behind a URL has. */
const reached = {
  discover: Type.Optional(DiscoverSchema),
  auth: Type.Enum(['bearer', 'api-key', 'none'], {
    default: 'bearer',
    description: 'How the key is sent: `authorization: Bearer`, `api-key` (Azure), or not at all.',
  }),
  apiKeyEnv: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
      description: 'Name of the environment variable that holds the upstream key.',
    }),
  ),
  apiKey: Type.Optional(Type.String({ minLength: 1, description: 'The upstream key itself; prefer `apiKeyEnv`.' })),
  headers: Type.Record(Type.String(), Type.String(), {
    default: {},
    description: 'Further headers for every upstream request.',
  }),
  tls: Type.Optional(TlsSchema),
  timeoutMs: durationMs(defaults.UPSTREAM_TIMEOUT_MS, {
    minimum: 1,
    description: 'An upstream that sends nothing for this long is given up.',
  }),
}

export const PROBE_STYLES = [
  'auto',
  'vllm',
  'sglang',
  'llama.cpp',
  'tgi',
  'ollama',
  'openai',
  'azure',
  'triton',
  'none',
] as const

const HttpOpenaiBackendSchema = item(
  {
    kind: Type.Literal('http-openai', { description: 'Any server that speaks the OpenAI API.' }),
    url: Type.Optional(httpUrl('Address up to and including the version, as `http://gpu-1:8000/v1`.')),
    ...reached,
    upstreamModel: Type.Optional(
      Type.String({ minLength: 1, description: 'The model name to send upstream, where it differs from ours.' }),
    ),
    apiVersion: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9._-]+$',
        description:
          'Azure\u2019s `api-version`, sent with every request. The address then ends in `/openai/deployments/NAME`, or in `/openai/v1` without this.',
      }),
    ),
    engine: Type.Enum([...PROBE_STYLES], {
      default: 'auto',
      description:
        'Which engine it is: where to ask whether it is ready, and for its gauges. `auto` asks `/health` and `/metrics`, then the list of models; `none` never asks.',
    }),
    healthPath: Type.Optional(
      Type.String({
        pattern: '^/',
        description: 'Ask here whether it is ready, from the server\u2019s root: 2xx is yes.',
      }),
    ),
    metricsPath: Type.Optional(
      Type.String({ pattern: '^/', description: 'Read its gauges here, from the server\u2019s root.' }),
    ),
    outputBound: Type.Optional(
      Type.Enum(['max_tokens', 'max_completion_tokens'], {
        description: 'The name under which it takes the longest answer; the client\u2019s own if absent.',
      }),
    ),
    asksUsage: Type.Boolean({
      default: true,
      description: 'Ask for the token counts of streams. Off for servers that refuse `stream_options`.',
    }),
  },
  'Engines reached over HTTP.',
)

const HttpOipBackendSchema = item(
  {
    kind: Type.Literal('http-oip', {
      description: 'Triton, KServe, TorchServe: servers of the Open Inference Protocol, version 2.',
    }),
    url: Type.Optional(httpUrl('The server\u2019s root, as `http://triton-1:8000`.')),
    ...reached,
    upstreamModel: Type.Optional(
      Type.String({ minLength: 1, description: 'The server\u2019s name for the model, where it differs from ours.' }),
    ),
    version: Type.Optional(
      Type.String({ minLength: 1, description: 'The model\u2019s version there; the server chooses if absent.' }),
    ),
    runtime: Type.Enum(['vllm', 'tensorrt-llm'], {
      default: 'vllm',
      description: 'What runs a language model there: they take the same questions in different words.',
    }),
    template: Type.Enum(['plain', 'chatml', 'llama-3', 'mistral'], {
      default: 'plain',
      description: 'How a conversation becomes one text: `generate` applies no chat template of its own.',
    }),
    metricsUrl: Type.Optional(
      httpUrl('Where its metrics are, as `http://triton-1:8002/metrics`: Triton has a port of their own for them.'),
    ),
  },
  'Engines reached by the Open Inference Protocol.',
)

export const BackendSchema = Type.Union([SimulatedBackendSchema, HttpOpenaiBackendSchema, HttpOipBackendSchema], {
  description: 'How to reach the pool\u2019s engines.',
})
