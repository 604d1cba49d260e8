import type { Static, TSchema } from 'typebox'
import { Type } from '../base/schema.ts'

/**
 * The bodies that clients send, as far as Spillway reads them. These schemas validate at run time and are served in
 * `/openapi.json`, so the description cannot drift from the behaviour. Parameters without a schema are accepted and
 * passed on, as OpenAI does.
 */

const nullable = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]))

/** Larger integers are not exact in JSON, and sums with them are not exact in the platform. */
const exact = { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }
const atLeastOne = { ...exact, minimum: 1 }
const notNegative = { ...exact, minimum: 0 }

const ContentPart = Type.Object({ type: Type.String() })

export const Message = Type.Object({
  role: Type.Enum(['system', 'developer', 'user', 'assistant', 'tool', 'function'], { description: 'Who speaks.' }),
  content: nullable(Type.Union([Type.String(), Type.Array(ContentPart)])),
  name: Type.Optional(Type.String()),
})

export const SpillwayOptions = Type.Object(
  {
    deadline_ms: nullable(
      Type.Number({ exclusiveMinimum: 0, description: 'The answer is worthless after this long: a running one ends.' }),
    ),
    cut_off: nullable(
      Type.Boolean({ description: 'Whether a running answer ends at the deadline. True if `deadline_ms` is given.' }),
    ),
    ttft_ms: nullable(Type.Number({ exclusiveMinimum: 0, description: 'How soon the first token is wanted.' })),
    bid: nullable(Type.Number({ description: 'Order inside your own lane: higher goes sooner. Clamped.' })),
    band: nullable(
      Type.Enum(['interactive', 'standard', 'offline'], { description: 'Priority class; one that you may use.' }),
    ),
    retrieval: nullable(
      Type.Object(
        {
          corpus: Type.String({
            minLength: 1,
            maxLength: 256,
            description: 'A vector store of yours: its id or name.',
          }),
          top_k: nullable(Type.Integer({ ...atLeastOne, description: 'How many passages at most. Clamped.' })),
          include_passages: nullable(Type.Boolean({ description: 'List the passages in the answer.' })),
        },
        { description: 'Passages that the answer should use. Chat only.' },
      ),
    ),
    cache: nullable(
      Type.Boolean({ description: 'False: neither answered from the answer cache nor kept in it. Chat only.' }),
    ),
  },
  { description: "Spillway's own knobs. Also taken as x-spillway-* headers." },
)

const generation = {
  model: Type.String({ minLength: 1, description: 'A model of GET /v1/models, or one of its aliases.' }),
  max_tokens: nullable(Type.Integer({ ...notNegative, description: 'Upper bound on output tokens of each choice.' })),
  n: nullable(Type.Integer({ ...atLeastOne, description: 'How many answers to the same prompt.' })),
  stream: nullable(Type.Boolean()),
  stream_options: nullable(Type.Object({ include_usage: nullable(Type.Boolean()) })),
  stop: nullable(Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: 4 })])),
  seed: nullable(Type.Integer(exact)),
  temperature: nullable(Type.Number({ minimum: 0, maximum: 2 })),
  top_p: nullable(Type.Number({ minimum: 0, maximum: 1 })),
  user: nullable(Type.String({ description: 'Your user: requests of one stay together where that is faster.' })),
  prompt_cache_key: nullable(Type.String({ description: 'Requests of one key stay together where that is faster.' })),
  safety_identifier: nullable(Type.String()),
  service_tier: nullable(Type.String()),
  priority: nullable(Type.Number({ description: "vLLM's priority: lower goes sooner." })),
  spillway: nullable(SpillwayOptions),
}

export const ChatBody = Type.Object({
  ...generation,
  messages: Type.Array(Message, { minItems: 1 }),
  max_completion_tokens: nullable(Type.Integer(notNegative)),
  logprobs: nullable(Type.Boolean()),
  top_logprobs: nullable(Type.Integer({ minimum: 0, maximum: 20 })),
  store: nullable(Type.Boolean({ description: 'Store the answer for later, where your tenant may.' })),
  tools: nullable(Type.Array(Type.Object({ type: Type.String() }))),
  tool_choice: nullable(Type.Union([Type.String(), Type.Object({ type: Type.String() })])),
  response_format: nullable(Type.Object({ type: Type.String() })),
})

/** No vocabulary is larger than 32 bits can count. */
export const TokenId = Type.Integer({ minimum: 0, maximum: 0xffff_ffff })

export const CompletionBody = Type.Object({
  ...generation,
  prompt: Type.Union([
    Type.String(),
    Type.Array(Type.String(), { minItems: 1 }),
    Type.Array(TokenId, { minItems: 1 }),
    Type.Array(Type.Array(TokenId, { minItems: 1 }), { minItems: 1 }),
  ]),
  logprobs: nullable(Type.Integer({ minimum: 0, maximum: 5 })),
  echo: nullable(Type.Boolean()),
  suffix: nullable(Type.String()),
  best_of: nullable(Type.Integer(notNegative)),
})

export type ChatBody = Static<typeof ChatBody>
export type CompletionBody = Static<typeof CompletionBody>
