import { describe, expect, it } from 'vitest'
import {
  also,
  calls,
  ends,
  IDENTITY,
  says,
  streamed,
  USAGE,
  whole,
  wordingOf,
} from '../../test/support/responses-answers.ts'
import { checkedResponse, readEvents } from '../../test/support/responses-shapes.ts'
import type { ChoiceDelta, Usage } from '../domain/delta.ts'
import { sealReasoning } from './responses-items.ts'

const typesOf = (deltas: readonly ChoiceDelta[][], more: object = {}): string[] =>
  streamed(deltas, more).events.map(({ type }) => type.replace('response.', ''))

describe('the events of a stream', () => {
  it('tell a text from beginning to end', () => {
    expect(typesOf([says('The '), says('weir.'), ends()])).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ])
    const { last } = streamed([says('The '), says('weir.'), ends()])
    expect(last.output[0]?.content?.[0]?.text).toBe('The weir.')
    expect(last.usage).toEqual({
      input_tokens: 11,
      input_tokens_details: { cached_tokens: 4, cache_write_tokens: 0 },
      output_tokens: 6,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 17,
    })
  })

  it('tell reasoning in an item of its own, as text or as the summary that was asked for', () => {
    const deltas = [also({ reasoning_content: 'A dam' }), also({ reasoning: '?' }), says('Yes.'), ends()]
    const tail = [
      'output_item.done',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ]
    expect(typesOf(deltas)).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'content_part.added',
      'reasoning_text.delta',
      'reasoning_text.delta',
      'reasoning_text.done',
      'content_part.done',
      ...tail,
    ])
    expect(typesOf(deltas, { reasoning: { summary: 'auto' } })).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
      ...tail,
    ])
    const sealed = whole(deltas, { include: ['reasoning.encrypted_content'] }).output[0]
    expect(sealed?.encrypted_content).toBe(sealReasoning('A dam?'))
    expect(whole(deltas).output[0]?.encrypted_content).toBe(null)
    expect(whole(deltas).output[0]?.content).toEqual([{ type: 'reasoning_text', text: 'A dam?' }])
    expect(whole(deltas, { reasoning: { summary: 'auto' } }).output[0]?.summary?.[0]?.text).toBe('A dam?')
  })

  it('tell calls, several at once, with the ids of the engine', () => {
    const deltas = [
      says('Let me see.'),
      calls({ index: 0, id: 'call_a', type: 'function', function: { name: 'look', arguments: '' } }),
      calls({ index: 0, function: { arguments: '{"at":' } }),
      calls({ index: 1, id: 'call_b', type: 'function', function: { name: 'listen', arguments: '{}' } }),
      calls({ index: 0, function: { arguments: '1}' } }),
      ends('tool_calls'),
    ]
    const { events, last } = streamed(deltas)
    expect(last.status).toBe('completed')
    expect(last.output.map(({ type, call_id, name, arguments: said }) => [type, call_id, name, said])).toEqual([
      ['message', undefined, undefined, undefined],
      ['function_call', 'call_a', 'look', '{"at":1}'],
      ['function_call', 'call_b', 'listen', '{}'],
    ])
    expect(events.filter(({ type }) => type === 'response.function_call_arguments.done')).toHaveLength(2)
    expect(whole(deltas)).toEqual(last)
  })

  it.each([
    [
      'without an index, whole',
      [
        calls({ id: 'a', function: { name: 'f', arguments: '{}' } }),
        calls({ id: 'b', function: { name: 'g', arguments: '{}' } }),
      ],
    ],
    [
      'all with index 0',
      [
        calls({ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }),
        calls({ index: 0, id: 'b', function: { name: 'g', arguments: '{}' } }),
      ],
    ],
    [
      'with the same id',
      [
        calls({ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }),
        calls({ index: 1, id: 'a', function: { name: 'g', arguments: '{}' } }),
      ],
    ],
    [
      'without ids',
      [
        calls({ index: 0, function: { name: 'f', arguments: '{}' } }),
        calls({ index: 1, function: { name: 'g', arguments: '{}' } }),
      ],
    ],
    [
      'with arguments as an object',
      [
        calls({ index: 0, id: 'a', function: { name: 'f', arguments: {} } }),
        calls({ index: 1, id: 'b', function: { name: 'g', arguments: {} } }),
      ],
    ],
  ])('keep two calls of engines apart that send them %s', (_, deltas) => {
    const { output } = streamed([...deltas, ends('tool_calls')]).last
    expect(output.map(({ name, arguments: said }) => [name, said])).toEqual([
      ['f', '{}'],
      ['g', '{}'],
    ])
    expect(new Set(output.map(({ call_id: id }) => id)).size).toBe(2)
  })

  it('tell the older single call, calls of free text, and refusals', () => {
    expect(
      whole([also({ function_call: { name: 'f', arguments: '{}' } }), ends('function_call')]).output[0],
    ).toMatchObject({
      type: 'function_call',
      name: 'f',
    })
    const patch = [
      calls({ index: 0, id: 'a', type: 'custom', custom: { name: 'patch', input: '+ 1' } }),
      ends('tool_calls'),
    ]
    expect(streamed(patch).last.output[0]).toMatchObject({ type: 'custom_tool_call', name: 'patch', input: '+ 1' })
    const no = [says('Well: '), also({ refusal: 'I can' }), also({ refusal: 'not.' }), ends()]
    expect(streamed(no).last.output[0]?.content).toEqual([
      { type: 'output_text', text: 'Well: ', annotations: [], logprobs: [] },
      { type: 'refusal', refusal: 'I cannot.' },
    ])
  })

  it.each([
    ['length', 'max_output_tokens'],
    ['content_filter', 'content_filter'],
  ])('say that an answer ended by %s is incomplete', (finishReason, reason) => {
    const { events, last } = streamed([says('The '), ends(finishReason)])
    expect(events.at(-1)?.type).toBe('response.incomplete')
    expect(last).toMatchObject({ status: 'incomplete', incomplete_details: { reason } })
    expect(last.output[0]?.status).toBe('incomplete')
  })

  it('make an empty message of an answer without a word', () => {
    expect(streamed([ends()]).last.output).toMatchObject([
      { type: 'message', status: 'completed', content: [{ text: '' }] },
    ])
  })

  it('carry log probabilities for those who asked', () => {
    const logprobs = {
      content: [{ token: 'a', logprob: -1, bytes: null, top_logprobs: [{ token: 'b', logprob: -2 }] }],
    }
    const deltas = [says('a', { logprobs }), ends()]
    const asked = { include: ['message.output_text.logprobs'], top_logprobs: 1 }
    const told = [{ token: 'a', logprob: -1, bytes: [], top_logprobs: [{ token: 'b', logprob: -2, bytes: [] }] }]
    expect(streamed(deltas, asked).last.output[0]?.content?.[0]?.logprobs).toEqual(told)
    expect(streamed(deltas).last.output[0]?.content?.[0]?.logprobs).toEqual([])
  })

  it('say what broke off, with an error that SDKs throw and the response so far', () => {
    const writer = wordingOf().stream(IDENTITY)
    const error = { message: 'The engine was lost.', type: 'server_error', param: null, code: 'replica_lost' }
    const events = readEvents(writer.chunk(says('The ')) + writer.fail(JSON.stringify({ error })))
    expect(events.slice(-2).map(({ type }) => type)).toEqual(['error', 'response.failed'])
    expect(events.at(-2)).toMatchObject({ code: 'replica_lost', error: { code: 'replica_lost' } })
    expect(events.at(-1)?.response).toMatchObject({
      status: 'failed',
      error: { code: 'server_error', message: 'The engine was lost.' },
      output: [{ status: 'incomplete', content: [{ text: 'The ' }] }],
    })
    const late = wordingOf().stream(IDENTITY)
    const refused = readEvents(
      late.keepAlive + late.fail(JSON.stringify({ error: { ...error, type: 'rate_limit_error' } })),
    )
    expect(refused.map(({ type }) => type)).toEqual([
      'response.created',
      'response.in_progress',
      'error',
      'response.failed',
    ])
    expect(refused.at(-1)?.response?.error?.code).toBe('rate_limit_exceeded')
  })

  it('carry our own fields in the response, where no client stumbles over them', () => {
    const writer = wordingOf().stream(IDENTITY)
    writer.noteRung('short')
    const aside = writer.aside({ spillway: { retrieval: { passages: 2 } } })
    const events = readEvents(aside + writer.chunk(says('Yes.')) + writer.end(USAGE))
    const ours = { rung: 'short', retrieval: { passages: 2 } }
    expect(events[0]?.response?.spillway).toEqual(ours)
    expect(events.at(-1)?.response?.spillway).toEqual(ours)
    expect(events.filter(({ type }) => type === 'response.created')).toHaveLength(1)
  })
})

