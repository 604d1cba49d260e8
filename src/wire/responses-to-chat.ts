import { type Checked, makeCheck } from './check.ts'
import { invalidRequest, type WireFault } from './openai-error.ts'
import { checkChat, type ReadBody, readAs } from './read-body.ts'
import { InputMessages } from './responses-input.ts'
import { type ResponsesBody, ResponsesBody as ResponsesSchema } from './responses-schema.ts'
import type { ChatBody } from './schemas.ts'

/**
 * A Responses body as a chat body. Names that both APIs have go over as they are, and so do names that we do not know: a
 * client of vLLM may send its engine's own. A name of chat that Responses has under another one is refused with that one.
 */
type Json = Readonly<Record<string, unknown>>

export const checkResponses = makeCheck(ResponsesSchema)

export const readResponses = (bytes: Buffer): Checked<ReadBody<ResponsesBody>> => readAs(checkResponses, bytes)

/** Parameters that are said in other words, or that end here. */
const SAID_OTHERWISE: ReadonlySet<string> = new Set([
  'background',
  'client_metadata',
  'include',
  'input',
  'instructions',
  'max_output_tokens',
  'max_tool_calls',
  // Chat takes metadata only for what OpenAI itself stores.
  'metadata',
  'parallel_tool_calls',
  'previous_response_id',
  'reasoning',
  'store',
  'stream_options',
  'text',
  'tool_choice',
  'tools',
  'top_logprobs',
  'truncation',
  // No name of a parameter: written into an object, it would change what the object is.
  '__proto__',
])

/** Names of chat, and where Responses has them. */
const MOVED: Readonly<Record<string, string>> = {
  messages: 'input',
  max_tokens: 'max_output_tokens',
  max_completion_tokens: 'max_output_tokens',
  response_format: 'text.format',
  reasoning_effort: 'reasoning.effort',
  verbosity: 'text.verbosity',
  logprobs: 'top_logprobs',
  functions: 'tools',
  function_call: 'tool_choice',
}

/** What the Responses API has and this server has not, with what to do instead. */
const ABSENT: Readonly<Record<string, string>> = {
  conversation: 'Send the conversation in `input`, or go on with `previous_response_id`.',
  prompt: 'Send the prompt itself in `instructions` and `input`.',
  context_management: 'Send a shorter `input`.',
  moderation: 'Leave it out.',
  n: 'Ask once for each answer.',
}

/** The parameters of a translated chat in the words of the body that the client sent. */
export const RESPONSES_PARAMS: Readonly<Record<string, string>> = {
  ...MOVED,
  messages: 'input',
  max_tokens: 'max_output_tokens',
}

/** `earlier`: the items of the conversation that `previous_response_id` names; absent where it is not known. */
export function toChat(body: ResponsesBody, earlier?: readonly object[]): Checked<ChatBody> {
  const fault = wrongName(body) ?? unknownPrevious(body, earlier)
  if (fault !== undefined) return { kind: 'fault', fault }
  const said = new InputMessages()
  if (typeof body.instructions === 'string' && body.instructions !== '') said.instructions(body.instructions)
  if (earlier !== undefined) said.input(earlier, 'previous_response_id')
  said.input(body.input ?? [])
  if (said.fault !== undefined) return { kind: 'fault', fault: said.fault }
  if (body.input === undefined || body.input === null || body.input.length === 0) {
    if (typeof body.input !== 'string' && (earlier?.length ?? 0) === 0) return missingInput()
  }
  const out: Record<string, unknown> = { model: body.model, messages: said.messages }
  const given = body as Json
  for (const name in given) if (!SAID_OTHERWISE.has(name) && given[name] !== null) out[name] = given[name]
  const wrong = addSettings(body, out) ?? addTools(body, out)
  return wrong === undefined ? checkChat(out) : { kind: 'fault', fault: wrong }
}

function unknownPrevious({ previous_response_id: id }: ResponsesBody, earlier: unknown): WireFault | undefined {
  if (typeof id !== 'string' || earlier !== undefined) return undefined
  const message = `Previous response with id '${id}' not found. Send the whole conversation in \`input\`, with \`store: false\`.`
  return invalidRequest(message, 'previous_response_id', 'previous-response-not-found')
}

function missingInput(): Checked<ChatBody> {
  return {
    kind: 'fault',
    fault: invalidRequest("Missing required parameter: 'input'.", 'input', 'missing-required-parameter'),
  }
}

function wrongName(body: ResponsesBody): WireFault | undefined {
  const given = body as Json
  for (const name in given) {
    const value = given[name]
    if (value === null || value === false || (name === 'n' && value === 1)) continue
    if (Object.hasOwn(MOVED, name)) return unsupported(name, `In the Responses API this parameter is '${MOVED[name]}'.`)
    if (Object.hasOwn(ABSENT, name)) return unsupported(name, String(ABSENT[name]))
  }
  return undefined
}

const unsupported = (param: string, advice: string): WireFault =>
  invalidRequest(`Unsupported parameter: '${param}'. ${advice}`, param, 'unsupported-parameter')

