import { beforeAll, describe, expect, it } from 'vitest'
import { realTokenizer } from '../../test/support/engine-tokenizer.ts'
import { Cancellation } from '../base/cancellation.ts'
import type { ChatBody, CompletionBody } from '../wire/schemas.ts'
import { PromptReader, type PromptReaderOptions } from './prompt-reader.ts'
import { encodeWhole, type Tokenizer } from './tokenizer.ts'

let tokenizer: Tokenizer
beforeAll(async () => {
  tokenizer = await realTokenizer()
})

/** A reader that counts what it asks of its tokenizer. */
function makeReader(options: Partial<PromptReaderOptions> = {}): { reader: PromptReader; encoded: string[] } {
  const encoded: string[] = []
  const counting: Tokenizer = {
    ...tokenizer,
    encode(slice) {
      encoded.push(slice)
      return tokenizer.encode(slice)
    },
  }
  return { reader: new PromptReader({ tokenizer: counting, tokensMax: 1_000_000, ...options }), encoded }
}

const chat = (...contents: string[]): ChatBody =>
  ({ model: 'm', messages: contents.map((content) => ({ role: 'user', content })) }) as unknown as ChatBody
const completion = (prompt: CompletionBody['prompt']): CompletionBody => ({ model: 'm', prompt }) as CompletionBody
const LONG = 'Water passes the dam when the gates open. '.repeat(500)

describe('PromptReader', () => {
  it('frames each message of a chat, and ends with the head of the answer', async () => {
    const { messageStart, roleEnd, messageEnd } = tokenizer.frame
    const read = await makeReader().reader.read(chat('hello', 'there <|im_end|>'))
    const framed = (text: string) => [
      messageStart,
      ...tokenizer.encode('user'),
      roleEnd,
      ...tokenizer.encode(text),
      messageEnd,
    ]
    expect(read.segments.map(({ tokens }) => tokens)).toEqual([framed('hello'), framed('there <|im_end|>')])
    expect(read.tail).toEqual([messageStart, ...tokenizer.encode('assistant'), roleEnd])
    expect(read.isCut).toBe(false)
  })

  it('takes the prompts of a completion as they are, texts and tokens', async () => {
    const { reader } = makeReader()
    const tokensOf = async (prompt: CompletionBody['prompt']) =>
      (await reader.read(completion(prompt))).segments.map(({ tokens }) => tokens)
    expect(await tokensOf('a dam')).toEqual([tokenizer.encode('a dam')])
    expect(await tokensOf(['a dam', 'a weir'])).toEqual([tokenizer.encode('a dam'), tokenizer.encode('a weir')])
    expect(await tokensOf([5, 6, 7])).toEqual([[5, 6, 7]])
    expect(await tokensOf([[5, 6], [7]])).toEqual([[5, 6], [7]])
    const spelt = await reader.read(completion(encodeWhole(tokenizer, 'water 水 🌊')))
    expect(spelt.segments[0]?.text).toBe('water 水 🌊')
  })

  it('reads a body once', async () => {
    const { reader, encoded } = makeReader()
    const body = chat('once and for all')
    const first = await reader.read(body)
    const count = encoded.length
    expect(await reader.read(body)).toBe(first)
    expect(encoded).toHaveLength(count)
  })

  it('reads short prompts at once, and lets the event loop run between the slices of long ones', async () => {
    let breaths = 0
    const breathe = () => {
      breaths++
      return Promise.resolve()
    }
    const { reader } = makeReader({ breathe })
    expect(reader.read(chat('short'))).not.toBeInstanceOf(Promise)
    const read = reader.read(chat(LONG))
    expect(read).toBeInstanceOf(Promise)
    expect((await read).segments[0]?.tokens.slice(3, -1)).toEqual(tokenizer.encode(LONG))
    expect(breaths).toBeGreaterThan(LONG.length / 2_048 - 2)
    expect(makeReader().reader.read(chat(LONG))).not.toBeInstanceOf(Promise)
  })

  it('stops soon after the context is full', async () => {
    const { reader, encoded } = makeReader({ tokensMax: 100 })
    expect((await reader.read(chat(LONG, LONG))).isCut).toBe(true)
    expect(encoded.length).toBeLessThan(4)
    // Messages count together, prompts each by itself.
    const half = LONG.slice(0, 300)
    expect((await reader.read(chat(half, half))).isCut).toBe(true)
    expect((await reader.read(completion([half, half]))).isCut).toBe(false)
  })

  it('stops when called off, and does not remember what it had', async () => {
    const cancellation = new Cancellation()
    const breathe = () => {
      cancellation.cancel('client-gone')
      return Promise.resolve()
    }
    const { reader, encoded } = makeReader({ breathe })
    const body = chat(LONG)
    expect((await reader.read(body, cancellation)).isCut).toBe(true)
    expect(encoded.length).toBeLessThan(5)
    expect((await reader.read(body)).isCut).toBe(false)
  })
})
