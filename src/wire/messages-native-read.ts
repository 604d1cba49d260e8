import type { ChoiceDelta, Usage } from '../domain/delta.ts'
import { readFinishReason } from './finish-reason.ts'
import { readMessagesUsage } from './native-usage.ts'
import type { UpstreamAnswer } from './upstream.ts'

/**
 * What an engine that speaks Messages itself says, as deltas: for the counting of tokens, first tokens, finish reasons
 * and the journal. The client gets the engine's own events. One reader for each answer: `message_start` has the prompt's
 * tokens, and the end those of the answer.
 */
type Json = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

export function nativeMessagesReader(): (json: unknown) => UpstreamAnswer {
  let startUsage: unknown
  return (json) => {
    const event = isObject(json) ? json : {}
    switch (event['type']) {
      case 'error':
        return failed(event)
      case 'message':
        return readDocument(event)
      case 'message_start':
        startUsage = isObject(event['message']) ? event['message']['usage'] : undefined
        return said([])
      case 'content_block_delta':
        return said(isObject(event['delta']) ? deltaOf(event['delta'], event['index']) : [])
      case 'message_delta': {
        const finishReason = isObject(event['delta']) ? endOf(event['delta']) : null
        const usage = readMessagesUsage(event['usage'], startUsage)
        return said(finishReason === null ? [] : [{ index: 0, content: '', finishReason }], usage)
      }
      default:
        return event['error'] === undefined || event['error'] === null ? said([]) : failed(event)
    }
  }
}

function deltaOf(delta: Json, index: unknown): readonly ChoiceDelta[] {
  const one = { index: 0, content: null, finishReason: null }
  switch (delta['type']) {
    case 'text_delta':
      return [{ ...one, content: textOf(delta['text']) }]
    case 'thinking_delta':
      return textOf(delta['thinking']) === '' ? [] : [{ ...one, extra: { reasoning_content: delta['thinking'] } }]
    case 'input_json_delta': {
      const args = textOf(delta['partial_json'])
      return args === '' ? [] : [{ ...one, extra: { tool_calls: [{ index, function: { arguments: args } }] } }]
    }
    default:
      return []
  }
}

function readDocument(message: Json): UpstreamAnswer {
  let content: string | null = null
  let thinking = ''
  const calls: Json[] = []
  for (const block of Array.isArray(message['content']) ? message['content'].filter(isObject) : []) {
    if (block['type'] === 'text') content = (content ?? '') + textOf(block['text'])
    else if (block['type'] === 'thinking') thinking += textOf(block['thinking'])
    else if (block['type'] === 'tool_use') calls.push(callOf(block, calls.length))
  }
  const extra = {
    ...(thinking !== '' && { reasoning_content: thinking }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  const choice: ChoiceDelta = { index: 0, content, finishReason: endOf(message) }
  const all = Object.keys(extra).length === 0 ? choice : { ...choice, extra }
  return said([all], readMessagesUsage(message['usage'], undefined))
}

const callOf = ({ id, name, input }: Json, index: number): Json => ({
  index,
  id,
  type: 'function',
  function: { name, arguments: JSON.stringify(input ?? {}) },
})

const endOf = ({ stop_reason: reason }: Json): string | null =>
  reason === 'refusal' ? 'content_filter' : readFinishReason(reason)

const said = (choices: readonly ChoiceDelta[], usage?: Usage): UpstreamAnswer => ({
  choices,
  usage,
  error: undefined,
  isRelayable: true,
})

/** Anthropic's words for what went wrong, as a status. */
const STATUSES: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  api_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
}

function failed(event: Json): UpstreamAnswer {
  const { error } = event
  const status = STATUSES[isObject(error) ? textOf(error['type']) : '']
  return { choices: [], usage: undefined, error: { json: event, status } }
}
