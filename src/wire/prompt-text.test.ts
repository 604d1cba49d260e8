import { describe, expect, it } from 'vitest'
import { promptTexts } from './prompt-text.ts'
import type { ChatBody, CompletionBody } from './schemas.ts'

const chat = (over: Record<string, unknown> = {}): ChatBody =>
  ({ model: 'm', messages: [{ role: 'user', content: 'hi' }], ...over }) as ChatBody

const fixedOf = (over: Record<string, unknown>): string => promptTexts(chat(over)).fixedText

describe('texts that an engine reads as its prompt', () => {
  it('takes any depth', () => {
    let deep: unknown = 'x'
    for (let i = 0; i < 100_000; i++) deep = [deep]
    expect(fixedOf({ tools: [{ type: 'function', function: deep }] }).length).toBeGreaterThan(200_000)
  })

  it('has one segment for each message, and nothing beside them in a plain chat', () => {
    expect(promptTexts(chat())).toEqual({
      segments: [{ role: 'user', text: 'hi', otherText: '', otherTokens: 0 }],
      fixedText: '',
    })
  })

  it.each<[string, Record<string, unknown>, string]>([
    ['tools', { tools: [{ type: 'function', function: { name: 'weir', description: 'LEVEL' } }] }, 'LEVEL'],
    ['functions', { functions: [{ name: 'weir', description: 'LEVEL' }] }, 'LEVEL'],
    ['a schema', { response_format: { type: 'json_schema', json_schema: { schema: { title: 'LEVEL' } } } }, 'LEVEL'],
    ['documents', { documents: [{ text: 'LEVEL '.repeat(20) }] }, 'LEVEL'],
    ['a template', { chat_template: 'LEVEL '.repeat(20) }, 'LEVEL'],
    ['anything long', { novelty: { deep: ['LEVEL '.repeat(20)] } }, 'LEVEL'],
  ])('counts %s beside the messages', (_, over, word) => {
    expect(fixedOf(over)).toContain(word)
  })

  it('counts no settings, and nothing that stays with us', () => {
    const settings = {
      temperature: 1,
      reasoning_effort: 'high',
      chat_template_kwargs: { enable_thinking: false },
      response_format: { type: 'json_object' },
      stop: ['x'.repeat(100)],
      user: 'x'.repeat(100),
      metadata: { note: 'x'.repeat(100) },
      logit_bias: Object.fromEntries(Array.from({ length: 100 }, (_, i) => [i, 1])),
      spillway: { retrieval: { corpus: 'x'.repeat(100) } },
      tools: null,
    }
    expect(fixedOf(settings)).toBe('')
  })

  it('counts tool calls, their arguments and names with their message', () => {
    const call = { id: 'c1', type: 'function', function: { name: 'weir', arguments: '{"level":"ARGUMENT"}' } }
    const messages = [
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'assistant', content: null, function_call: { name: 'weir', arguments: 'LEGACY' } },
      { role: 'tool', content: 'result', tool_call_id: 'c1' },
      { role: 'user', content: 'hi', name: 'ann' },
    ]
    const others = promptTexts(chat({ messages })).segments.map(({ otherText }) => otherText)
    expect(others).toEqual([expect.stringContaining('ARGUMENT'), expect.stringContaining('LEGACY'), 'c1', 'ann'])
  })

  it('counts the text of every part, images flat, and other files by their size', () => {
    const content = [
      { type: 'text', text: 'What is ' },
      { type: 'text', text: 'this?' },
      { type: 'refusal', refusal: ' No.' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(100_000)}` } },
    ]
    const segment = promptTexts(chat({ messages: [{ role: 'user', content }] })).segments[0]
    expect(segment).toMatchObject({ text: 'What is this? No.', otherTokens: 800 })
    const tokensOf = (part: object): number | undefined =>
      promptTexts(chat({ messages: [{ role: 'user', content: [part] }] })).segments[0]?.otherTokens
    expect(tokensOf({ type: 'file', file: { file_data: 'A'.repeat(3_000_000) } })).toBeGreaterThan(500_000)
    expect(tokensOf({ type: 'input_audio', input_audio: { data: 'A'.repeat(3_000_000) } })).toBeGreaterThan(2_000)
    expect(tokensOf({ type: 'video_url', video_url: { url: 'https://example.com/v' } })).toBe(800)
  })

  it('counts a completion’s suffix, and prompts of tokens as they are', () => {
    const texts = promptTexts({ model: 'm', prompt: [[1, 2, 3], [4]], suffix: 'END' } as CompletionBody)
    expect(texts).toMatchObject({ segments: [{ otherTokens: 3 }, { otherTokens: 1 }], fixedText: 'END' })
  })
})
