import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { holdModes, OWN_VALUES, throughScreen } from '../../test/support/through-screen.ts'
import type { ChoiceDelta, Delta } from '../domain/delta.ts'
import type { ScreeningTerms } from '../domain/screening.ts'
import { CALLS_MAX } from './choice-screen.ts'

describe('answers without choices', () => {
  const bytes = (text: string) => new TextEncoder().encode(text)
  const transit = (type: string, ...more: string[]): Delta => ({
    tokens: 0,
    result: { kind: 'transit', head: { status: 200, headers: ['content-type', type, 'content-length', '9', ...more] } },
  })
  const passed = (type: string, pieces: readonly string[], terms?: Partial<ScreeningTerms>) => {
    const { out, screen } = throughScreen(
      [transit(type), ...pieces.map((text) => ({ tokens: 0, bytes: bytes(text) }))],
      terms,
    )
    const text = out.map((delta) => new TextDecoder().decode(delta.bytes)).join('')
    return { text, head: out[0]?.result, screen, out }
  }

  it('are rewritten string by string where they are JSON', () => {
    const { text, head } = passed('application/json; charset=utf-8', ['{"text":"to ada', '@x.org","n":1.5}'])
    expect(JSON.parse(text)).toEqual({ text: 'to <EMAIL>', n: 1.5 })
    expect(head).toEqual({
      kind: 'transit',
      head: { status: 200, headers: ['content-type', 'application/json; charset=utf-8'] },
    })
  })

  it('pass as they come where they are plain text, and are joined where they are events', () => {
    expect(passed('text/plain', ['write to ada', '@x.org', ' now']).text).toBe('write to <EMAIL> now')
    const event = (delta: string) => `event: d\ndata: ${JSON.stringify({ type: 'transcript.text.delta', delta })}\n\n`
    const { text } = passed('text/event-stream', [
      event('to ada'),
      event('@x.org'),
      'data: {"type":"done","text":"to ada@x.org"}\n\n',
      'data: [DONE]\n\n',
    ])
    expect(text).not.toContain('@x.org')
    expect(text).toContain('"delta":"to <EMAIL>"')
    expect(text).toContain('"text":"to <EMAIL>"')
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
  })

  it('are joined where engines send chunks of choices, each choice by itself', () => {
    const chunk = (index: number, content: string, finish: string | null = null) =>
      `data: ${JSON.stringify({ object: 'transcription.chunk', choices: [0, 1].map((i) => ({ delta: { role: 'assistant', content: i === index ? content : 'x' }, finish_reason: finish })) })}\n\n`
    const { text } = passed('text/event-stream', [chunk(0, 'to ada'), chunk(0, '@x.o'), chunk(0, 'rg', 'stop')])
    expect(text).not.toMatch(/ada|x\.o/)
    expect(text).toContain('{"role":"assistant","content":"to <EMAIL>"}')
    expect(text).toContain('{"role":"assistant","content":"xxx"}')
    expect(text.match(/"finish_reason":"stop"/g)).toHaveLength(2)
  })

  it('have heads whose values are rewritten, and are text also where they have another name for it', () => {
    const head = (type: string) => transit(type, 'content-disposition', 'inline; filename="ada@x.org"')
    for (const type of ['application/json', 'audio/mpeg', 'text/plain; x="ada@x.org"'])
      expect(JSON.stringify(throughScreen([head(type), { tokens: 0, bytes: bytes('{}') }]).out)).not.toContain('ada@')
    expect(passed('application/x-ndjson', ['{"a":"ada@x.org"}\n']).text).toBe('{"a":"<EMAIL>"}\n')
    expect(passed('text/plain; charset=utf-16le', ['x']).screen!.unscreened).toEqual(['binary'])
  })

  it('pass or are refused where nobody can look into them, as the policy says', () => {
    const { out, screen } = passed('audio/mpeg', ['ID3'])
    expect(out).toHaveLength(2)
    expect(screen!.unscreened).toEqual(['binary'])
    const refused = passed('audio/mpeg', ['ID3'], { binary: 'refuse' })
    expect(refused.screen!.blockedBy).toMatchObject({ category: 'binary', action: 'block' })
  })

  it('are refused where they are too long to be held', () => {
    const piece = 'x'.repeat(1 << 20)
    const { screen, text } = passed(
      'application/json',
      Array.from({ length: 9 }, () => piece),
    )
    expect(screen!.blockedBy).toMatchObject({ category: 'too-large' })
    expect(text).toBe('')
  })

  it('are tensors whose texts are rewritten, and vectors, which have none', () => {
    const document = { outputs: [{ name: 'text', datatype: 'BYTES', shape: [1], data: ['ada@x.org'] }] }
    const { out } = throughScreen([{ tokens: 0, result: { kind: 'tensors', document } }])
    expect(out[0]?.result).toEqual({
      kind: 'tensors',
      document: { outputs: [{ name: 'text', datatype: 'BYTES', shape: [1], data: ['<EMAIL>'] }] },
    })
    const vectors = [new Float32Array([1])]
    const frame = { json: '{}', keepsModel: true }
    expect(throughScreen([{ tokens: 0, frame, result: { kind: 'vectors', vectors } }]).out).toEqual([
      { tokens: 0, result: { kind: 'vectors', vectors } },
    ])
  })
})