const wrongValue = (param: string, because: string): WireFault =>
  invalidRequest(`Invalid '${param}': ${because}.`, param, 'invalid-value')

function addSettings(body: ResponsesBody, out: Record<string, unknown>): WireFault | undefined {
  if (typeof body.max_output_tokens === 'number') out['max_tokens'] = body.max_output_tokens
  if (typeof body.reasoning?.effort === 'string') out['reasoning_effort'] = body.reasoning.effort
  if (typeof body.text?.verbosity === 'string') out['verbosity'] = body.text.verbosity
  if (wantsLogprobs(body)) {
    out['logprobs'] = true
    out['top_logprobs'] = body.top_logprobs ?? 0
  }
  const format = body.text?.format as Json | null | undefined
  switch (format?.['type']) {
    case undefined:
    case 'text':
      return undefined
    case 'json_object':
      out['response_format'] = { type: 'json_object' }
      return undefined
    case 'json_schema': {
      const { type: _, ...schema } = format
      if (typeof schema['name'] !== 'string') return wrongValue('text.format.name', 'it must be a string')
      if (!isObject(schema['schema'])) return wrongValue('text.format.schema', 'it must be an object')
      out['response_format'] = { type: 'json_schema', json_schema: schema }
      return undefined
    }
    default:
      return wrongValue('text.format.type', 'it must be "text", "json_object" or "json_schema"')
  }
}

/** What `include` may ask for here; other values are about tools that run inside OpenAI. */
const INCLUDED: ReadonlySet<string> = new Set(['message.output_text.logprobs', 'reasoning.encrypted_content'])

/** Wishes that are taken and not honoured. */
export function ignoredIn({ truncation, max_tool_calls, include }: ResponsesBody): string[] {
  const ignored: string[] = []
  if (truncation === 'auto') ignored.push('truncation')
  if (typeof max_tool_calls === 'number') ignored.push('max_tool_calls')
  if (include?.some((one) => !INCLUDED.has(one)) === true) ignored.push('include')
  return ignored
}

export const wantsLogprobs = (body: ResponsesBody): boolean =>
  (body.top_logprobs ?? 0) > 0 || body.include?.includes('message.output_text.logprobs') === true

function addTools(body: ResponsesBody, out: Record<string, unknown>): WireFault | undefined {
  const tools = (body.tools ?? []) as readonly Json[]
  const choice = body.tool_choice
  const allowed = typeof choice === 'object' && choice?.type === 'allowed_tools' ? (choice as Json) : undefined
  const names = allowed === undefined ? undefined : allowedNames(allowed['tools'])
  const said: Json[] = []
  for (let i = 0; i < tools.length; i++) {
    const tool = tools[i] as Json
    const { type, name } = tool
    if (type !== 'function' && type !== 'custom') return hostedTool(`tools[${i}].type`)
    if (typeof name !== 'string' || name === '')
      return wrongValue(`tools[${i}].name`, 'it must be a string that is not empty')
    if (names === undefined || names.has(name)) said.push(type === 'function' ? functionTool(tool) : customTool(tool))
  }
  if (said.length > 0) {
    out['tools'] = said
    if (typeof body.parallel_tool_calls === 'boolean') out['parallel_tool_calls'] = body.parallel_tool_calls
  }
  if (choice === undefined || choice === null) return undefined
  if (typeof choice === 'string') {
    // Chat refuses a choice without tools, but for these two words it means nothing.
    if (said.length > 0 || choice === 'required') out['tool_choice'] = choice
    return undefined
  }
  if (allowed !== undefined) {
    if (said.length > 0) out['tool_choice'] = allowed['mode'] === 'required' ? 'required' : 'auto'
    return undefined
  }
  const { type, name } = choice as Json
  if (type !== 'function' && type !== 'custom') return hostedTool('tool_choice.type')
  if (typeof name !== 'string' || name === '')
    return wrongValue('tool_choice.name', 'it must be a string that is not empty')
  out['tool_choice'] = { type, [type]: { name } }
  return undefined
}

const hostedTool = (param: string): WireFault =>
  invalidRequest(
    `Unsupported '${param}': only functions of your own ("function", "custom") can be called here. Leave out tools that run inside OpenAI.`,
    param,
    'unsupported-parameter',
  )

function functionTool({ name, description, parameters, strict }: Json): Json {
  return {
    type: 'function',
    function: {
      name,
      ...(typeof description === 'string' && { description }),
      ...(isObject(parameters) && { parameters }),
      ...(typeof strict === 'boolean' && { strict }),
    },
  }
}

function customTool({ name, description, format }: Json): Json {
  const custom = {
    name,
    ...(typeof description === 'string' && { description }),
    ...(isObject(format) && { format: grammarOf(format) }),
  }
  return { type: 'custom', custom }
}

/** Chat puts the grammar one level deeper. */
function grammarOf({ type, ...grammar }: Json): Json {
  return type === 'grammar' ? { type, grammar } : { type }
}

function allowedNames(tools: unknown): ReadonlySet<unknown> {
  return new Set(Array.isArray(tools) ? tools.map((tool: Json | null) => tool?.['name']) : [])
}

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
