import type { Behaviour } from './fake-upstream.ts'

/** Exchanges of engines that speak Responses and Messages themselves: what they write, event by event. */
export type Event = Readonly<Record<string, unknown>> & { readonly type: string }

const PART = { type: 'output_text', text: '', annotations: [], logprobs: [] }
const item = (status: string, text?: string) => ({
  id: 'msg_engine_1',
  type: 'message',
  status,
  role: 'assistant',
  content: text === undefined ? [] : [{ ...PART, text }],
  phase: 'final_answer',
})

const searchOf = (status: string) => ({
  id: 'ws_engine_0',
  type: 'web_search_call',
  status,
  action: { type: 'search', query: 'dam' },
})

const RESPONSES_USAGE = {
  input_tokens: 11,
  input_tokens_details: { cached_tokens: 4 },
  output_tokens: 3,
  output_tokens_details: { reasoning_tokens: 0, tool_tokens: 7 },
  total_tokens: 14,
}

export const responseOf = (status: string, words: readonly string[] = []) => ({
  id: 'resp_engine',
  object: 'response',
  created_at: 1_700_000_000,
  status,
  model: 'engine-model',
  output: status === 'completed' ? [searchOf('completed'), item('completed', words.join(''))] : [],
  store: false,
  engine_note: { temperature: 1, more: ['kept'] },
  usage: status === 'completed' ? RESPONSES_USAGE : null,
})

/** A search that the engine runs itself, then a message. */
export function responsesEvents(words: readonly string[], searchCount = 12, repeated: object = {}): Event[] {
  const place = { item_id: 'msg_engine_1', output_index: 1, content_index: 0 }
  const text = words.join('')
  const all: Event[] = [
    { type: 'response.created', response: { ...responseOf('in_progress'), ...repeated } },
    { type: 'response.in_progress', response: { ...responseOf('in_progress'), ...repeated } },
    { type: 'response.output_item.added', output_index: 0, item: searchOf('in_progress') },
    ...Array.from({ length: searchCount }, () => ({
      type: 'response.web_search_call.searching',
      output_index: 0,
      item_id: 'ws_engine_0',
    })),
    { type: 'response.output_item.done', output_index: 0, item: searchOf('completed') },
    { type: 'response.output_item.added', output_index: 1, item: item('in_progress') },
    { type: 'response.content_part.added', ...place, part: PART },
    ...words.map((delta) => ({ type: 'response.output_text.delta', ...place, delta, logprobs: [], obfuscation: 'x' })),
    { type: 'response.output_text.done', ...place, text, logprobs: [] },
    { type: 'response.content_part.done', ...place, part: { ...PART, text } },
    { type: 'response.output_item.done', output_index: 1, item: item('completed', text) },
    { type: 'response.completed', response: { ...responseOf('completed', words), ...repeated } },
  ]
  return all.map((event, n) => ({ ...event, sequence_number: n }))
}

const MESSAGES_USAGE = { input_tokens: 7, cache_creation_input_tokens: 2, cache_read_input_tokens: 4 }

export const messageOf = (words: readonly string[]) => ({
  id: 'msg_engine',
  type: 'message',
  role: 'assistant',
  model: 'engine-model',
  content: [{ type: 'text', text: words.join(''), citations: null }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  engine_note: 1,
  usage: { ...MESSAGES_USAGE, output_tokens: 3, service_tier: 'standard' },
})

export function messagesEvents(words: readonly string[]): Event[] {
  const message = { ...messageOf([]), content: [], stop_reason: null, usage: { ...MESSAGES_USAGE, output_tokens: 1 } }
  return [
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'ping' },
    ...words.map((text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: 3, server_tool_use: { web_search_requests: 2 } },
    },
    { type: 'message_stop' },
  ]
}

const sseOf = (events: readonly Event[]): string =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')

/** Answers with these events, or with this document. */
export const speaks =
  (events: readonly Event[], document: object): Behaviour =>
  ({ body, res }) => {
    if (body['stream'] !== true) {
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document))
      return
    }
    res.writeHead(200, { 'content-type': 'text/event-stream' }).end(sseOf(events))
  }

/** Sends these events and then nothing more. */
export const stalls =
  (events: readonly Event[]): Behaviour =>
  ({ res }) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' }).write(sseOf(events))
  }

/** The events of a stream as a client got them. */
export const eventsIn = (text: string): Event[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice(6)) as Event)