describe('an engine that sends whatever it likes', () => {
  it('has a bound on its calls', () => {
    const calls = Array.from({ length: 3 * CALLS_MAX }, (_, index) => ({
      index,
      function: { name: 'f', arguments: '{}' },
    }))
    const choices = [{ index: 0, content: null, finishReason: 'stop', extra: { tool_calls: calls } }]
    const { client } = throughScreen([{ tokens: 1, choices }])
    expect(client[0]?.extra?.['tool_calls']).toHaveLength(CALLS_MAX)
  })

  it('breaks nothing, and leaks nothing', () => {
    const anything = fc.anything({ maxDepth: 3, values: [fc.constant('ada@x.org'), fc.integer(), fc.constant(null)] })
    const call = fc.record(
      {
        index: fc.oneof(fc.nat(2), anything),
        id: fc.oneof(fc.constantFrom('a', 'b', 'ada@x.org'), anything),
        type: anything,
        function: fc.oneof(fc.record({ name: anything, arguments: anything }, { requiredKeys: [] }), anything),
        custom: fc.oneof(fc.record({ input: anything }), anything),
      },
      { requiredKeys: [] },
    )
    const extra = fc.record(
      {
        tool_calls: fc.oneof(fc.array(call, { maxLength: 3 }), anything),
        function_call: fc.oneof(call, anything),
        refusal: anything,
        reasoning: anything,
        reasoning_content: anything,
        audio: anything,
        more: anything,
      },
      { requiredKeys: [] },
    )
    const choice = fc.record(
      {
        index: fc.constantFrom(0, 1, 5_000_000),
        content: fc.constantFrom(null, '', 'ada@x.org', 'x '),
        finishReason: fc.constantFrom(null, 'stop', 'ada@x.org'),
        extra,
        logprobs: anything,
        beside: fc.dictionary(fc.string(), anything),
      },
      { requiredKeys: ['index', 'content', 'finishReason'] },
    )
    fc.assert(
      fc.property(fc.array(fc.array(choice, { maxLength: 2 }), { maxLength: 6 }), holdModes, (all, hold) => {
        const { out, screen } = throughScreen(
          all.map((choices) => ({ tokens: 1, choices: choices as ChoiceDelta[] })),
          { hold },
          OWN_VALUES,
        )
        expect(JSON.stringify(out) ?? '').not.toContain('ada@x.org')
        expect(screen!.dropped.length).toBeLessThanOrEqual(16)
      }),
      { numRuns: 300 },
    )
  })
})
