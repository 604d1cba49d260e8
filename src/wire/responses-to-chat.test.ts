import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { chatOf, faultOf } from '../../test/support/responses-bodies.ts'
import { RESPONSES_DIALECT } from './responses-dialect.ts'

describe('settings', () => {
  it('are said in the words of chat', () => {
    const chat = chatOf({
      stream: true,
      max_output_tokens: 100,
      temperature: 0.5,
      top_p: 0.9,
      reasoning: { effort: 'low', summary: 'auto' },
      text: { format: { type: 'json_schema', name: 'n', schema: { type: 'object' }, strict: true }, verbosity: 'low' },
      include: ['message.output_text.logprobs'],
      top_logprobs: 3,
      user: 'u',
      safety_identifier: 's',
      prompt_cache_key: 'k',
      service_tier: 'flex',
      seed: 7,
      top_k: 40,
      spillway: { bid: 2 },
    })
    expect(chat).toEqual({
      model: 'm',
      messages: [{ role: 'user', content: 'Hi.' }],
      stream: true,
      max_tokens: 100,
      temperature: 0.5,
      top_p: 0.9,
      reasoning_effort: 'low',
      verbosity: 'low',
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' }, strict: true } },
      logprobs: true,
      top_logprobs: 3,
      user: 'u',
      safety_identifier: 's',
      prompt_cache_key: 'k',
      service_tier: 'flex',
      seed: 7,
      top_k: 40,
      spillway: { bid: 2 },
    })
  })

  it('that are ours alone go no further', () => {
    const ours = {
      store: false,
      metadata: { a: 'b' },
      truncation: 'auto',
      include: ['reasoning.encrypted_content'],
      stream_options: { include_obfuscation: false },
      client_metadata: { a: 'b' },
      max_tool_calls: 3,
      background: false,
      previous_response_id: null,
      parallel_tool_calls: true,
      tool_choice: 'auto',
      n: 1,
    }
    expect(chatOf(ours)).toEqual({ model: 'm', messages: [{ role: 'user', content: 'Hi.' }], n: 1 })
  })

  it.each([
    ['messages', [], 'input'],
    ['max_tokens', 5, 'max_output_tokens'],
    ['response_format', { type: 'json_object' }, 'text.format'],
    ['reasoning_effort', 'low', 'reasoning.effort'],
    ['conversation', 'conv_1', 'previous_response_id'],
    ['prompt', { id: 'pmpt_1' }, 'instructions'],
    ['n', 2, 'once'],
  ])('refuse %s, and say what to do', (name, value, advice) => {
    const fault = faultOf({ [name]: value })
    expect(fault).toMatchObject({ param: name, code: 'unsupported-parameter' })
    expect(fault.message).toContain(advice)
  })

  it('refuse background where nothing is stored', () => {
    const outcome = RESPONSES_DIALECT.read(Buffer.from('{"model":"m","input":"Hi.","background":true}'))
    expect(outcome).toMatchObject({ fault: { param: 'background', code: 'unsupported-parameter' } })
  })

  it('that nobody here honours are named', () => {
    const ignoredOf = (more: object) => {
      const outcome = RESPONSES_DIALECT.read(Buffer.from(JSON.stringify({ model: 'm', input: 'Hi.', ...more })))
      return outcome.kind === 'ok' ? outcome.value.ignored : undefined
    }
    const include = ['reasoning.encrypted_content', 'file_search_call.results']
    expect(ignoredOf({ truncation: 'auto', max_tool_calls: 3, include })).toEqual([
      'truncation',
      'max_tool_calls',
      'include',
    ])
    expect(ignoredOf({ truncation: 'disabled', include: ['message.output_text.logprobs'] })).toEqual([])
  })

  it('go on from no response that is not kept', () => {
    const code = 'previous-response-not-found'
    expect(faultOf({ previous_response_id: 'resp_1' })).toMatchObject({ param: 'previous_response_id', code })
  })

  it.each([
    ['a schema without a name', { text: { format: { type: 'json_schema', schema: {} } } }, 'text.format.name'],
    ['a name without a schema', { text: { format: { type: 'json_schema', name: 'n' } } }, 'text.format.schema'],
    ['a format that does not exist', { text: { format: { type: 'xml' } } }, 'text.format.type'],
    ['a temperature of 3', { temperature: 3 }, 'temperature'],
    ['no room for an answer', { max_output_tokens: 0 }, 'max_output_tokens'],
    ['a stop that chat does not take', { stop: 7 }, 'stop'],
    ['metadata that are no texts', { metadata: { a: 1 } }, 'metadata.a'],
  ])('refuse %s', (_, more, param) => {
    expect(faultOf(more)).toMatchObject({ param })
  })
})

