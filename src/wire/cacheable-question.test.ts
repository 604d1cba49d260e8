import { describe, expect, it } from 'vitest'
import { cacheableQuestion } from './cacheable-question.ts'
import type { ChatBody } from './schemas.ts'

const body = (more: Record<string, unknown> = {}): ChatBody =>
  ({
    model: 'sim',
    temperature: 0,
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Why is the sky blue?' },
    ],
    ...more,
  }) as ChatBody

const versionOf = (more?: Record<string, unknown>): string | undefined =>
  cacheableQuestion(body(more), 0.3)?.promptVersion

describe('a question whose answer may be kept', () => {
  it('is the last message; the rest is its prompt version', () => {
    expect(cacheableQuestion(body(), 0.3)).toMatchObject({ question: 'Why is the sky blue?' })
    const asked = (content: unknown) => ({
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content },
      ],
    })
    expect(versionOf(asked('What makes the sky blue?'))).toBe(versionOf())
    expect(cacheableQuestion(body(asked([{ type: 'text', text: 'Why?' }])), 0.3)?.question).toBe('Why?')
  })

  it.each([
    ['how it travels', { stream: true, stream_options: { include_usage: true } }],
    ['who asks, and how soon', { user: 'u-1', service_tier: 'flex', spillway: { deadline_ms: 9_000 } }],
    ['a parameter that says nothing', { seed: null }],
  ])('is the same whatever %s', (_, more) => expect(versionOf(more)).toBe(versionOf()))

  it.each([
    ['system prompt', { messages: [{ role: 'system', content: 'Be long.' }, body().messages[1]] }],
    ['earlier turn', { messages: [...body().messages, { role: 'assistant', content: 'x' }, body().messages[1]] }],
    ['temperature', { temperature: 0.1 }],
    ['max_tokens', { max_tokens: 5 }],
    ['seed', { seed: 7 }],
    ['response format', { response_format: { type: 'json_object' } }],
    ['parameter that nobody knows', { reasoning_effort: 'high' }],
  ])('is another one with another %s', (_, more) => {
    expect(versionOf(more)).toBeDefined()
    expect(versionOf(more)).not.toBe(versionOf())
  })

  it.each([
    ['offers tools', { tools: [{ type: 'function' }] }],
    ['forces one', { tool_choice: 'required' }],
    ['offers functions', { functions: [{ name: 'f' }] }],
    ['is hot', { temperature: 0.31 }],
    ['names no temperature', { temperature: null }],
    ['wants several answers', { n: 2 }],
    ['wants log probabilities', { logprobs: true }],
    ['wants sound', { modalities: ['audio'] }],
    ['says so', { spillway: { cache: false } }],
    ['does not end with a question', { messages: [{ role: 'assistant', content: 'x' }] }],
    ['shows an image', { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] }] }],
    ['is very long', { messages: [{ role: 'system', content: 'x'.repeat(200_000) }, body().messages[1]] }],
  ])('is none when the request %s', (_, more) => expect(versionOf(more)).toBeUndefined())
})
