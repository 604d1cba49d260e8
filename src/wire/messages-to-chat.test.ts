import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Checked } from './check.ts'
import type { Wording } from './dialect.ts'
import { COUNT_TOKENS_DIALECT, MESSAGES_DIALECT } from './messages-dialect.ts'

const ask = { model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'Hello?' }] }

const read = (body: unknown): Checked<Wording> => MESSAGES_DIALECT.read(Buffer.from(JSON.stringify(body)))

function chatOf(over: object): Record<string, unknown> {
  const checked = read({ ...ask, ...over })
  if (checked.kind === 'fault') throw new Error(checked.fault.message)
  return checked.value.body as Record<string, unknown>
}

const turns = (...list: ReadonlyArray<readonly [role: string, content: unknown]>): unknown =>
  chatOf({ messages: list.map(([role, content]) => ({ role, content })) })['messages']

const faultOf = (over: object) => {
  const checked = read({ ...ask, ...over })
  return checked.kind === 'fault' ? checked.fault : undefined
}

const said = (text: string) => ({ type: 'text', text })
const PNG = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
const PNG_PART = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }

describe('a body of Messages as a chat', () => {
  it('says the same', () => {
    expect(chatOf({})).toEqual(ask)
    const more = {
      system: 'Be brief.',
      stream: true,
      stop_sequences: ['a', 'b'],
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      metadata: { user_id: 'u-1' },
      seed: 7,
      spillway: { band: 'offline' },
    }
    expect(chatOf(more)).toEqual({
      model: 'm',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hello?' },
      ],
      max_tokens: 10,
      stream: true,
      stop: ['a', 'b'],
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      user: 'u-1',
      seed: 7,
      spillway: { band: 'offline' },
    })
  })

  it('leaves out what says nothing', () => {
    const nothing = { top_k: 0, stop_sequences: [], stream: false, metadata: {}, system: '', temperature: null }
    expect(chatOf(nothing)).toEqual(ask)
  })

  it('joins the texts of a system prompt, and drops the line for billing that changes with every request', () => {
    const billing = 'x-anthropic-billing-header: cc_version=2.1; cch=74943;'
    const ephemeral = { cache_control: { type: 'ephemeral' } }
    const system = [said(billing), { ...said('You are a dam.'), ...ephemeral }, said('Hold the water.')]
    const text = { role: 'system', content: 'You are a dam.\nHold the water.' }
    expect((chatOf({ system })['messages'] as unknown[])[0]).toEqual(text)
    expect((chatOf({ system: `${billing}\nYou are a dam.` })['messages'] as unknown[])[0]).toMatchObject({
      content: 'You are a dam.',
    })
    expect(chatOf({ system: [said(billing)] })).toEqual(ask)
    expect(turns(['system', [said('Now be loud.')]], ['user', 'Hello?'])).toEqual([
      { role: 'system', content: 'Now be loud.' },
      { role: 'user', content: 'Hello?' },
    ])
  })

  it('puts system prompts up to the first answer at the head, and leaves later ones where they are', () => {
    const system = (text: string) => ({ role: 'system', content: text })
    const messages = [
      { role: 'user', content: 'Hello?' },
      system('It is May.'),
      { role: 'assistant', content: 'Hello.' },
      system('It is June.'),
      { role: 'user', content: 'And now?' },
    ]
    expect(chatOf({ system: 'Be brief.', messages })['messages']).toEqual([
      system('Be brief.\nIt is May.'),
      { role: 'user', content: 'Hello?' },
      { role: 'assistant', content: 'Hello.' },
      system('It is June.'),
      { role: 'user', content: 'And now?' },
    ])
    expect(chatOf({ messages: messages.slice(0, 2) })['messages']).toEqual([
      system('It is May.'),
      { role: 'user', content: 'Hello?' },
    ])
  })

  it('shows pictures, and sends plain text as text', () => {
    const url = { type: 'image', source: { type: 'url', url: 'https://pictures.test/dam.png' } }
    expect(turns(['user', [said('one'), said('two')]])).toEqual([{ role: 'user', content: 'one\ntwo' }])
    expect(turns(['user', [said('What is this?'), PNG, url]])).toEqual([
      {
        role: 'user',
        content: [
          said('What is this?'),
          PNG_PART,
          { type: 'image_url', image_url: { url: 'https://pictures.test/dam.png' } },
        ],
      },
    ])
  })

  it('reads documents and search results as text, and passes PDF on as a file', () => {
    const plain = { type: 'document', title: 'Dams', source: { type: 'text', media_type: 'text/plain', data: 'Tall.' } }
    const blocks = { type: 'document', source: { type: 'content', content: [said('Wide.')] } }
    const one = { type: 'document', source: { type: 'content', content: 'Old.' } }
    const found = { type: 'search_result', title: 'Weirs', source: 'https://weirs.test', content: [said('Low.')] }
    expect(turns(['user', [plain, blocks, one, found]])).toEqual([
      { role: 'user', content: 'Dams\nTall.\nWide.\nOld.\nWeirs\nhttps://weirs.test\nLow.' },
    ])
    const pdf = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBE' } }
    const file = { filename: 'document.pdf', file_data: 'data:application/pdf;base64,JVBE' }
    expect(turns(['user', [pdf]])).toEqual([{ role: 'user', content: [{ type: 'file', file }] }])
  })

  it('makes a tool round trip: calls of the assistant, results as messages of their own, before what the user says', () => {
    const uses = [
      { type: 'tool_use', id: 't1', name: 'level', input: { at: 'dam' } },
      { type: 'tool_use', id: 't2', name: 'look', input: {} },
    ]
    const results = [
      said('Here.'),
      { type: 'tool_result', tool_use_id: 't1', content: '12 m' },
      { type: 'tool_result', tool_use_id: 't2', content: [said('A dam.'), PNG], is_error: false },
    ]
    expect(turns(['user', 'How high?'], ['assistant', [said('I look.'), ...uses]], ['user', results])).toEqual([
      { role: 'user', content: 'How high?' },
      {
        role: 'assistant',
        content: 'I look.',
        tool_calls: [
          { id: 't1', type: 'function', function: { name: 'level', arguments: '{"at":"dam"}' } },
          { id: 't2', type: 'function', function: { name: 'look', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 't1', content: '12 m' },
      {
        role: 'tool',
        tool_call_id: 't2',
        content: 'A dam.\n(What this tool shows follows in the next message.)',
      },
      { role: 'user', content: [said('Shown by the tool call t2:'), PNG_PART, said('Here.')] },
    ])
  })

  it('says that a tool failed, unless its result does', () => {
    const failed = (content?: unknown) => ({ type: 'tool_result', tool_use_id: 't', is_error: true, content })
    const contents = (
      turns(['user', [failed('No water.'), failed('<tool_use_error>x'), failed()]]) as Array<{ content: unknown }>
    ).map(({ content }) => content)
    expect(contents).toEqual(['Error: No water.', '<tool_use_error>x', 'Error: '])
  })

  it('gives thinking back to the engine that thought it, in the same field, and leaves out that of others', () => {
    const thinking = (text: string, signature: string) => ({ type: 'thinking', thinking: text, signature })
    const own = thinking('Hm.', 'spillway.reasoning_content')
    const other = [thinking('Ah.', 'EqoBCkgI'), { type: 'redacted_thinking', data: 'x' }]
    expect(turns(['assistant', [own, ...other, said('Yes.')]])).toEqual([
      { role: 'assistant', content: 'Yes.', reasoning_content: 'Hm.' },
    ])
    expect(turns(['assistant', [thinking('Hm.', 'spillway.reasoning'), said('Yes.')]])).toEqual([
      { role: 'assistant', content: 'Yes.', reasoning: 'Hm.' },
    ])
  })

  const tool = { name: 'level', description: 'The level.', input_schema: { type: 'object', properties: {} } }

  it.each([
    [{ type: 'auto' }, { tool_choice: 'auto' }],
    [{ type: 'any' }, { tool_choice: 'required' }],
    [{ type: 'none' }, { tool_choice: 'none' }],
    [{ type: 'tool', name: 'level' }, { tool_choice: { type: 'function', function: { name: 'level' } } }],
    [
      { type: 'auto', disable_parallel_tool_use: true },
      { tool_choice: 'auto', parallel_tool_calls: false },
    ],
    [undefined, {}],
  ])('chooses tools as %o', (tool_choice, chosen) => {
    const { description, input_schema: parameters } = tool
    expect(chatOf({ tools: [{ ...tool, type: 'custom', cache_control: null }], tool_choice })).toEqual({
      ...ask,
      tools: [{ type: 'function', function: { name: 'level', description, parameters } }],
      ...chosen,
    })
  })

  it('asks for JSON of a schema and for effort', () => {
    const schema = { type: 'object', properties: {}, additionalProperties: false }
    const response_format = { type: 'json_schema', json_schema: { name: 'output', schema, strict: true } }
    const format = { type: 'json_schema', schema }
    expect(chatOf({ output_config: { format, effort: 'max' } })).toEqual({
      ...ask,
      response_format,
      reasoning_effort: 'high',
    })
    expect(chatOf({ output_format: format })).toEqual({ ...ask, response_format })
  })

  it('names what it ignores, and no more than a header can hold', () => {
    const more = {
      thinking: { type: 'adaptive' },
      context_management: {},
      container: null,
      'x\r\ny': 1,
      cache_control: {},
    }
    const ignored = (over: object) => {
      const checked = read({ ...ask, ...over })
      return checked.kind === 'ok' ? checked.value.ignored : undefined
    }
    expect(ignored(more)).toEqual(['thinking', 'context_management'])
    expect(ignored({})).toEqual([])
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`beta_${i}`, i]))
    expect(ignored(many)).toHaveLength(16)
  })

  it('counts without a bound on the answer', () => {
    const { max_tokens: _, ...question } = ask
    const counted = COUNT_TOKENS_DIALECT.read(Buffer.from(JSON.stringify(question)))
    expect(counted.kind === 'ok' && counted.value.body).toEqual(question)
    expect(read(question)).toMatchObject({ kind: 'fault', fault: { param: 'max_tokens' } })
  })
})

