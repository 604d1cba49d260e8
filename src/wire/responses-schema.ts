import type { Static, TSchema } from 'typebox'
import { Type } from '../base/schema.ts'
import { SpillwayOptions } from './schemas.ts'

/**
 * The body of `POST /v1/responses`, as far as its own words go. What stands inside `input` and `tools` is checked where it
 * is translated (`responses-input.ts`, `responses-to-chat.ts`): a union of every kind of item would tell a client only
 * that none of them fits. Parameters without a schema go on to the engine, as those of chat do.
 */
const orNull = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]))

const exactCount = { minimum: 1, maximum: Number.MAX_SAFE_INTEGER }

/** OpenAI's bounds of `metadata`. */
const Metadata = Type.Record(Type.String({ maxLength: 64 }), Type.String({ maxLength: 512 }), { maxProperties: 16 })

export const ResponsesBody = Type.Object({
  model: Type.String({ minLength: 1, description: 'A model of GET /v1/models, or one of its aliases.' }),
  input: orNull(
    Type.Union([Type.String(), Type.Array(Type.Object({}))], {
      description: 'A question, or the items of a conversation: messages, reasoning, function calls and their outputs.',
    }),
  ),
  instructions: orNull(Type.String({ description: 'The system message.' })),
  max_output_tokens: orNull(Type.Integer({ ...exactCount, description: 'Upper bound on output tokens.' })),
  max_tool_calls: orNull(Type.Integer(exactCount)),
  stream: orNull(Type.Boolean()),
  stream_options: orNull(Type.Object({ include_obfuscation: orNull(Type.Boolean()) })),
  store: orNull(
    Type.Boolean({ description: 'Keep the response. Only where the tenant may store; see `store` of the answer.' }),
  ),
  previous_response_id: orNull(
    Type.String({ minLength: 1, maxLength: 128, description: 'A kept response to go on from.' }),
  ),
  background: orNull(
    Type.Boolean({
      description: 'Answer at once with `queued`; ask for it by its id. Only where the tenant may store.',
    }),
  ),
  tools: orNull(
    Type.Array(Type.Object({ type: Type.String() }), { description: 'Functions that the model may call.' }),
  ),
  tool_choice: orNull(Type.Union([Type.Enum(['none', 'auto', 'required']), Type.Object({ type: Type.String() })])),
  parallel_tool_calls: orNull(Type.Boolean()),
  text: orNull(Type.Object({ format: orNull(Type.Object({ type: Type.String() })), verbosity: orNull(Type.String()) })),
  reasoning: orNull(
    Type.Object({
      effort: orNull(Type.String()),
      summary: orNull(Type.Enum(['auto', 'concise', 'detailed'])),
      generate_summary: orNull(Type.Enum(['auto', 'concise', 'detailed'])),
    }),
  ),
  include: orNull(Type.Array(Type.String())),
  metadata: orNull(Metadata),
  temperature: orNull(Type.Number({ minimum: 0, maximum: 2 })),
  top_p: orNull(Type.Number({ minimum: 0, maximum: 1 })),
  top_logprobs: orNull(Type.Integer({ minimum: 0, maximum: 20 })),
  truncation: orNull(Type.Enum(['auto', 'disabled'])),
  user: orNull(Type.String()),
  safety_identifier: orNull(Type.String()),
  prompt_cache_key: orNull(Type.String()),
  service_tier: orNull(Type.String()),
  priority: orNull(Type.Number({ description: "vLLM's priority: lower goes sooner." })),
  spillway: orNull(SpillwayOptions),
})

export type ResponsesBody = Static<typeof ResponsesBody>
