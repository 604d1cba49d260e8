import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anthropicChecked, eventsOf, type StreamedEvent } from '../../test/support/anthropic-shapes.ts'
import type { ChoiceDelta } from '../domain/delta.ts'
import { MessagesStream } from './messages-stream.ts'
import { MessagesWhole } from './messages-whole.ts'

type Fields = Record<string, unknown>

const identity = {
  kind: 'chat' as const,
  id: 'msg_1',
  createdAtS: 0,
  model: 'sim',
  includesUsage: false,
  promptTokens: 9,
}
const usage = { promptTokens: 12, cachedTokens: 8, outputTokens: 5 }
const delta = (over: Partial<ChoiceDelta>): ChoiceDelta => ({ index: 0, content: null, finishReason: null, ...over })
const call = (index: number, over: object) => delta({ extra: { tool_calls: [{ index, ...over }] } })
const begins = (index: number, id: string, name: string) => call(index, { id, function: { name, arguments: '' } })
const goesOn = (index: number, args: string) => call(index, { function: { arguments: args } })

function streamed(deltas: readonly ChoiceDelta[]): StreamedEvent[] {
  const writer = new MessagesStream(identity)
  return eventsOf(deltas.map((one) => writer.chunk([one])).join('') + writer.end(usage))
}

function whole(deltas: readonly ChoiceDelta[]): Fields {
  const writer = new MessagesWhole(identity)
  for (const one of deltas) writer.add([one])
  return anthropicChecked('message', JSON.parse(writer.encode(usage)) as Fields)
}

/** What a reader has when the stream has ended, by the rules of Anthropic's interface and nothing else. */
function accumulated(events: readonly StreamedEvent[]): Fields {
  let message: Fields = {}
  const blocks: Array<Fields> = []
  const json: string[] = []
  let open: number | undefined
  for (const { name, data } of events) {
    const index = data['index'] as number
    if (name === 'message_start') message = structuredClone(data['message'] as Fields)
    else if (name === 'content_block_start') {
      expect([open, index]).toEqual([undefined, blocks.length])
      open = index
      blocks.push(structuredClone(data['content_block'] as Fields))
    } else if (name === 'content_block_delta') {
      const { type, ...said } = data['delta'] as { type: string; [field: string]: string }
      const [field = '', piece = ''] = Object.entries(said)[0] ?? []
      if (type === 'input_json_delta') json[index] = (json[index] ?? '') + piece
      else blocks[index]![field] = type === 'signature_delta' ? piece : `${String(blocks[index]![field])}${piece}`
    } else if (name === 'content_block_stop') {
      expect(open).toBe(index)
      open = undefined
    } else if (name === 'message_delta') {
      expect(open).toBeUndefined()
      Object.assign(message, data['delta'], {
        usage: { ...(message['usage'] as Fields), ...(data['usage'] as Fields) },
      })
    }
  }
  for (const [index, text] of json.entries()) if (text !== undefined) blocks[index]!['input'] = JSON.parse(text)
  return { ...message, content: blocks }
}

