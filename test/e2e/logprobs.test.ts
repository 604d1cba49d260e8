import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { InsideEngine } from '../support/engine-process.ts'
import { ACME_KEY, MODEL, startPlatform, type TestPlatform, testTree, upstreamTree } from '../support/start-platform.ts'

/** Log probabilities and `echo` of simulated engines: in this process, and of `spillway engine` behind the gateway. */

let engine: InsideEngine
const platforms: Record<string, TestPlatform> = {}
const clients: Record<string, OpenAI> = {}

beforeAll(async () => {
  engine = await InsideEngine.start('--model', MODEL, '--profile', 'h100-llama-8b', '--stream-interval', '4')
  platforms['in this process'] = await startPlatform(testTree())
  platforms['behind a URL'] = await startPlatform(upstreamTree([`${engine.url}/v1`]))
  for (const [where, { baseURL }] of Object.entries(platforms))
    clients[where] = new OpenAI({ baseURL, apiKey: ACME_KEY, maxRetries: 0 })
}, 60_000)
afterAll(async () => {
  await Promise.all(Object.values(platforms).map((platform) => platform.close()))
  await engine.stop()
})

const ask = {
  model: MODEL,
  messages: [{ role: 'user' as const, content: 'What is a weir? A weir is a low dam.' }],
  max_tokens: 12,
  seed: 7,
}
const complete = { model: MODEL, prompt: 'A weir is a low dam.', max_tokens: 12, seed: 7 }

describe.each(['in this process', 'behind a URL'])('a simulated engine %s', (where) => {
  const ai = () => clients[where]!

  it('tells the log probabilities of a chat, the same for the same seed, streamed or not', async () => {
    const wanted = { ...ask, logprobs: true, top_logprobs: 3 }
    const whole = await ai().chat.completions.create(wanted)
    const [choice] = whole.choices
    const entries = choice?.logprobs?.content ?? []
    expect(entries).toHaveLength(12)
    expect(entries.map(({ token }) => token).join('')).toBe(choice?.message.content)
    for (const { top_logprobs: top, logprob } of entries) {
      expect(top).toHaveLength(3)
      expect(top[0]?.logprob).toBe(logprob)
    }
    expect(choice?.logprobs).toMatchObject({ spillway: { simulated: true } })
    const again = await ai().chat.completions.create(wanted)
    expect(again.choices[0]?.logprobs).toEqual(choice?.logprobs)
    const streamed = []
    const stream = await ai().chat.completions.create({ ...wanted, stream: true })
    for await (const chunk of stream) streamed.push(...(chunk.choices[0]?.logprobs?.content ?? []))
    expect(streamed).toEqual(entries)
  })

  it('tells none where none are wanted', async () => {
    const { choices } = await ai().chat.completions.create(ask)
    expect(choices[0]?.logprobs).toBeNull()
  })

  it('puts the prompt in front of a completion, with log probabilities of both', async () => {
    const plain = await ai().completions.create(complete)
    const { choices, usage } = await ai().completions.create({ ...complete, echo: true, logprobs: 2 })
    const [choice] = choices
    expect(choice?.text).toBe(complete.prompt + plain.choices[0]?.text)
    const {
      tokens = [],
      token_logprobs: logprobs = [],
      text_offset: offsets = [],
      top_logprobs: top,
    } = choice?.logprobs ?? {}
    expect(tokens.join('')).toBe(choice?.text)
    expect(logprobs[0]).toBeNull()
    expect(logprobs.slice(1).every((one) => typeof one === 'number')).toBe(true)
    expect(offsets).toEqual(tokens.map((_, i) => tokens.slice(0, i).join('').length))
    expect(Object.keys(top?.[1] ?? {})).toHaveLength(2)
    expect(usage).toMatchObject({ completion_tokens: 12 })
  })

  it('takes a whole set of parameters', async () => {
    const response = await ai().completions.create({
      ...complete,
      ...(where === 'in this process' && { best_of: 3 }),
      suffix: ' The end.',
      logit_bias: { '1': -100 },
      presence_penalty: 0.5,
      frequency_penalty: 0.5,
      user: 'u',
      logprobs: 5,
      echo: false,
    })
    expect(response.choices).toHaveLength(1)
  })
})
