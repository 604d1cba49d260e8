import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { createOpenAI } from '@ai-sdk/openai'
import Anthropic from '@anthropic-ai/sdk'
import { generateText, isStepCount, jsonSchema, streamText, tool } from 'ai'
import OpenAI, { AzureOpenAI, toFile } from 'openai'
import { chromium } from 'playwright-core'
import { EMBEDDER, TOOL, TOOL_MODEL } from './client-world.ts'
import { pathOf } from './installed.ts'
import { ACME_KEY, authorization, MODEL, type TestPlatform } from './start-platform.ts'

/** What each client does with the gateway, as its users write it. A trial that fails throws. */
export interface Trial {
  /** A program that npm does not bring. */
  readonly program?: 'curl' | 'chromium'
  readonly client: string
  readonly feature: string
  readonly run: (platform: TestPlatform) => Promise<void>
}

const CONTENT = 'What is a spillway for? A spillway lets water pass a dam.'
const messages = [{ role: 'user' as const, content: CONTENT }]
const PARAMETERS = { type: 'object' as const, properties: { at: { type: 'string' as const } } }

const trialsOf = (
  client: string,
  runs: Readonly<Record<string, Trial['run']>>,
  program: Pick<Trial, 'program'> = {},
): Trial[] => Object.entries(runs).map(([feature, run]) => ({ client, feature, run, ...program }))

type OpenAiOf = (platform: TestPlatform) => OpenAI

/** What both classes of OpenAI's package do. */
const generation = (of: OpenAiOf): Record<string, Trial['run']> => ({
  async 'chat, whole and streamed'(platform) {
    const ask = { model: MODEL, messages, max_tokens: 8, seed: 7 }
    const whole = await of(platform).chat.completions.create(ask)
    const streamed = await of(platform)
      .chat.completions.stream({ ...ask, stream: true })
      .finalContent()
    assert.equal(streamed, whole.choices[0]!.message.content)
  },
  async 'tools, there and back'(platform) {
    const answer = await of(platform)
      .chat.completions.runTools({
        model: TOOL_MODEL,
        stream: true,
        messages,
        tools: [
          {
            type: 'function',
            function: { name: TOOL.name, description: 'Looks.', parameters: PARAMETERS, function: () => TOOL.says },
          },
        ],
      })
      .finalContent()
    assert.equal(answer, `It says: ${TOOL.says}`)
  },
  async completions(platform) {
    const { choices } = await of(platform).completions.create({ model: MODEL, prompt: ['a', 'b'], max_tokens: 3 })
    assert.equal(choices.length, 2)
  },
  async embeddings(platform) {
    const { data } = await of(platform).embeddings.create({ model: EMBEDDER, input: ['one', 'two'] })
    assert.equal(data.length, 2)
    assert.ok(data[0]!.embedding.length > 1)
  },
  async 'responses, whole and streamed'(platform) {
    const ask = { model: MODEL, input: CONTENT, max_output_tokens: 8 }
    const whole = await of(platform).responses.create(ask)
    assert.ok(whole.output_text.length > 0)
    const streamed = await of(platform).responses.stream(ask).finalResponse()
    assert.ok(streamed.output_text.length > 0)
  },
  async 'an error of its class'(platform) {
    const asked = of(platform).chat.completions.create({ model: 'nobody', messages })
    await assert.rejects(asked, OpenAI.NotFoundError)
  },
})

const official: OpenAiOf = ({ baseURL }) => new OpenAI({ baseURL, apiKey: ACME_KEY, maxRetries: 0 })
const azure: OpenAiOf = ({ address }) =>
  new AzureOpenAI({ endpoint: address, apiKey: ACME_KEY, apiVersion: '2024-10-21', maxRetries: 0 })