describe('the response object', () => {
  it('says what was asked, and what is true', () => {
    const asked = {
      instructions: 'Be brief.',
      max_output_tokens: 100,
      metadata: { run: '7' },
      parallel_tool_calls: false,
      prompt_cache_key: 'k',
      reasoning: { effort: 'low' },
      safety_identifier: 's',
      service_tier: 'flex',
      temperature: 0.5,
      text: { format: { type: 'json_object' }, verbosity: 'low' },
      tools: [{ type: 'function', name: 'f' }],
      tool_choice: 'auto',
      top_p: 0.9,
      user: 'u',
    }
    const told = whole([says('{}'), ends()], { ...asked, store: true, truncation: 'auto' })
    expect(told).toMatchObject({
      ...asked,
      id: 'resp_0123abcd',
      model: 'gpt-4o-mini',
      reasoning: { effort: 'low', summary: null },
      tools: [{ type: 'function', name: 'f', parameters: null, strict: null }],
      store: false,
      truncation: 'disabled',
      previous_response_id: null,
    })
    expect(whole([says('Hi.'), ends()])).toMatchObject({
      instructions: null,
      temperature: 1,
      top_p: 1,
      tool_choice: 'auto',
      tools: [],
      text: { format: { type: 'text' }, verbosity: 'medium' },
      metadata: {},
    })
  })

  it('has the details of usage that the engine told, where they are counts', () => {
    const told = (usage: object): Usage => {
      const source = { json: JSON.stringify({ choices: [], usage }), keepsModel: true }
      return { ...USAGE, told: { source, isAlone: true, promptTokens: 11, cachedTokens: 4, outputTokens: 6 } }
    }
    const usageOf = (usage: Usage) => {
      const writer = wordingOf().whole(IDENTITY)
      writer.add(says('Hi.', { finishReason: 'stop' }))
      return checkedResponse(JSON.parse(writer.encode(usage))).usage
    }
    const details = {
      completion_tokens_details: { reasoning_tokens: 5 },
      prompt_tokens_details: { cache_write_tokens: 3 },
    }
    expect(usageOf(told(details))).toMatchObject({
      input_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 },
      output_tokens_details: { reasoning_tokens: 5 },
    })
    for (const odd of [
      {},
      { completion_tokens_details: null },
      { completion_tokens_details: { reasoning_tokens: '5' } },
    ])
      expect(usageOf(told(odd))).toMatchObject({ output_tokens_details: { reasoning_tokens: 0 } })
  })

  it('has our own fields where an answer was degraded', () => {
    const writer = wordingOf().whole(IDENTITY)
    writer.add(says('Hi.', { finishReason: 'stop' }))
    expect(checkedResponse(JSON.parse(writer.encode(USAGE, { rung: 'short' }))).spillway).toEqual({ rung: 'short' })
  })
})
