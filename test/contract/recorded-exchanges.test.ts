import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import type { Plan } from '../../src/domain/plan.ts'
import { relayedEmbedding } from '../../src/wire/embeddings.ts'
import { engineErrorOf } from '../../src/wire/engine-error.ts'
import { embeddingBody, upstreamBody } from '../../src/wire/upstream-body.ts'
import { cutAt, exactJson, OUR_ID, relayThrough } from '../support/relay-through.ts'
import { makeRequest } from '../support/requests.ts'

/**
 * Exchanges with real engines, passed on in both directions. Some like them are written here; a folder of recorded ones
 * (YAML files of go-vcr) is read where SPILLWAY_RECORDED names it.
 */
interface Exchange {
  readonly name: string
  readonly path: string
  readonly asked: string
  readonly status: number
  readonly answered: string
}

type Json = Record<string, unknown>

const frame = (choice: object, more = ''): string =>
  `data: {"id":"chatcmpl-x","object":"chat.completion.chunk","created":1755137933,"model":"gpt-5-nano-2025-08-07","service_tier":"default","system_fingerprint":null,"choices":[${JSON.stringify({ index: 0, ...choice })}]${more}}\n\n`

const OWN: readonly Exchange[] = [
  {
    name: 'a streamed chat with padding, without log probabilities',
    path: '/v1/chat/completions',
    asked: '{\n  "messages": [{"content": "Hello!", "role": "user"}],\n  "model": "m",\n  "stream": true\n}',
    status: 200,
    answered: [
      frame({ delta: { role: 'assistant', content: '', refusal: null }, finish_reason: null }, ',"obfuscation":"nX"'),
      frame({ delta: { content: 'Hi' }, finish_reason: null }, ',"obfuscation":""'),
      frame({ delta: {}, finish_reason: 'stop' }, ',"obfuscation":"k0O"'),
      'data: [DONE]\n\n',
    ].join(''),
  },
  {
    name: 'a streamed completion whose model stands last',
    path: '/v1/completions',
    asked: '{"max_tokens": 25, "model": "m", "prompt": "def", "stream": true, "temperature": 0.40}',
    status: 200,
    answered:
      'data: {"id":"cmpl-x","object":"text_completion","created":1759117375,"choices":[{"text":" +","index":0,"logprobs":null,"finish_reason":null}],"model":"babbage:2023"}\n\ndata: {"id":"cmpl-x","object":"text_completion","created":1759117375,"choices":[{"text":"","index":0,"logprobs":null,"finish_reason":"length"}],"model":"babbage:2023"}\n\ndata: [DONE]\n\n',
  },
  {
    name: 'a tool call with details of its usage',
    path: '/v1/chat/completions',
    asked:
      '{"messages": [{"content": "Weather?", "role": "user"}], "model": "m", "tools": [{"type": "function", "x": 1.0}]}',
    status: 200,
    answered:
      '{\n  "id": "chatcmpl-x",\n  "object": "chat.completion",\n  "created": 1755137933,\n  "model": "gpt-5-nano-2025-08-07",\n  "choices": [{"index": 0, "message": {"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}], "annotations": []}, "finish_reason": "tool_calls"}],\n  "usage": {"prompt_tokens": 7, "completion_tokens": 90, "total_tokens": 97, "completion_tokens_details": {"reasoning_tokens": 64}},\n  "service_tier": "default",\n  "system_fingerprint": null\n}\n',
  },
  {
    name: 'vectors in base64',
    path: '/v1/embeddings',
    asked: '{"encoding_format": "base64", "input": "Hello", "model": "m"}',
    status: 200,
    answered:
      '{"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": "AACAPw=="}], "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}',
  },
  {
    name: 'a parameter that is refused',
    path: '/v1/chat/completions',
    asked: '{"max_tokens": 0, "messages": [{"content": null, "role": "user"}], "model": "m"}',
    status: 400,
    answered:
      '{"error": {"code": "unsupported_parameter", "message": "Use another.", "param": "max_tokens", "type": "invalid_request_error"}}',
  },
]