describe('a streamed answer', () => {
  it('has every event in its place', () => {
    const events = streamed([
      delta({ extra: { reasoning_content: 'Hm' } }),
      delta({ extra: { reasoning_content: '.' } }),
      delta({ content: 'I ' }),
      delta({ content: 'look.' }),
      begins(0, 't1', 'level'),
      goesOn(0, '{"at":'),
      goesOn(0, '"dam"}'),
      delta({ finishReason: 'tool_calls' }),
    ])
    expect(events.map(({ name }) => name)).toEqual([
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_delta',
      'content_block_delta',
      'content_block_stop',
      'content_block_start',
      'content_block_delta',
      'content_block_delta',
      'content_block_stop',
      'content_block_start',
      'content_block_delta',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
    expect(events[0]!.data['message']).toMatchObject({ usage: { input_tokens: 9, output_tokens: 0 } })
    expect(accumulated(events)).toEqual({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'sim',
      content: [
        { type: 'thinking', thinking: 'Hm.', signature: 'spillway.reasoning_content' },
        { type: 'text', text: 'I look.' },
        { type: 'tool_use', id: 't1', name: 'level', input: { at: 'dam' } },
      ],
      stop_reason: 'tool_use',
      stop_sequence: null,
      stop_details: null,
      usage: {
        input_tokens: 4,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 8,
        output_tokens: 5,
      },
    })
  })

  it.each([
    [{ finishReason: 'stop' }, 'end_turn', null],
    [{ finishReason: 'length' }, 'max_tokens', null],
    [{ finishReason: 'content_filter' }, 'refusal', null],
    [{ finishReason: 'stop', extra: { refusal: 'No.' } }, 'refusal', null],
    [{ finishReason: 'stop', stopSequence: 'END' }, 'stop_sequence', 'END'],
    [{ finishReason: 'stop', extra: { tool_calls: [{ id: 'a', function: { name: 'f' } }] } }, 'tool_use', null],
    [{ finishReason: null }, 'end_turn', null],
  ])('that ends with %o stops for %s', (last, reason, sequence) => {
    const deltas = [delta({ content: 'a' }), delta(last)]
    for (const message of [accumulated(streamed(deltas)), whole(deltas)])
      expect(message).toMatchObject({ stop_reason: reason, stop_sequence: sequence })
  })

  it('without a word is a message without content', () => {
    expect(streamed([]).map(({ name }) => name)).toEqual(['message_start', 'message_delta', 'message_stop'])
    expect(accumulated(streamed([delta({ content: '' })]))['content']).toEqual([])
  })

  it('pings, says what is ours, and breaks off with an event that is the error', () => {
    const writer = new MessagesStream(identity)
    expect(eventsOf(writer.keepAlive)).toEqual([{ name: 'ping', data: { type: 'ping' } }])
    expect(eventsOf(writer.aside({ spillway: { retrieval: 1 } }))[0]!.name).toBe('spillway')
    const error = { type: 'error', error: { type: 'api_error', message: 'Gone.' }, request_id: 'req_1' }
    expect(eventsOf(writer.fail(JSON.stringify(error)))).toEqual([{ name: 'error', data: error }])
  })

  it('tells its rung where it begins', () => {
    const writer = new MessagesStream(identity)
    writer.noteRung('short')
    expect(eventsOf(writer.chunk([delta({ content: 'a' })]))[0]!.data['message']).toMatchObject({
      spillway: { rung: 'short' },
    })
  })

  it('names calls whose engine gives them no id, waits for the name of a call, and takes arguments that are objects', () => {
    const deltas = [
      goesOn(3, '{"a"'),
      call(3, { function: { name: 'late', arguments: ':1}' } }),
      delta({ extra: { tool_calls: [{ function: { name: 'whole', arguments: { b: 2 } } }] } }),
      delta({ finishReason: 'tool_calls', index: 1, content: 'another choice' }),
    ]
    const content = [
      { type: 'tool_use', id: 'toolu_msg_1_0', name: 'late', input: { a: 1 } },
      { type: 'tool_use', id: 'toolu_msg_1_1', name: 'whole', input: { b: 2 } },
    ]
    expect(whole(deltas)['content']).toEqual(content)
    expect(accumulated(streamed(deltas))['content']).toEqual(content)
  })

  it('keeps the pieces of calls that an engine mixes', () => {
    const deltas = [begins(0, 'a', 'f'), goesOn(0, '{"x"'), begins(1, 'b', 'g'), goesOn(1, '{}'), goesOn(0, ':1}')]
    expect(accumulated(streamed(deltas))['content']).toEqual(whole(deltas)['content'])
    expect((whole(deltas)['content'] as Fields[])[0]).toMatchObject({ id: 'a', input: { x: 1 } })
  })

  it('that is whole passes on arguments that were cut off', () => {
    const cut = whole([begins(0, 'a', 'f'), goesOn(0, '{"x": "y'), delta({ finishReason: 'length' })])
    expect((cut['content'] as Fields[])[0]).toMatchObject({ input: { unparsed_input: '{"x": "y' } })
  })
})

describe('any answer', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 12 })
  /** An engine says one thing after another; each may come in any number of pieces. */
  const saying = fc.oneof(
    text.map((content) => [delta({ content })]),
    fc
      .constantFrom('reasoning', 'reasoning_content')
      .chain((field) => text.map((piece) => [delta({ extra: { [field]: piece } })])),
    fc
      .record({ key: fc.integer({ min: 0, max: 3 }), args: fc.dictionary(text, fc.jsonValue()) })
      .map(({ key, args }) => {
        const json = JSON.stringify(args)
        const middle = json.length >> 1
        return [begins(key, `t${key}`, 'f'), goesOn(key, json.slice(0, middle)), goesOn(key, json.slice(middle))]
      }),
  )
  /** A key begins one call: an engine that begins it again would mean the same call. */
  const answer = fc.array(saying, { maxLength: 12 }).map((parts) => {
    const seen = new Set<string>()
    return parts.filter((part) => {
      const [first] = (part[0]!.extra?.['tool_calls'] ?? []) as Array<{ id: string }>
      if (first === undefined) return true
      if (seen.has(first.id)) return false
      seen.add(first.id)
      return true
    })
  })

  it('is the same streamed and whole, in any grouping of its deltas', () => {
    fc.assert(
      fc.property(answer, fc.integer({ min: 1, max: 5 }), (parts, size) => {
        const deltas = [...parts.flat(), delta({ finishReason: 'stop' })]
        const writer = new MessagesStream(identity)
        let frames = ''
        for (let i = 0; i < deltas.length; i += size) frames += writer.chunk(deltas.slice(i, i + size))
        const message = accumulated(eventsOf(frames + writer.end(usage)))
        expect(message).toEqual(whole(deltas))
      }),
      { numRuns: 300 },
    )
  })
})