const storedAndPassed: Record<string, Trial['run']> = {
  async 'stored responses'(platform) {
    const { responses } = official(platform)
    const first = await responses.create({ model: MODEL, input: CONTENT, max_output_tokens: 8, store: true })
    assert.equal((await responses.retrieve(first.id)).output_text, first.output_text)
    const next = { model: MODEL, input: 'And?', max_output_tokens: 8, previous_response_id: first.id }
    assert.equal((await responses.create(next)).previous_response_id, first.id)
    await responses.delete(first.id)
  },
  async 'stored completions'(platform) {
    const { completions } = official(platform).chat
    const made = await completions.create({ model: MODEL, messages, max_tokens: 4, store: true })
    assert.equal((await completions.retrieve(made.id)).id, made.id)
    assert.equal((await completions.list()).data.length, 1)
    await completions.delete(made.id)
  },
  async 'files, vector stores'(platform) {
    const { vectorStores } = official(platform)
    const { id } = await vectorStores.create({ name: 'shelf' })
    const file = await toFile(Buffer.from('Trains leave at noon.'), 't.txt')
    await vectorStores.files.uploadAndPoll(id, file, { pollIntervalMs: 100 })
    const { data } = await vectorStores.search(id, { query: 'When do trains leave?' })
    assert.match(data[0]!.content[0]!.text, /noon/)
  },
  async 'speech, transcripts'(platform) {
    const { audio } = official(platform)
    const speech = await audio.speech.create({ model: 'speaker', voice: 'alloy', input: 'Hi.' })
    assert.equal(await speech.text(), 'sound')
    const file = await toFile(Buffer.from('sound'), 'a.mp3')
    assert.equal((await audio.transcriptions.create({ model: 'speaker', file })).text, TOOL.says)
  },
  async images(platform) {
    const { images } = official(platform)
    assert.equal((await images.generate({ model: 'painter', prompt: 'A dam.' })).data?.length, 1)
    const image = await toFile(Buffer.from('picture'), 'a.png', { type: 'image/png' })
    assert.equal((await images.edit({ model: 'painter', image, prompt: 'A weir.' })).data?.length, 1)
  },
  async models(platform) {
    assert.ok((await official(platform).models.list()).data.some(({ id }) => id === MODEL))
  },
}

const claude = ({ address }: TestPlatform): Anthropic =>
  new Anthropic({ baseURL: address, apiKey: ACME_KEY, maxRetries: 0 })

const anthropic: Record<string, Trial['run']> = {
  async 'messages, whole and streamed'(platform) {
    const ask = { model: MODEL, messages, max_tokens: 8 }
    const whole = await claude(platform).messages.create(ask)
    const streamed = await claude(platform).messages.stream(ask).finalMessage()
    assert.deepEqual(streamed.content, whole.content)
  },
  async 'tools, there and back'(platform) {
    const tools = [{ name: TOOL.name, input_schema: PARAMETERS }]
    const ask = { model: TOOL_MODEL, max_tokens: 64, tools }
    const called = await claude(platform)
      .messages.stream({ ...ask, messages })
      .finalMessage()
    const call = called.content.find((block) => block.type === 'tool_use')
    assert.deepEqual([called.stop_reason, call?.input], ['tool_use', JSON.parse(TOOL.arguments)])
    const result = { type: 'tool_result' as const, tool_use_id: call!.id, content: TOOL.says }
    const turns = [
      { role: 'assistant' as const, content: called.content },
      { role: 'user' as const, content: [result] },
    ]
    const answer = await claude(platform).messages.create({ ...ask, messages: [...messages, ...turns] })
    assert.deepEqual(
      answer.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])),
      [`It says: ${TOOL.says}`],
    )
  },
  async 'counting tokens'(platform) {
    const { input_tokens: count } = await claude(platform).messages.countTokens({ model: MODEL, messages })
    assert.ok(count > 5)
  },
  async models(platform) {
    assert.ok((await claude(platform).models.list()).data.some(({ id }) => id === MODEL))
  },
  async 'an error of its class'(platform) {
    const asked = claude(platform).messages.create({ model: 'nobody', messages, max_tokens: 1 })
    await assert.rejects(asked, Anthropic.NotFoundError)
  },
}

