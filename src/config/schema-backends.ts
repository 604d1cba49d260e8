import { Type } from '../base/schema.ts'
import * as defaults from './defaults.ts'
import { DiscoverSchema } from './schema-discovery.ts'
import { durationMs, httpUrl, item } from './schema-fields.ts'

/** How a pool's engines are reached: in this process, by OpenAI's API, or by the Open Inference Protocol. */

const SimulatedBackendSchema = item(
  {
    kind: Type.Literal('simulated', { description: 'Built-in engine: real scheduling on a simulated GPU.' }),
    profile: Type.String({
      default: defaults.PROFILE_SMALL,
      minLength: 1,
      description:
        'GPU and model size whose step times the engine follows; `+mig-2g` or `+shared-2` behind the name is a part of the GPU. Or a file `….json` that `spillway engine learned` or `engine fit` wrote.',
    }),
    profiles: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), {
        minItems: 1,
        maxItems: 1_000,
        description:
          'Profiles of a pool with different GPUs: one for each replica in turn, starting over after the last.',
      }),
    ),
    hidden: Type.Optional(
      Type.Boolean({
        description:
          'Whether the gateway is not told the profile and must learn it, as of an engine behind a URL. For trials.',
      }),
    ),
  },
  'Simulated engines inside this process.',
)

export const TlsSchema = item(
  {
    caFile: Type.Optional(
      Type.String({
        minLength: 1,
        description: 'PEM file of the certificate authorities to trust instead of the system\u2019s.',
      }),
    ),
    certFile: Type.Optional(
      Type.String({
        minLength: 1,
        description: 'PEM file of the gateway\u2019s own certificate, for engines that ask for one.',
      }),
    ),
    keyFile: Type.Optional(Type.String({ minLength: 1, description: 'PEM file of the key of `certFile`.' })),
    serverName: Type.Optional(
      Type.String({
        minLength: 1,
        description: 'Name that the engine\u2019s certificate must have; the host of its address if absent.',
      }),
    ),
    insecure: Type.Boolean({
      default: false,
      description:
        'Whether any certificate is trusted. For laboratories only: anyone on the path can then read prompts and keys.',
    }),
  },
  'TLS, for addresses that begin with `https`.',
)

const CredentialSchema = item(
  {
    file: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'File with the credential, which something else renews: a token, or JSON as clouds write it. Read again every minute, and before the credential ends.',
      }),
    ),
    command: Type.Optional(
      Type.Array(Type.String(), {
        minItems: 1,
        maxItems: 100,
        description:
          'Program and its arguments, run without a shell, that prints the credential, as `[gcloud, auth, print-access-token]`. In the configuration file only.',
      }),
    ),
    metadata: Type.Optional(
      Type.Enum(['google', 'azure', 'aws'], {
        description:
          'Cloud whose metadata server is asked for the credential of this machine or pod. In the configuration file only.',
      }),
    ),
    resource: Type.Optional(
      Type.String({
        minLength: 1,
        description: 'What a token of Azure is for; `https://ml.azure.com` if absent.',
      }),
    ),
    clientId: Type.Optional(
      Type.String({ minLength: 1, description: 'Which identity of the machine, where Azure has given it several.' }),
    ),
    accessKeyId: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'For SageMaker, instead of a source: name of the access key whose secret is `apiKey` or `apiKeyEnv`.',
      }),
    ),
    region: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'Region that calls of SageMaker are signed for; the one in the address, or `us-east-1`, if absent.',
      }),
    ),
  },
  'Credential that ends and is renewed, instead of `apiKey`: sent as `authorization: Bearer`, or used to sign for SageMaker. A call that it is refused for is made once more with the next one.',
)

