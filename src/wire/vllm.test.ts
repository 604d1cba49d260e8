import { describe, expect, it } from 'vitest'
import {
  cacheSaltOf,
  readDetokenize,
  readTokenize,
  readVllmChat,
  readVllmCompletion,
  vllmContextTooLong,
} from './vllm.ts'

const bytes = (json: unknown): Buffer => Buffer.from(typeof json === 'string' ? json : JSON.stringify(json))
const MESSAGES = [{ role: 'user', content: 'hello' }]

describe('bodies for vLLM', () => {
  it.each([
    ['absent', {}],
    ['null', { model: null }],
    ['empty', { model: '' }],
  ])('are for the one model when theirs is %s', (_, model) => {
    expect(readVllmChat(bytes({ ...model, messages: MESSAGES }), 'llama')).toMatchObject({ value: { model: 'llama' } })
  })

  it('keep the model they name', () => {
    expect(readVllmChat(bytes({ model: 'other', messages: MESSAGES }), 'llama')).toMatchObject({
      value: { model: 'other' },
    })
  })

  it('ask for sixteen tokens of a completion unless they say so', () => {
    expect(readVllmCompletion(bytes({ prompt: 'x' }), 'llama')).toMatchObject({ value: { max_tokens: 16 } })
    expect(readVllmCompletion(bytes({ prompt: 'x', max_tokens: 5 }), 'llama')).toMatchObject({
      value: { max_tokens: 5 },
    })
  })

  it.each([
    ['no JSON', 'x', null],
    ['no object', '[]', null],
    ['no messages', { model: 'llama' }, 'messages'],
    ['stream options alone', { messages: MESSAGES, stream_options: { include_usage: true } }, 'stream_options'],
  ])('are at fault: %s', (_, json, param) => {
    expect(readVllmChat(bytes(json), 'llama')).toMatchObject({
      kind: 'fault',
      fault: { param },
    })
  })

  it('may have a salt', () => {
    expect(cacheSaltOf({ model: 'm', prompt: 'x', cache_salt: 'acme' } as never)).toBe('acme')
    expect(cacheSaltOf({ model: 'm', prompt: 'x', cache_salt: 7 } as never)).toBe('')
  })

  it('for the tokenizer are a prompt, messages or tokens', () => {
    expect(readTokenize(bytes({ prompt: 'x' })).kind).toBe('ok')
    expect(readTokenize(bytes({ messages: MESSAGES })).kind).toBe('ok')
    expect(readTokenize(bytes({}))).toMatchObject({ fault: { param: 'prompt' } })
    expect(readTokenize(bytes({ messages: [] }))).toMatchObject({ fault: { param: 'messages' } })
    expect(readDetokenize(bytes({ tokens: [1, 2] })).kind).toBe('ok')
    expect(readDetokenize(bytes({ tokens: [-1] }))).toMatchObject({ fault: { param: 'tokens[0]' } })
  })
})

describe('a context that is too long', () => {
  it('is told in the sentence that clients look for', () => {
    const { message } = vllmContextTooLong({
      contextTokensMax: 100,
      outputTokens: 20,
      promptTokens: 90,
      isAtLeast: false,
    })
    expect(message).toMatch(/^This model's maximum context length is 100 tokens\..* 90 input tokens.* 110 tokens\./)
    const cut = vllmContextTooLong({ contextTokensMax: 100, outputTokens: 0, promptTokens: 101, isAtLeast: true })
    expect(cut.message).toContain('at least 101 input tokens')
  })
})
