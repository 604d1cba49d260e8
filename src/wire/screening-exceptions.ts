/**
 * Strings of a body that no screen rewrites: a closed list for each dialect. An exception is for a member *and* a form:
 * a value of the member that has another form is a text like any other. So no free text passes by its place alone.
 */
export type ExceptionForm =
  /** The name of a model of this platform, or an alias. */
  | 'model'
  /** The caller's own tenant. */
  | 'tenant'
  /** Anything: it is compared with what rests as it was uploaded, and goes to no model. */
  | 'filter'
  /** A word of the protocol (`PROTOCOL_WORDS`). */
  | 'word'
  /** An id as this platform makes them: a short prefix and hexadecimal digits. */
  | 'made-id'
  /** Bytes in base64, or a data URL with them, of 256 characters or more: marked `unscreened`. */
  | 'bytes'

export interface LeafException {
  /** The member of the value; of a `filter`, the member of the outermost object. */
  readonly member: string
  readonly form: ExceptionForm
  readonly because: string
}

export type ScreenedDialect =
  | 'chat'
  | 'completion'
  | 'responses'
  | 'messages'
  | 'embeddings'
  | 'tensors'
  | 'transit'
  | 'infer'
  | 'search'

const MODEL: LeafException = {
  member: 'model',
  form: 'model',
  because: 'the request is routed by it; a name that no model has is screened, and then refused',
}
const words = (...members: readonly string[]): LeafException[] =>
  members.map((member) => ({ member, form: 'word', because: 'the protocol gives it these words and no others' }))
const ids = (...members: readonly string[]): LeafException[] =>
  members.map((member) => ({ member, form: 'made-id', because: 'it names a thing that was made here' }))
const bytes = (...members: readonly string[]): LeafException[] =>
  members.map((member) => ({ member, form: 'bytes', because: 'no screen can read it; the setting `binary` decides' }))

const ENGINE_WORDS = ['service_tier', 'reasoning_effort', 'verbosity', 'effort', 'tool_choice', 'encoding_format']

export const SCREENING_EXCEPTIONS: Readonly<Record<ScreenedDialect, readonly LeafException[]>> = {
  chat: [
    MODEL,
    ...words('role', 'type', 'format', 'detail', 'band', ...ENGINE_WORDS),
    ...ids('id', 'tool_call_id'),
    ...bytes('url', 'data', 'file_data', 'image_url'),
  ],
  completion: [MODEL, ...words('type', 'band', ...ENGINE_WORDS)],
  responses: [
    MODEL,
    ...words('role', 'type', 'status', 'format', 'detail', 'summary', 'truncation', 'include', 'mode', 'band'),
    ...words(...ENGINE_WORDS),
    ...ids('id', 'call_id', 'item_id', 'previous_response_id'),
    ...bytes('image_url', 'file_data', 'data'),
  ],
  messages: [
    MODEL,
    ...words('role', 'type', 'media_type', 'band', ...ENGINE_WORDS),
    ...ids('id', 'tool_use_id'),
    ...bytes('data', 'signature'),
  ],
  embeddings: [MODEL, ...words('encoding_format', 'band')],
  tensors: [...words('datatype', 'band'), ...bytes('data')],
  transit: [
    MODEL,
    ...words('response_format', 'voice', 'size', 'quality', 'style', 'background', 'output_format', 'role', 'type'),
    ...bytes('image', 'mask', 'url', 'data'),
  ],
  infer: [
    MODEL,
    { member: 'tenant_id', form: 'tenant', because: 'it is compared with the tenant of the key, and goes no further' },
  ],
  search: [
    ...words('ranker'),
    { member: 'filters', form: 'filter', because: 'attributes of documents rest as they were uploaded' },
  ],
}

/** Words that a protocol gives a meaning; as a whole value they are no text of a client. */
export const PROTOCOL_WORDS: ReadonlySet<string> = new Set(
  `system developer user assistant tool function model
  text input_text output_text image_url input_image input_audio audio file input_file video_url refusal summary_text
  json_schema json_object object string number integer boolean array null
  message function_call function_call_output custom custom_tool_call custom_tool_call_output reasoning item_reference
  tool_use tool_result image document base64 url thinking redacted_thinking ephemeral content enabled disabled adaptive
  auto any none required allowed_tools grammar lark regex
  low medium high xhigh max minimal concise detailed
  default flex priority scale interactive standard offline
  float float16 wav mp3 opus aac flac pcm png jpeg webp srt vtt verbose_json json b64_json
  completed incomplete in_progress reasoning.encrypted_content message.output_text.logprobs
  BOOL UINT8 UINT16 UINT32 UINT64 INT8 INT16 INT32 INT64 FP16 FP32 FP64 BYTES
  eq ne gt gte lt lte and or
  image/png image/jpeg image/gif image/webp application/pdf text/plain`.split(/\s+/),
)

