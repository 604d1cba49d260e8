import type { TSchema } from 'typebox'
import { CountTokensBody, MessagesBody } from '../wire/messages-schema.ts'

/** The part of the API's description about Anthropic's Messages, and about the other headers that a key may come in. */
const bodyOf = (schema: TSchema): object => ({ required: true, content: { 'application/json': { schema } } })

const REFUSALS: Readonly<Record<number, string>> = {
  400: 'The request is wrong; `error.spillway.param` says where.',
  401: 'No valid key.',
  403: 'The key may not do this.',
  404: 'No such model.',
  413: 'The body is too large.',
  429: 'You are over your share or limit; Retry-After says when to come back.',
  529: 'The platform is over its capacity; Retry-After says when to come back.',
}

function refusals(): object {
  const content = { 'application/json': { schema: { $ref: '#/components/schemas/MessagesError' } } }
  return Object.fromEntries(Object.entries(REFUSALS).map(([status, description]) => [status, { description, content }]))
}

export const messagesPaths = (): object => ({
  '/v1/messages': {
    post: {
      operationId: 'createMessage',
      summary: 'Answers a conversation in the shapes of Anthropic’s Messages.',
      requestBody: bodyOf(MessagesBody),
      responses: {
        200: {
          description: 'The message: one JSON document, or named server-sent events when `stream` is true.',
          content: { 'application/json': {}, 'text/event-stream': {} },
        },
        ...refusals(),
      },
    },
  },
  '/v1/messages/count_tokens': {
    post: {
      operationId: 'countMessageTokens',
      summary: 'Counts the tokens of a conversation without answering it.',
      requestBody: bodyOf(CountTokensBody),
      responses: {
        200: { description: 'The number, as `input_tokens`.', content: { 'application/json': {} } },
        ...refusals(),
      },
    },
  },
})

export const MESSAGES_ERROR = {
  type: 'object',
  required: ['type', 'error', 'request_id'],
  properties: {
    type: { const: 'error' },
    error: {
      type: 'object',
      required: ['type', 'message'],
      properties: { type: { type: 'string' }, message: { type: 'string' }, spillway: { type: 'object' } },
    },
    request_id: { type: ['string', 'null'] },
  },
}

/** Ways to send the same key. */
export const KEY_HEADERS = {
  anthropicKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'The same key, as Anthropic has it.' },
  azureKey: { type: 'apiKey', in: 'header', name: 'api-key', description: 'The same key, as Azure has it.' },
}