/** The provider's default is Responses; `chat` is what it calls the older route. */
const aiSdk = (route: 'responses' | 'chat'): Record<string, Trial['run']> => {
  const model = ({ baseURL }: TestPlatform, name: string) => createOpenAI({ baseURL, apiKey: ACME_KEY })[route](name)
  return {
    async [`${route}, whole and streamed`](platform) {
      const ask = { model: model(platform, MODEL), prompt: CONTENT, maxOutputTokens: 16, maxRetries: 0 }
      assert.ok((await generateText(ask)).text.length > 0)
      assert.ok((await streamText(ask).text).length > 0)
    },
    async 'tools, there and back'(platform) {
      const execute = () => TOOL.says
      const { text } = await generateText({
        model: model(platform, TOOL_MODEL),
        prompt: CONTENT,
        tools: { [TOOL.name]: tool({ inputSchema: jsonSchema<{ at: string }>(PARAMETERS), execute }) },
        stopWhen: isStepCount(3),
        maxRetries: 0,
      })
      assert.ok(text.includes(TOOL.says))
    },
  }
}

const curl = async (url: string, ...more: string[]): Promise<string> => {
  const headers = Object.entries(authorization()).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const args = ['-sS', '-N', '--http2-prior-knowledge', '-w', ' %{http_version}', ...headers, ...more, url]
  return (await promisify(execFile)(pathOf('curl'), args, { timeout: 30_000 })).stdout
}

const overHttp2: Record<string, Trial['run']> = {
  async 'chat, whole and streamed'({ baseURL }) {
    const ask = { model: MODEL, messages, max_tokens: 4 }
    const post = (body: object) =>
      curl(`${baseURL}/chat/completions`, '-H', 'content-type: application/json', '-d', JSON.stringify(body))
    assert.match(await post(ask), /^\{.*"chat.completion".*\} 2$/s)
    assert.match(await post({ ...ask, stream: true }), /^data: .*\[DONE\]\s+2$/s)
  },
}

const inPage: Record<string, Trial['run']> = {
  async 'chat, whole and streamed'({ baseURL }) {
    const site = createServer((_req, res) => res.end('<!doctype html><title>app</title>'))
    await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
    const browser = await chromium.launch({ executablePath: pathOf('chromium'), args: ['--no-sandbox'] })
    try {
      const page = await browser.newPage()
      await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}`)
      const ask = { model: MODEL, messages, max_tokens: 4 }
      const headers = { ...authorization(), 'content-type': 'application/json', 'x-stainless-os': 'Linux' }
      const said = await page.evaluate(
        async ({ url, init, bodies }) =>
          Promise.all(bodies.map(async (body) => (await fetch(url, { ...init, body })).text())),
        {
          url: `${baseURL}/chat/completions`,
          init: { method: 'POST', headers },
          bodies: [ask, { ...ask, stream: true }].map((body) => JSON.stringify(body)),
        },
      )
      assert.match(said[0]!, /"object":"chat.completion"/)
      assert.match(said[1]!, /^data: .*\[DONE\]\s*$/s)
    } finally {
      await browser.close()
      site.close()
    }
  },
}

export const TRIALS: readonly Trial[] = [
  ...trialsOf('openai', { ...generation(official), ...storedAndPassed }),
  ...trialsOf('AzureOpenAI', generation(azure)),
  ...trialsOf('@anthropic-ai/sdk', anthropic),
  ...trialsOf('ai (default provider)', aiSdk('responses')),
  ...trialsOf('ai (chat)', aiSdk('chat')),
  ...trialsOf('curl over HTTP/2', overHttp2, { program: 'curl' }),
  ...trialsOf('a page in Chromium', inPage, { program: 'chromium' }),
]