/** What every engine behind a URL has. */
const reached = {
  profile: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        'Profile that the engines are thought to follow until they have been measured, or a file `….json`; if absent, the built-in one that comes nearest to the first answers.',
    }),
  ),
  discover: Type.Optional(DiscoverSchema),
  auth: Type.Enum(['bearer', 'api-key', 'none'], {
    default: 'bearer',
    description: 'Header that carries the upstream key: `authorization: Bearer`, `api-key` (Azure), or none.',
  }),
  apiKeyEnv: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
      description: 'Name of the environment variable that holds the upstream key.',
    }),
  ),
  apiKey: Type.Optional(Type.String({ minLength: 1, description: 'Upstream key itself; prefer `apiKeyEnv`.' })),
  credential: Type.Optional(CredentialSchema),
  headers: Type.Record(Type.String(), Type.String(), {
    default: {},
    description: 'Headers that are added to every upstream request.',
  }),
  tls: Type.Optional(TlsSchema),
  timeoutMs: durationMs(defaults.UPSTREAM_TIMEOUT_MS, {
    minimum: 1,
    description: 'Time without a byte after which an upstream is given up, in milliseconds.',
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
  'azure-ml',
  'vertex',
  'sagemaker',
  'none',
] as const

const HttpOpenaiBackendSchema = item(
  {
    kind: Type.Literal('http-openai', { description: 'Server that speaks the OpenAI API.' }),
    url: Type.Optional(httpUrl('Address of the server up to and including the version, as `http://gpu-1:8000/v1`.')),
    ...reached,
    upstreamModel: Type.Optional(
      Type.String({ minLength: 1, description: 'Model name to send upstream; `model` if absent.' }),
    ),
    apiVersion: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9._-]+$',
        description:
          'Azure\u2019s `api-version`, sent with every request; the address then ends in `/openai/deployments/NAME`. If absent, an Azure address ends in `/openai/v1`.',
      }),
    ),
    engine: Type.Enum([...PROBE_STYLES], {
      default: 'auto',
      description:
        'Engine behind the address, which decides where readiness and gauges are read. `auto` asks `/health` and `/metrics`, then the list of models; `none` never asks.',
    }),
    healthPath: Type.Optional(
      Type.String({
        pattern: '^/',
        description: 'Path that tells whether the engine is ready, from the server\u2019s root; 2xx means ready.',
      }),
    ),
    metricsPath: Type.Optional(
      Type.String({ pattern: '^/', description: 'Path of the engine\u2019s metrics, from the server\u2019s root.' }),
    ),
    outputBound: Type.Optional(
      Type.Enum(['max_tokens', 'max_completion_tokens'], {
        description:
          'Name of the parameter in which the engine takes the longest answer of a chat. If absent, `max_completion_tokens` for the engines `openai` and `azure`, else the client\u2019s own.',
      }),
    ),
    runningUsage: Type.Enum(['auto', 'always', 'never'], {
      default: 'auto',
      description:
        'Whether streams are asked for their token counts in every frame (`stream_options.continuous_usage_stats`). `auto` asks engines whose metrics are those of vLLM or SGLang, while their frames may have several tokens; an engine that refuses is asked without.',
    }),
    cacheSalt: Type.Enum(['auto', 'always', 'never'], {
      default: 'auto',
      description:
        'Whether requests carry the salt of their tenant (`cache_salt`), which keeps tenants apart in the engine\u2019s prefix cache (`tenants[].prefixCache`). `auto` sends it to vLLM and SGLang, as `engine` or their metrics say, and without it to one that refuses it; `always` sends it to any engine, and a refusal stands; `never` leaves one cache to all tenants.',
    }),
    dialects: Type.Array(Type.Enum(['responses', 'messages']), {
      default: [],
      uniqueItems: true,
      description:
        'Interfaces that the engine has beside chat: `responses` (`/responses` under the address), `messages` (`/messages`). Requests of that interface are then sent as the client wrote them; else they are translated to a chat.',
    }),
    asksUsage: Type.Boolean({
      default: true,
      description:
        'Whether streams are asked for their token counts. Set it to false for servers that refuse `stream_options`.',
    }),
  },
  'Engines reached over HTTP.',
)

const HttpOipBackendSchema = item(
  {
    kind: Type.Literal('http-oip', {
      description: 'Server of the Open Inference Protocol, version 2: Triton, KServe, TorchServe.',
    }),
    url: Type.Optional(httpUrl('Address of the server\u2019s root, as `http://triton-1:8000`.')),
    ...reached,
    upstreamModel: Type.Optional(
      Type.String({ minLength: 1, description: 'Server\u2019s name for the model; `model` if absent.' }),
    ),
    version: Type.Optional(
      Type.String({ minLength: 1, description: 'Version of the model at the server; the server chooses if absent.' }),
    ),
    runtime: Type.Enum(['vllm', 'tensorrt-llm'], {
      default: 'vllm',
      description: 'Runtime of a language model at the server, which decides the names of its tensors.',
    }),
    template: Type.Enum(['plain', 'chatml', 'llama-3', 'mistral'], {
      default: 'plain',
      description:
        'Chat template that turns a conversation into one text, because the server\u2019s `generate` applies none.',
    }),
    metricsUrl: Type.Optional(
      httpUrl(
        'Address of the server\u2019s metrics, as `http://triton-1:8002/metrics`; Triton has a separate port for them.',
      ),
    ),
  },
  'Engines reached by the Open Inference Protocol.',
)

export const BackendSchema = Type.Union([SimulatedBackendSchema, HttpOpenaiBackendSchema, HttpOipBackendSchema], {
  description: 'Backend: how the pool\u2019s engines are reached.',
})