describe('what cannot be said in a chat', () => {
  const user = (...content: unknown[]) => ({ messages: [{ role: 'user', content }] })
  const assistant = (...content: unknown[]) => ({ messages: [{ role: 'assistant', content }] })

  it.each<[param: string, over: object]>([
    ['messages[0].content[1]', user(said('a'), { type: 'container_upload', file_id: 'f' })],
    ['messages[0].content[0]', user({ type: 'image', source: { type: 'file', file_id: 'f' } })],
    ['messages[0].content[0]', user({ type: 'document', source: { type: 'url', url: 'https://a.test' } })],
    ['messages[0].content[0]', user({ type: 'image' })],
    ['messages[0].content[0].text', user({ type: 'text' })],
    ['messages[0].content[0].tool_use_id', user({ type: 'tool_result', content: 'a' })],
    ['messages[0].content[0]', user({ type: 'tool_result', tool_use_id: 't', content: 5 })],
    ['messages[0].content[0]', user({ type: 'tool_result', tool_use_id: 't', content: ['a'] })],
    ['messages[0].content[0]', user({ type: 'search_result', title: 't', source: 's', content: 'a' })],
    ['messages[0].content[0]', assistant({ type: 'server_tool_use', id: 'a', name: 'web_search', input: {} })],
    ['messages[0].content[0]', assistant({ type: 'tool_use', id: 'a', name: 'f', input: 'x' })],
    ['messages[0].content[0].name', assistant({ type: 'tool_use', id: 'a', input: {} })],
    ['system[1]', { system: [said('a'), PNG] }],
    ['tools[0].type', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
    ['tools[0].type', { tools: [{ type: 'mcp_toolset', mcp_server_name: 'a' }] }],
    ['tools[0].name', { tools: [{ input_schema: {} }] }],
    ['tools[0].input_schema', { tools: [{ name: 'a' }] }],
    ['tool_choice', { tool_choice: { type: 'any' } }],
    ['tool_choice.name', { tools: [{ name: 'a', input_schema: {} }], tool_choice: { type: 'tool', name: 'b' } }],
    ['max_tokens', { max_tokens: 0 }],
    ['temperature', { temperature: 1.5 }],
    ['messages', { messages: [] }],
    ['messages[0].role', { messages: [{ role: 'tool', content: 'a' }] }],
    ['stop_sequences', { stop_sequences: Array.from({ length: 33 }, String) }],
  ])('is refused at %s: %j', (param, over) => {
    expect(faultOf(over)).toMatchObject({ param, message: expect.stringContaining(param) })
  })

  it('says why a tool of Anthropic is refused, and repeats no long text', () => {
    const fault = faultOf({ tools: [{ type: `bash_${'x'.repeat(5_000)}`, name: 'bash' }] })
    expect(fault?.message).toContain('no engine here has them')
    expect(fault?.message.length).toBeLessThan(400)
    expect(faultOf(user({ type: 'y'.repeat(5_000) }))?.message.length).toBeLessThan(200)
  })
})

/** Bodies that are nearly right: every value may be replaced by any JSON. */
const nearlyRight = () => {
  const text = fc.constantFrom('text', 'image', 'tool_use', 'tool_result', 'thinking', 'document', 'search_result')
  const source = fc.record({
    type: fc.constantFrom('base64', 'url', 'text', 'content', 'file'),
    content: fc.jsonValue(),
  })
  const block = fc.record(
    {
      type: fc.oneof(text, fc.string()),
      text: fc.oneof(fc.string(), fc.jsonValue()),
      id: fc.string(),
      name: fc.oneof(fc.string(), fc.jsonValue()),
      input: fc.jsonValue(),
      tool_use_id: fc.oneof(fc.string(), fc.jsonValue()),
      content: fc.oneof(fc.string(), fc.jsonValue()),
      source: fc.oneof(source, fc.jsonValue()),
      thinking: fc.string(),
      signature: fc.oneof(fc.constant('spillway.reasoning'), fc.jsonValue()),
      is_error: fc.boolean(),
    },
    { requiredKeys: ['type'] },
  )
  const content = fc.oneof(fc.string(), fc.array(block), fc.jsonValue())
  const turn = fc.record({ role: fc.constantFrom('user', 'assistant', 'system', 'tool'), content })
  return fc.record(
    {
      model: fc.oneof(fc.constant('m'), fc.jsonValue()),
      max_tokens: fc.oneof(fc.integer({ min: 1 }), fc.jsonValue()),
      messages: fc.oneof(fc.array(turn, { minLength: 1 }), fc.jsonValue()),
      system: content,
      tools: fc.oneof(fc.array(fc.record({ name: fc.string(), input_schema: fc.object() })), fc.jsonValue()),
      tool_choice: fc.oneof(fc.record({ type: fc.constantFrom('auto', 'any', 'tool', 'none') }), fc.jsonValue()),
      output_config: fc.oneof(fc.record({ effort: fc.string() }), fc.jsonValue()),
      metadata: fc.jsonValue(),
      spillway: fc.jsonValue(),
    },
    { requiredKeys: ['model', 'max_tokens', 'messages'] },
  )
}

describe('any body', () => {
  it('is translated into messages with a role and content, or refused in words', () => {
    fc.assert(
      fc.property(nearlyRight(), (body) => {
        const checked = read(body)
        if (checked.kind === 'fault') {
          expect(checked.fault.message.length).toBeGreaterThan(10)
          expect(checked.fault.code === null || typeof checked.fault.code === 'string').toBe(true)
          return
        }
        const { messages } = checked.value.body as { messages: Array<{ role: string; content: unknown }> }
        for (const { role, content } of messages) {
          expect(['system', 'user', 'assistant', 'tool']).toContain(role)
          expect(typeof content === 'string' || content === null || Array.isArray(content)).toBe(true)
        }
      }),
      { numRuns: 300 },
    )
  })

  it('that is no JSON is refused', () => {
    for (const bytes of ['', '{', '[]', 'null', '5', '"a"'])
      expect(MESSAGES_DIALECT.read(Buffer.from(bytes)).kind).toBe('fault')
  })
})
