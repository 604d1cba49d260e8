import type { Static, TSchema } from 'typebox'
import { Type } from '../base/schema.ts'
import { SpillwayOptions } from './schemas.ts'

/**
 * The bodies of Anthropic's Messages and of its token counting, as far as Spillway reads them. Content blocks and tools
 * are open here, because their kinds have different fields: `messages-content.ts` and `messages-tools.ts` check each
 * kind where it is translated, and can name what is missing.
 */
const nullable = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]))

const Block = Type.Object({ type: Type.String({ description: 'text, image, tool_use, tool_result, thinking, …' }) })

const Turn = Type.Object({
  role: Type.Enum(['user', 'assistant', 'system'], { description: 'Who speaks.' }),
  content: Type.Union([Type.String(), Type.Array(Block)]),
})

const Tool = Type.Object({
  type: nullable(Type.String({ description: '`custom`, which is the default: tools of the client.' })),
  name: Type.Optional(Type.String()),
  description: nullable(Type.String()),
  input_schema: Type.Optional(Type.Object({}, { description: "JSON schema of the tool's input." })),
  strict: nullable(Type.Boolean()),
})

const ToolChoice = Type.Object({
  type: Type.Enum(['auto', 'any', 'tool', 'none']),
  name: Type.Optional(Type.String({ description: 'The tool to use, with `tool`.' })),
  disable_parallel_tool_use: nullable(Type.Boolean()),
})

const OutputFormat = Type.Object({ type: Type.Literal('json_schema'), schema: Type.Object({}) })

const conversation = {
  model: Type.String({ minLength: 1, description: 'A model of GET /v1/models, or one of its aliases.' }),
  messages: Type.Array(Turn, { minItems: 1 }),
  system: nullable(Type.Union([Type.String(), Type.Array(Block)])),
  tools: nullable(Type.Array(Tool)),
  tool_choice: nullable(ToolChoice),
  thinking: nullable(Type.Object({ type: Type.String() })),
  output_config: nullable(
    Type.Object({ effort: nullable(Type.String()), format: nullable(OutputFormat) }, { description: 'JSON schema.' }),
  ),
  output_format: nullable(OutputFormat),
  spillway: nullable(SpillwayOptions),
}

/** Stop sequences of one request: engines look for each of them after every token. */
const STOPS_MAX = 32

export const MessagesBody = Type.Object({
  ...conversation,
  max_tokens: Type.Integer({
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'Upper bound on output tokens, thinking included.',
  }),
  stream: nullable(Type.Boolean()),
  stop_sequences: nullable(Type.Array(Type.String(), { maxItems: STOPS_MAX })),
  temperature: nullable(Type.Number({ minimum: 0, maximum: 1 })),
  top_p: nullable(Type.Number({ minimum: 0, maximum: 1 })),
  top_k: nullable(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  seed: nullable(Type.Integer({ minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER })),
  priority: nullable(Type.Number({ description: "vLLM's priority: lower goes sooner." })),
  metadata: nullable(
    Type.Object({
      user_id: nullable(Type.String({ description: 'Your user: requests of one stay together where that is faster.' })),
    }),
  ),
})

export const CountTokensBody = Type.Object(conversation)

export type MessagesBody = Static<typeof MessagesBody>
export type CountTokensBody = Static<typeof CountTokensBody>
export type MessagesTurn = Static<typeof Turn>
export type MessagesTool = Static<typeof Tool>
export type MessagesBlock = Readonly<Record<string, unknown>> & { readonly type: string }