describe('tools', () => {
  const tools = [
    { type: 'function', name: 'f', description: 'd', parameters: { type: 'object' }, strict: true },
    { type: 'function', name: 'g', parameters: null },
    { type: 'custom', name: 'patch', format: { type: 'grammar', syntax: 'lark', definition: 'x' } },
  ]

  it('are one level deeper in chat', () => {
    expect(chatOf({ tools, tool_choice: { type: 'function', name: 'f' }, parallel_tool_calls: false })).toMatchObject({
      tools: [
        { type: 'function', function: { name: 'f', description: 'd', parameters: { type: 'object' }, strict: true } },
        { type: 'function', function: { name: 'g' } },
        {
          type: 'custom',
          custom: { name: 'patch', format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'x' } } },
        },
      ],
      tool_choice: { type: 'function', function: { name: 'f' } },
      parallel_tool_calls: false,
    })
  })

  it('are left out where others are allowed', () => {
    const choice = { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'g' }] }
    expect(chatOf({ tools, tool_choice: choice })).toMatchObject({
      tools: [{ type: 'function', function: { name: 'g' } }],
      tool_choice: 'required',
    })
  })

  it.each([
    ['a search of the web', { tools: [...tools, { type: 'web_search' }] }, 'tools[3].type'],
    ['a function without a name', { tools: [{ type: 'function' }] }, 'tools[0].name'],
    ['the choice of a search', { tool_choice: { type: 'file_search' } }, 'tool_choice.type'],
    ['the choice of nothing', { tool_choice: { type: 'function' } }, 'tool_choice.name'],
    ['a word that is no choice', { tool_choice: 'sometimes' }, 'tool_choice'],
  ])('refuse %s', (_, more, param) => {
    expect(faultOf(more)).toMatchObject({ param })
  })
})

describe('hostile bodies', () => {
  /** Any value in any place: taken or refused, never thrown. */
  const types = [
    'message',
    'reasoning',
    'function_call',
    'function_call_output',
    'custom_tool_call',
    'item_reference',
    '__proto__',
    'toString',
  ]
  const value = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(...types, '', null, [], {}))
  const part = fc.dictionary(
    fc.constantFrom('type', 'text', 'refusal', 'image_url', 'file_id', 'file_data', 'input_audio'),
    fc.oneof(
      value,
      fc.constantFrom('input_text', 'input_image', 'input_file', 'input_audio', 'output_text', 'refusal'),
    ),
  )
  const item = fc.dictionary(
    fc.constantFrom('type', 'role', 'content', 'call_id', 'name', 'arguments', 'input', 'output', 'summary', 'id'),
    fc.oneof(value, fc.constantFrom('user', 'assistant', 'developer'), fc.array(part, { maxLength: 3 })),
  )
  const names = [
    'instructions',
    'tools',
    'tool_choice',
    'text',
    'reasoning',
    'include',
    'metadata',
    'stream',
    'store',
    'previous_response_id',
    'top_logprobs',
    'n',
    'messages',
    'stop',
    '__proto__',
    'constructor',
  ]
  const body = fc.record({
    model: fc.oneof(value, fc.constant('m')),
    input: fc.oneof(value, fc.array(item, { maxLength: 4 }), fc.string()),
    more: fc.dictionary(fc.constantFrom(...names), fc.oneof(value, fc.array(part, { maxLength: 2 }), part)),
  })

  it('are taken or refused, whatever stands where', () => {
    fc.assert(
      fc.property(body, ({ model, input, more }) => {
        const text = JSON.stringify({ model, input, ...more })
        const outcome = RESPONSES_DIALECT.read(Buffer.from(text))
        if (outcome.kind === 'fault') expect(outcome.fault.message).not.toBe('')
        else {
          expect(Array.isArray((outcome.value.body as { messages: unknown }).messages)).toBe(true)
          outcome.value.whole({ kind: 'chat', id: 'resp_1', createdAtS: 1, model: 'm', includesUsage: false })
        }
      }),
      { numRuns: 150 },
    )
  })

  it('do not change what objects are', () => {
    const read = RESPONSES_DIALECT.read(
      Buffer.from('{"model":"m","input":"Hi.","__proto__":{"n":9},"constructor":{"prototype":{"n":9}}}'),
    )
    expect(read.kind === 'ok' && (read.value.body as { n?: number }).n).toBe(undefined)
    expect(({} as { n?: number }).n).toBe(undefined)
  })
})
