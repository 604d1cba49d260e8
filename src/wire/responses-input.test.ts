import { describe, expect, it } from 'vitest'
import { chatOf, faultOf } from '../../test/support/responses-bodies.ts'
import { sealReasoning } from './responses-items.ts'

const messagesOf = (more: object) => chatOf(more)['messages']

describe('input', () => {
  it('is a question, with instructions in front', () => {
    expect(messagesOf({ instructions: 'Be brief.' })).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi.' },
    ])
  })

  it('takes messages with and without a type, in words and in parts', () => {
    const input = [
      { role: 'user', content: 'What is this?' },
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'And this?' },
          { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: 'low' },
          { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA==' },
        ],
      },
      {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'A weir.', annotations: [] }],
      },
      { role: 'user', content: [{ type: 'input_text', text: 'Thanks.' }] },
      { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
    ]
    expect(messagesOf({ input })).toEqual([
      { role: 'user', content: 'What is this?' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'And this?' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==', detail: 'low' } },
          { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA==' } },
        ],
      },
      { role: 'assistant', content: 'A weir.' },
      { role: 'user', content: 'Thanks.' },
      { role: 'assistant', content: null, refusal: 'No.' },
    ])
  })

  it('makes one system message of instructions and what developers say at the beginning', () => {
    const input = [
      { role: 'developer', content: [{ type: 'input_text', text: 'Use the tools.' }] },
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'Hi.' },
      { role: 'developer', content: 'Now be brief.' },
    ]
    expect(messagesOf({ instructions: 'You are a dam.', input })).toEqual([
      { role: 'system', content: 'You are a dam.\n\nUse the tools.\n\nBe kind.' },
      { role: 'user', content: 'Hi.' },
      { role: 'system', content: 'Now be brief.' },
    ])
  })

  it('makes one turn of reasoning, words and calls, and matches their outputs', () => {
    const input = [
      { role: 'user', content: 'Look around.' },
      { id: 'rs_1', type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'I should look.' }] },
      { role: 'assistant', content: [{ type: 'output_text', text: 'Let me see.' }] },
      { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' },
      { type: 'custom_tool_call', call_id: 'c2', name: 'patch', input: '+ 1' },
      { type: 'function_call_output', call_id: 'c1', output: 'A dam.' },
      { type: 'custom_tool_call_output', call_id: 'c2', output: [{ type: 'input_text', text: 'Done.' }] },
      { type: 'reasoning', id: 'rs_2', summary: [{ type: 'summary_text', text: 'Once more.' }] },
      { type: 'function_call', call_id: 'c3', name: 'look', arguments: '{"at":1}' },
      { type: 'function_call_output', call_id: 'c3', output: 'A river.' },
    ]
    expect(messagesOf({ input })).toEqual([
      { role: 'user', content: 'Look around.' },
      {
        role: 'assistant',
        content: 'Let me see.',
        reasoning_content: 'I should look.',
        tool_calls: [
          { id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } },
          { id: 'c2', type: 'custom', custom: { name: 'patch', input: '+ 1' } },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'A dam.' },
      { role: 'tool', tool_call_id: 'c2', content: 'Done.' },
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'Once more.',
        tool_calls: [{ id: 'c3', type: 'function', function: { name: 'look', arguments: '{"at":1}' } }],
      },
      { role: 'tool', tool_call_id: 'c3', content: 'A river.' },
    ])
  })

  it('takes reasoning that a client brings back sealed, and nothing of another server', () => {
    const sealed = (encrypted_content: string) => [
      { type: 'reasoning', id: 'r', summary: [], encrypted_content },
      { role: 'assistant', content: 'Well.' },
    ]
    expect(messagesOf({ input: sealed(sealReasoning('I töok my time.')) })).toEqual([
      { role: 'assistant', content: 'Well.', reasoning_content: 'I töok my time.' },
    ])
    expect(messagesOf({ input: sealed('gAAAAABo') })).toEqual([{ role: 'assistant', content: 'Well.' }])
  })

  it('puts words after calls into the same turn, and reasoning that led nowhere aside', () => {
    const input = [
      { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' },
      { role: 'assistant', content: 'Looking.' },
      { type: 'function_call_output', call_id: 'c1', output: '' },
      { type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text: 'Hm.' }] },
      { role: 'user', content: 'Well?' },
      { role: 'assistant', content: 'Well.' },
    ]
    expect(messagesOf({ input })).toEqual([
      {
        role: 'assistant',
        content: 'Looking.',
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: '' },
      { role: 'user', content: 'Well?' },
      { role: 'assistant', content: 'Well.' },
    ])
  })

  it.each([
    ['no input', { input: undefined }, 'input', 'missing-required-parameter'],
    ['no items', { input: [] }, 'input', 'missing-required-parameter'],
    ['a number', { input: 7 }, 'input', 'invalid-type'],
    ['a list of numbers', { input: [7] }, 'input[0]', 'invalid-type'],
    ['a role that does not exist', { input: [{ role: 'tool', content: '' }] }, 'input[0].role', 'invalid-value'],
    ['a message without content', { input: [{ role: 'user' }] }, 'input[0].content', 'invalid-value'],
    [
      'a part that is null',
      { input: [{ role: 'user', content: [null] }] },
      'input[0].content[0].type',
      'invalid-value',
    ],
    [
      'a text that is none',
      { input: [{ role: 'user', content: [{ type: 'input_text', text: 1 }] }] },
      'input[0].content[0].text',
      'invalid-value',
    ],
    [
      'an image of a file',
      { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }] },
      'input[0].content[0].file_id',
      'unsupported-parameter',
    ],
    [
      'an image of nothing',
      { input: [{ role: 'user', content: [{ type: 'input_image' }] }] },
      'input[0].content[0].image_url',
      'invalid-value',
    ],
    [
      'a file elsewhere',
      { input: [{ role: 'user', content: [{ type: 'input_file', file_url: 'http://a' }] }] },
      'input[0].content[0].file_url',
      'unsupported-parameter',
    ],
    [
      'an assistant that shows images',
      { input: [{ role: 'assistant', content: [{ type: 'input_image' }] }] },
      'input[0].content[0]',
      'invalid-value',
    ],
    [
      'a call without an id',
      { input: [{ type: 'function_call', name: 'f', arguments: '' }] },
      'input[0].call_id',
      'invalid-value',
    ],
    [
      'a call of nothing',
      { input: [{ type: 'function_call', call_id: 'a', arguments: '' }] },
      'input[0].name',
      'invalid-value',
    ],
    [
      'a call without arguments',
      { input: [{ type: 'function_call', call_id: 'a', name: 'f' }] },
      'input[0].arguments',
      'invalid-value',
    ],
    [
      'an output without an id',
      { input: [{ type: 'function_call_output', output: '' }] },
      'input[0].call_id',
      'invalid-value',
    ],
    ['no output', { input: [{ type: 'function_call_output', call_id: 'a' }] }, 'input[0].output', 'invalid-value'],
    [
      'an item that is kept elsewhere',
      { input: [{ type: 'item_reference', id: 'msg_1' }] },
      'input[0].id',
      'unsupported-parameter',
    ],
    [
      'an item of a tool that we do not run',
      {
        input: [
          { role: 'user', content: 'a' },
          { type: 'web_search_call', id: 'ws_1' },
        ],
      },
      'input[1].type',
      'unsupported-parameter',
    ],
  ])('refuses %s and says where', (_, more, param, code) => {
    expect(faultOf(more)).toMatchObject({ param, code })
  })
})
