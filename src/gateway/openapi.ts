import type { TSchema } from 'typebox'
import { EmbeddingBody } from '../wire/embeddings.ts'
import { ModerationBody } from '../wire/moderations.ts'
import { ResponsesBody } from '../wire/responses-schema.ts'
import { ChatBody, CompletionBody } from '../wire/schemas.ts'
import { MetadataBody } from '../wire/stored-completions.ts'
import { TensorBody } from '../wire/tensors.ts'
import { TRANSIT_WAYS, TransitBodySchema, type TransitWay } from '../wire/transit.ts'
import { type AdminSchemas, adminComponents, adminPaths, auditPaths, tenancyPaths } from './openapi-admin.ts'
import { azurePaths, type Operation } from './openapi-azure.ts'
import { corpusPaths } from './openapi-corpora.ts'
import { KEY_HEADERS, MESSAGES_ERROR, messagesPaths } from './openapi-messages.ts'
import { storedResponsePaths } from './openapi-responses.ts'
import { ownPaths } from './openapi-tenancy.ts'
import { InferBody } from './routes/infer.ts'

/** The description of the API, made from the schemas that validate it, so that description and server agree. */
export function openApiDocument(options: { version: string; basePath: string; admin: AdminSchemas }): string {
  const openAi = openAiPaths()
  const document = {
    openapi: '3.1.0',
    info: {
      title: 'Spillway',
      version: options.version,
      description: 'An OpenAI-compatible front door that admits only what it can finish in time.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: options.basePath === '' ? '/' : options.basePath }],
    security: [{ key: [] }, { anthropicKey: [] }, { azureKey: [] }],
    paths: {
      ...openAi,
      '/v1/chat/completions': {
        ...openAi['/v1/chat/completions'],
        get: plain('listChatCompletions', 'Lists your stored completions, oldest first.'),
      },
      '/v1/chat/completions/{id}': {
        get: { ...plain('getChatCompletion', 'A stored completion.'), ...AT_ID },
        post: { ...whole('updateChatCompletion', 'Changes its metadata.', MetadataBody, 'Error'), ...AT_ID },
        delete: { ...plain('deleteChatCompletion', 'Deletes a stored completion.'), ...AT_ID },
      },
      '/v1/chat/completions/{id}/messages': {
        get: { ...plain('getChatCompletionMessages', 'The messages that a stored completion answers.'), ...AT_ID },
      },
      ...storedResponsePaths(plain),
      ...Object.fromEntries(TRANSIT_WAYS.map((way) => [way.path, { post: transit(way) }])),
      ...messagesPaths(),
      ...deploymentPaths(),
      ...azurePaths(openAi),
      '/v1/moderations': { post: whole('createModeration', 'Kinds of harm in texts.', ModerationBody, 'Error') },
      '/infer': {
        post: whole('inferTokens', 'Asks for a number of tokens, and tells how it went.', InferBody, 'Error'),
      },
      '/v2': { get: open('serverMetadata', 'Open Inference Protocol: what server this is.') },
      '/v2/health/live': { get: open('serverLive', 'Open Inference Protocol: the process is alive.') },
      '/v2/health/ready': { get: open('serverReady', 'Open Inference Protocol: requests are taken.') },
      '/v2/models/{model}': {
        get: { ...plain('modelMetadata', 'Names and shapes of a model’s tensors.', 'TensorError'), ...AT_MODEL },
      },
      '/v2/models/{model}/ready': {
        get: { ...plain('modelReady', 'Whether a replica of the model is ready.', 'TensorError'), ...AT_MODEL },
      },
      '/v2/models/{model}/infer': {
        post: { ...whole('infer', 'Tensors for tensors: ranking, vision.', TensorBody, 'TensorError'), ...AT_MODEL },
      },
      '/spillway/requests/{id}': {
        get: { ...plain('explainRequest', 'Every decision about one of your requests, with its reason.'), ...AT_ID },
      },
      '/spillway/refusals': { get: plain('listRefusals', 'Your last requests that were not answered, newest first.') },
      '/v1/organization/usage/completions': {
        get: plain('usageCompletions', 'What was used, in buckets of days or hours, as OpenAI tells it.'),
      },
      '/v1/spillway/audit': {
        get: plain('ownAudit', 'Events of the audit about the org, newest first, for keys that may read its history.'),
      },
      '/v1/organization/costs': { get: plain('usageCosts', 'What it is sold at, in buckets, as OpenAI tells it.') },
      ...corpusPaths(refusals()),
      ...adminPaths(),
      ...auditPaths(),
      ...ownPaths(tenancyPaths(), plain('ownStanding', 'What the key may do, what it has left, its last refusals.')),
      '/': { get: open('root', 'The server is there.') },
      '/health': { get: open('health', 'The process is alive.') },
      '/health/ready': { get: open('ready', 'The platform can take requests; 503 while it cannot.') },
      ...autoscalePaths(plain),
      '/metrics': { get: { ...plain('metrics', 'Metrics: text, OpenMetrics or JSON, by `Accept`.'), ...METRICS_KEYS } },
    },
    components: {
      securitySchemes: SECURITY_SCHEMES,
      schemas: {
        Error: ERROR,
        TensorError: TENSOR_ERROR,
        MessagesError: MESSAGES_ERROR,
        ...adminComponents(options.admin),
      },
    },
  }
  return JSON.stringify(document)
}

const SECURITY_SCHEMES = {
  key: {
    type: 'http',
    scheme: 'bearer',
    description: 'A key from `spillway keys create`, or a token of an issuer in `oidc.issuers`.',
  },
  ...KEY_HEADERS,
  adminKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'A key of `admin.keys`, or a token with the role `platform-admin`.',
  },
  metricsKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'A key of `admin.metricsKeys`, or a token with the role `metrics-reader`.',
  },
}