/** Property names of the protocols; every other name is screened as text is. */
export const PROTOCOL_NAMES: ReadonlySet<string> = new Set(
  `model messages role content name type text image_url url detail input_audio data format file file_data file_id
  filename tool_calls tool_call_id id function arguments tools tool_choice parameters strict description response_format
  json_schema schema refusal stream stream_options include_usage continuous_usage_stats stop seed temperature top_p top_k
  n max_tokens max_completion_tokens user prompt_cache_key safety_identifier service_tier priority spillway deadline_ms
  cut_off ttft_ms bid band retrieval corpus include_passages cache logprobs top_logprobs store metadata prompt echo suffix
  best_of logit_bias frequency_penalty presence_penalty parallel_tool_calls reasoning_effort verbosity
  input instructions max_output_tokens previous_response_id reasoning effort summary truncation include background
  max_tool_calls call_id output status annotations encrypted_content
  system max_tokens_to_sample stop_sequences thinking budget_tokens tool_use_id input_schema source media_type
  cache_control output_config output_format disable_parallel_tool_use user_id is_error citations title context
  inputs outputs shape datatype encoding_format dimensions query queries documents text_1 text_2 top_n voice
  tenant_id tokens_requested priority_bid filters key value filter max_num_results rewrite_query ranking_options
  properties required items enum additionalProperties anyOf oneOf allOf $ref $defs const default examples minimum maximum
  minLength maxLength minItems maxItems pattern`.split(/\s+/),
)

/** Members whose list of numbers is a prompt in token ids. */
export const TOKEN_LISTS: ReadonlySet<string> = new Set([
  'prompt',
  'input',
  'tokens',
  'token_ids',
  'input_ids',
  'prompt_token_ids',
  'prompt_ids',
])

/** Ids as they are made here, and as engines make those of tool calls; a run of digits alone is none. */
const MADE_ID = /^[a-z]{1,14}[_-](?=[0-9a-f]*[a-f])[0-9a-f]{24,48}(?:[_-]\d{1,6})?$/

const BYTES_CHARACTERS_MIN = 256
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/
const DATA_URL = /^data:([a-z]+)\/[\w.+-]+(?:;[\w=.+-]+)*;base64,/i

/** A string of a body, and what it is compared with. */
export interface ExceptionAsk {
  readonly member: string
  readonly top: string
  readonly value: string
  readonly tenantId: string
  readonly isModel: (name: string) => boolean
}

/** The value is excepted: `bytes` are told by their kind, all others are `true`. */
export function exceptionFor(
  exceptions: readonly LeafException[],
  ask: ExceptionAsk,
): true | { readonly bytes: string } | undefined {
  for (let i = 0; i < exceptions.length; i++) {
    const { member, form } = exceptions[i] as LeafException
    if (member !== (form === 'filter' ? ask.top : ask.member)) continue
    if (form !== 'bytes') {
      if (hasForm(form, ask)) return true
      continue
    }
    const kind = bytesKind(ask.value)
    if (kind !== undefined) return { bytes: kind }
  }
  return undefined
}

function hasForm(form: Exclude<ExceptionForm, 'bytes'>, { value, tenantId, isModel }: ExceptionAsk): boolean {
  switch (form) {
    case 'model':
      return isModel(value)
    case 'tenant':
      return value === tenantId
    case 'word':
      return PROTOCOL_WORDS.has(value)
    case 'made-id':
      return MADE_ID.test(value)
    case 'filter':
      return true
  }
}

function bytesKind(value: string): string | undefined {
  if (value.length < BYTES_CHARACTERS_MIN) return undefined
  const url = DATA_URL.exec(value.slice(0, BYTES_CHARACTERS_MIN))
  const encoded = url === null ? value : value.slice(url[0].length)
  if (!BASE64.test(encoded)) return undefined
  const kind = url?.[1]?.toLowerCase() ?? ''
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'file'
}

/** Types of parts whose content no screen reads, with the word that marks them. */
export const BINARY_PARTS: ReadonlyMap<string, string> = new Map([
  ['image_url', 'image'],
  ['input_image', 'image'],
  ['image', 'image'],
  ['input_audio', 'audio'],
  ['audio', 'audio'],
  ['audio_url', 'audio'],
  ['video_url', 'video'],
  ['video', 'video'],
  ['file', 'file'],
  ['input_file', 'file'],
])

/** Members with a prompt as a model's own numbers, which no screen reads. */
export const EMBEDDED_PROMPTS: ReadonlySet<string> = new Set(['prompt_embeds', 'image_embeds', 'input_embeds'])
