import type { Checked } from './check.ts'
import { ContentTranslation } from './messages-content.ts'
import type { CountTokensBody, MessagesBlock, MessagesBody, MessagesTool } from './messages-schema.ts'
import type { ChatBody } from './schemas.ts'

/** A body of Anthropic's Messages → the body of a chat, and the names of the fields that no engine here can honour. */
export interface Translated {
  readonly body: ChatBody
  readonly ignored: readonly string[]
}

/** Fields that are translated below, or that change nothing in an answer of an engine here. */
const HONOURED: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'system',
  'tools',
  'tool_choice',
  'max_tokens',
  'stream',
  'stop_sequences',
  'temperature',
  'top_p',
  'top_k',
  'metadata',
  'output_config',
  'output_format',
  'spillway',
  // Engines cache every prefix that they can; what was found is in `usage.cache_read_input_tokens`.
  'cache_control',
  'service_tier',
])

/** Options of OpenAI-compatible engines that Anthropic's interface does not have: passed on as they are. */
const ENGINE_OPTIONS = [
  'seed',
  'priority',
  'min_p',
  'presence_penalty',
  'frequency_penalty',
  'repetition_penalty',
  'logit_bias',
  'min_tokens',
  'ignore_eos',
  'reasoning_effort',
  'chat_template_kwargs',
  'cache_salt',
] as const

const PASSED: ReadonlySet<string> = new Set(ENGINE_OPTIONS)

export function messagesToChat(asked: MessagesBody | CountTokensBody): Checked<Translated> {
  const content = new ContentTranslation()
  if (asked.system !== undefined && asked.system !== null) content.addSystem(asked.system as string | MessagesBlock[])
  content.addTurns(asked.messages)
  const more = asked as Readonly<Record<string, unknown>>
  const out: Record<string, unknown> = { model: asked.model, messages: content.messages }
  if ('max_tokens' in asked) addGeneration(out, asked)
  addTools(out, asked, content)
  addOutput(out, asked)
  for (const name of ENGINE_OPTIONS) if (more[name] !== undefined) out[name] = more[name]
  if (asked.spillway !== undefined) out['spillway'] = asked.spillway
  if (content.fault !== undefined) return { kind: 'fault', fault: content.fault }
  return { kind: 'ok', value: { body: out as ChatBody, ignored: ignoredOf(more) } }
}

function addGeneration(out: Record<string, unknown>, asked: MessagesBody): void {
  const { stop_sequences: stops, temperature, top_p, top_k, metadata } = asked
  out['max_tokens'] = asked.max_tokens
  if (asked.stream === true) out['stream'] = true
  if (stops !== undefined && stops !== null && stops.length > 0) out['stop'] = stops
  if (temperature !== undefined && temperature !== null) out['temperature'] = temperature
  if (top_p !== undefined && top_p !== null) out['top_p'] = top_p
  // Engines write "no limit" in different ways; leaving it out is one that all of them know.
  if (typeof top_k === 'number' && top_k > 0) out['top_k'] = top_k
  if (typeof metadata?.user_id === 'string') out['user'] = metadata.user_id
}

function addTools(
  out: Record<string, unknown>,
  { tools, tool_choice: choice }: MessagesBody | CountTokensBody,
  content: ContentTranslation,
): void {
  const names = new Set<string>()
  if (tools !== undefined && tools !== null && tools.length > 0) {
    out['tools'] = tools.map((tool, index) => toFunction(tool, index, content))
    for (const { name } of tools) if (name !== undefined) names.add(name)
  }
  if (choice === undefined || choice === null) return
  const { type, name } = choice
  const isForced = type === 'any' || type === 'tool'
  if (names.size === 0) {
    if (isForced) content.refuse('there are no tools to choose from', 'tool_choice', 'invalid-value')
    return
  }
  if (type === 'tool' && (name === undefined || !names.has(name)))
    content.refuse('it names no tool of `tools`', 'tool_choice.name', 'invalid-value')
  out['tool_choice'] = type === 'any' ? 'required' : type === 'tool' ? { type: 'function', function: { name } } : type
  if (choice.disable_parallel_tool_use === true) out['parallel_tool_calls'] = false
}

function toFunction(tool: MessagesTool, index: number, content: ContentTranslation): object {
  const { type, name, description, input_schema: parameters, strict } = tool
  const param = `tools[${index}]`
  if (typeof type === 'string' && type !== 'custom') {
    content.refuse(
      `tools of the type '${type.slice(0, 60)}' are run or defined by Anthropic, and no engine here has them; only tools with an 'input_schema' are supported`,
      `${param}.type`,
    )
  } else if (name === undefined || name === '') {
    content.refuse('the tool needs a name', `${param}.name`, 'missing-required-parameter')
  } else if (parameters === undefined) {
    content.refuse('the tool needs a JSON schema of its input', `${param}.input_schema`, 'missing-required-parameter')
  }
  return {
    type: 'function',
    function: {
      name,
      ...(typeof description === 'string' && { description }),
      parameters,
      ...(typeof strict === 'boolean' && { strict }),
    },
  }
}

/** `output_format` is the older place of `output_config.format`. */
function addOutput(out: Record<string, unknown>, asked: MessagesBody | CountTokensBody): void {
  const { output_config: config, output_format: older } = asked
  const schema = (config?.format ?? older)?.schema
  if (schema !== undefined)
    out['response_format'] = { type: 'json_schema', json_schema: { name: 'output', schema, strict: true } }
  const effort = EFFORTS[config?.effort ?? '']
  if (effort !== undefined) out['reasoning_effort'] = effort
}

/** Engines know three grades. */
const EFFORTS: Readonly<Record<string, string>> = {
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
}

/** Names that are told at most, and their form: they stand in a header. */
const IGNORED_MAX = 16
const IS_NAME = /^\w{1,40}$/

function ignoredOf(asked: Readonly<Record<string, unknown>>): string[] {
  const ignored: string[] = []
  for (const name in asked) {
    if (HONOURED.has(name) || PASSED.has(name) || asked[name] === null || !IS_NAME.test(name)) continue
    if (ignored.length < IGNORED_MAX) ignored.push(name)
  }
  return ignored
}