const METRICS_KEYS = { security: [{ adminKey: [] }, { metricsKey: [] }] }

const AT_MODEL = { parameters: [{ name: 'model', in: 'path', required: true, schema: { type: 'string' } }] }

type Plain = (id: string, summary: string) => object

const autoscalePaths = (plain: Plain) => ({
  '/autoscale': {
    get: {
      ...plain('autoscaleAll', 'Signals of all pools, to scale by, for keys that may read metrics.'),
      ...METRICS_KEYS,
    },
  },
  '/autoscale/{pool}': {
    get: { ...plain('autoscale', 'Signals of one pool as plain numbers, to scale by.'), ...AT_POOL, ...METRICS_KEYS },
  },
})

const AT_POOL = { parameters: [{ name: 'pool', in: 'path', required: true, schema: { type: 'string' } }] }

const AT_ID = { parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }] }

const nullableString = { type: ['string', 'null'] }

const ERROR = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['message', 'type', 'param', 'code'],
      properties: {
        message: { type: 'string' },
        type: { type: 'string' },
        param: nullableString,
        code: nullableString,
      },
    },
  },
}

const TENSOR_ERROR = { type: 'object', required: ['error'], properties: { error: { type: 'string' } } }

const REFUSALS = {
  400: 'The request is wrong; `error.param` says where.',
  401: 'No valid key.',
  404: 'No such model.',
  413: 'The body is too large.',
  415: 'The body is not JSON.',
  429: 'You are over your share or limit; Retry-After says when to come back.',
  503: 'The platform is over its capacity; Retry-After says when to come back.',
}

/** What is served at Azure's addresses, too. */
const openAiPaths = () => ({
  '/v1/chat/completions': { post: generation('createChatCompletion', 'Answers a conversation.', ChatBody) },
  '/v1/completions': { post: generation('createCompletion', 'Continues a prompt.', CompletionBody) },
  '/v1/responses': { post: generation('createResponse', 'Answers in items, as the Responses API.', ResponsesBody) },
  '/v1/embeddings': { post: whole('createEmbedding', 'Vectors for texts.', EmbeddingBody, 'Error') },
  '/v1/models': { get: plain('listModels', 'Lists the models and their aliases.') },
  '/v1/models/{model}': { get: { ...plain('retrieveModel', 'Describes one model.'), ...AT_MODEL } },
})

const deploymentPaths = (): object => ({
  '/openai/deployments/{model}/chat/completions': {
    post: { ...generation('createDeployedChat', 'A chat, at Azure’s address.', ChatBody), ...AT_MODEL },
  },
  '/openai/deployments/{model}/completions': {
    post: { ...generation('createDeployedCompletion', 'A prompt, at Azure’s address.', CompletionBody), ...AT_MODEL },
  },
  '/openai/deployments/{model}/embeddings': {
    post: { ...whole('createDeployedEmbedding', 'Vectors, at Azure’s address.', EmbeddingBody, 'Error'), ...AT_MODEL },
  },
})

type ErrorName = 'Error' | 'TensorError'

function refusals(error: ErrorName = 'Error'): object {
  const content = { 'application/json': { schema: { $ref: `#/components/schemas/${error}` } } }
  return Object.fromEntries(Object.entries(REFUSALS).map(([status, description]) => [status, { description, content }]))
}

function generation(operationId: string, summary: string, body: TSchema): Operation {
  return {
    operationId,
    summary,
    requestBody: { required: true, content: { 'application/json': { schema: body } } },
    responses: {
      200: {
        description: 'The answer: one JSON document, or server-sent events when `stream` is true.',
        content: { 'application/json': {}, 'text/event-stream': {} },
      },
      ...refusals(),
    },
  }
}

function whole(operationId: string, summary: string, body: TSchema, error: ErrorName): Operation {
  return {
    operationId,
    summary,
    requestBody: { required: true, content: { 'application/json': { schema: body } } },
    responses: {
      200: { description: 'The answer, as one JSON document.', content: { 'application/json': {} } },
      ...refusals(error),
    },
  }
}

/** What passes through is described by its engine; we look at the model alone. */
function transit({ operationId, summary, takesForms }: TransitWay): object {
  const form = { schema: { ...TransitBodySchema, description: 'A form; `model` comes before a large file.' } }
  return {
    operationId,
    summary,
    requestBody: {
      required: true,
      content: {
        'application/json': { schema: TransitBodySchema },
        ...(takesForms && { 'multipart/form-data': form }),
      },
    },
    responses: {
      200: { description: 'The engine’s answer, as it wrote it.', content: { '*/*': {} } },
      ...refusals(),
    },
  }
}

const plain = (operationId: string, summary: string, error: ErrorName = 'Error'): Operation => ({
  operationId,
  summary,
  responses: { 200: { description: 'OK' }, ...refusals(error) },
})

const open = (operationId: string, summary: string): object => ({
  operationId,
  summary,
  security: [],
  responses: { 200: { description: 'OK' }, 503: { description: 'Not now' } },
})