interface Recorded {
  readonly interactions: ReadonlyArray<{
    readonly request: { readonly body: string; readonly url: string }
    readonly response: { readonly body: string; readonly code?: number; readonly status?: string }
  }>
}

function recordedIn(folder: string): Exchange[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.yaml'))
    .flatMap((name) =>
      (parse(readFileSync(join(folder, name), 'utf8')) as Recorded).interactions.map(({ request, response }) => ({
        name,
        path: new URL(request.url).pathname,
        asked: request.body,
        status: response.code ?? Number.parseInt(response.status ?? '200', 10),
        answered: response.body,
      })),
    )
}

const folder = process.env['SPILLWAY_RECORDED']
const exchanges = [...OWN, ...(folder === undefined ? [] : recordedIn(folder))]
const answered = exchanges.filter(({ status }) => status < 400)

const framesIn = (text: string): unknown[] =>
  text
    .split('\n\n')
    .map((part) => part.trim().replace(/^data: /, ''))
    .filter((part) => part.startsWith('{'))
    .map(exactJson)

describe.each(exchanges)('$name', ({ path, asked, status, answered: answer }) => {
  it('is asked as the client asked', () => {
    const body = JSON.parse(asked) as Json
    const isStreamed = body['stream'] === true
    const kind = path.endsWith('/chat/completions') ? 'chat' : path.endsWith('/embeddings') ? 'embedding' : 'completion'
    const request = makeRequest({ kind, isStreamed, text: { body, raw: asked } })
    const messages = (body['messages'] ?? []) as unknown[]
    const plan = { keptSegments: messages.map((_, i) => i), outputTokensMax: 100_000 } as unknown as Plan
    const model = String(body['model'])
    const sent = kind === 'embedding' ? embeddingBody(request, model) : upstreamBody(request, plan, model)
    const wanted = exactJson(asked) as Json
    expect(exactJson(sent)).toEqual(isStreamed ? { ...wanted, stream_options: { include_usage: true } } : wanted)
  })

  it.runIf(status >= 400)('is refused in the engine’s own words', () => {
    const told = engineErrorOf({ status, json: JSON.parse(answer), redact: (text) => text })
    const { error } = JSON.parse(answer) as { error: Json }
    expect(told).toEqual({
      status,
      error: { ...error, message: String(error['message']).replaceAll(/\s+/g, ' ').trim() },
    })
  })
})

describe.each(answered)('the answer to $name', ({ path, asked, answered: answer }) => {
  const isStreamed = (JSON.parse(asked) as Json)['stream'] === true
  const isEmbedding = path.endsWith('/embeddings')

  it.runIf(isEmbedding)('is passed on', () => {
    const { usage } = JSON.parse(answer) as { usage: { prompt_tokens: number } }
    const counted = { promptTokens: usage.prompt_tokens, cachedTokens: 0, outputTokens: 0 }
    const source = { json: answer, keepsModel: true }
    const told = { ...counted, source, isAlone: false }
    expect(relayedEmbedding(source, { model: 'x', usage: { ...counted, told } })).toBe(answer)
  })

  it.runIf(!isEmbedding).each([0, 1, 7])('is passed on, cut into pieces (%i)', async (every) => {
    const kind = path.endsWith('/chat/completions') ? 'chat' : 'completion'
    const places = every === 0 ? [] : Array.from({ length: 200 }, (_, i) => i * every)
    const pieces = cutAt(answer, places)
    const { text } = await relayThrough({ pieces, isStreamed, kind, keepsModel: true, choiceCount: 8 })
    if (!isStreamed) {
      expect(exactJson(text)).toEqual({ ...(exactJson(answer) as Json), id: OUR_ID })
      return
    }
    const wanted = framesIn(answer).map((one) => {
      const { usage: _usage, ...rest } = one as Json
      return { ...rest, id: OUR_ID }
    })
    expect(framesIn(text)).toEqual(wanted)
  })
})
