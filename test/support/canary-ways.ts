import { answers, type Behaviour, FakeUpstream } from './fake-upstream.ts'
import { PassingEngine, takes } from './passing-engine.ts'
import type { Tree } from './start-platform.ts'

/** Values that are nowhere else, and a request with them for every route that takes text. */
const LOCAL = 'zebra7f3acanary'
export const EMAIL = `${LOCAL}@leak-example.com`
const CARD = '4539148803436467'
const IBAN = 'DE89370400440532013000'
/** Written in two parts, so that no scanner of repositories takes them for keys of somebody. */
const AWS_KEY = `AKIA${'Z7QNW3RXK5TLM2VB'}`
const GITHUB_TOKEN = `ghp_${'q8Zt3LmW0xKc7RbN5vYd2HsJ9fPgT4aE6uXo'}`
export const CANARIES = [LOCAL, CARD, IBAN, AWS_KEY, GITHUB_TOKEN]
export const TEXT = `Write to ${EMAIL} about card ${CARD} and account ${IBAN}. Use ${AWS_KEY} and ${GITHUB_TOKEN}, please.`

export interface Way {
  readonly route: string
  readonly path?: string
  readonly body: object | string | FormData
  readonly headers?: Readonly<Record<string, string>>
}

const part = (type: string) => ({ type, text: TEXT })
export const chat = {
  model: 'sim',
  messages: [
    { role: 'system', content: TEXT },
    {
      role: 'user',
      content: [part('text'), { type: 'image_url', image_url: { url: `https://x.example/?q=${EMAIL}` } }],
    },
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        {
          id: `call_${LOCAL}@leak-example.com`,
          type: 'function',
          function: { name: 'send', arguments: JSON.stringify({ to: EMAIL, card: Number(CARD), text: TEXT }) },
        },
      ],
    },
    { role: 'tool', tool_call_id: `call_${LOCAL}@leak-example.com`, content: TEXT },
    { role: 'user', content: 'Go on.', name: EMAIL },
  ],
  tools: [
    {
      type: 'function',
      function: {
        name: 'send',
        description: TEXT,
        parameters: { type: 'object', properties: { [EMAIL]: { default: TEXT } } },
      },
    },
  ],
  response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { description: TEXT } } },
  user: EMAIL,
  metadata: { about: TEXT },
  unknown_member: { deep: [[TEXT]] },
  max_tokens: 8,
}
const input = [
  { type: 'message', role: 'user', content: [part('input_text')] },
  { type: 'function_call', call_id: 'c1', name: 'send', arguments: JSON.stringify({ to: EMAIL }) },
  { type: 'function_call_output', call_id: 'c1', output: TEXT },
]
export const responses = { model: 'sim', instructions: TEXT, input, user: EMAIL, metadata: { about: TEXT } }
const anthropic = {
  model: 'sim',
  max_tokens: 8,
  system: [part('text')],
  messages: [
    { role: 'user', content: [part('text')] },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'send', input: { to: EMAIL } }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: TEXT }] },
  ],
  metadata: { user_id: EMAIL },
}
const pairs = { model: 'order', query: TEXT, documents: [TEXT, { text: TEXT }], more: TEXT }
const completion = { model: 'sim', prompt: [TEXT, TEXT], suffix: TEXT, max_tokens: 4 }
const embedding = { model: 'embed', input: [TEXT], user: EMAIL }

function form(model: string): FormData {
  const made = new FormData()
  made.set('prompt', TEXT)
  made.set('model', model)
  made.set('file', new File([new Uint8Array([0, 1, 2])], `${EMAIL}.wav`))
  made.set('language', TEXT)
  return made
}

export const WAYS: readonly Way[] = [
  { route: 'POST /v1/chat/completions', body: chat },
  { route: 'POST /v1/chat/completions', body: { ...chat, stream: true } },
  { route: 'POST /v1/chat/completions', body: { ...chat, store: true } },
  {
    route: 'POST /v1/chat/completions',
    body: { model: 'sim', temperature: 0, messages: [{ role: 'user', content: TEXT }] },
  },
  { route: 'POST /v1/chat/completions', body: { ...chat, spillway: { retrieval: { corpus: EMAIL } } } },
  { route: 'POST /v1/chat/completions', body: chat, headers: { 'x-spillway-corpus': EMAIL, 'x-session-id': EMAIL } },
  {
    route: 'POST /v1/chat/completions/*',
    path: '/v1/chat/completions/chatcmpl-none',
    body: { metadata: { about: TEXT } },
  },
  { route: 'POST /v1/completions', body: completion },
  { route: 'POST /v1/responses', body: responses },
  { route: 'POST /v1/responses', body: { ...responses, stream: true } },
  { route: 'POST /v1/responses', body: { ...responses, previous_response_id: EMAIL } },
  { route: 'POST /v1/embeddings', body: embedding },
  { route: 'POST /v1/messages', body: anthropic },
  { route: 'POST /v1/messages', body: { ...anthropic, stream: true } },
  { route: 'POST /v1/messages/count_tokens', body: anthropic },
  { route: 'POST /openai/deployments/*', path: '/openai/deployments/sim/chat/completions', body: chat },
  { route: 'POST /openai/v1/chat/completions', body: chat },
  { route: 'POST /openai/v1/completions', body: completion },
  { route: 'POST /openai/v1/responses', body: responses },
  { route: 'POST /openai/v1/embeddings', body: embedding },
  { route: 'POST /openai/responses', body: responses },
  { route: 'POST /infer', body: { tenant_id: EMAIL, tokens_requested: 1 } },
  { route: 'POST /v1/audio/speech', body: { model: 'sound', input: TEXT, voice: EMAIL } },
  { route: 'POST /v1/audio/transcriptions', body: form('sound') },
  { route: 'POST /v1/audio/translations', body: form('sound') },
  { route: 'POST /v1/images/generations', body: { model: 'picture', prompt: TEXT, user: EMAIL } },
  { route: 'POST /v1/images/edits', body: form('picture') },
  { route: 'POST /v1/images/variations', body: form('picture') },
  { route: 'POST /v1/rerank', body: pairs },
  { route: 'POST /rerank', body: pairs },
  { route: 'POST /v1/score', body: { model: 'order', text_1: TEXT, text_2: [TEXT] } },
  { route: 'POST /tokenize', body: { model: 'order', prompt: TEXT, messages: [{ role: 'user', content: TEXT }] } },
  { route: 'POST /detokenize', body: { model: 'order', tokens: [1, 2], about: TEXT } },
  {
    route: 'POST /v2/models/*',
    path: '/v2/models/rank/infer',
    body: {
      id: EMAIL,
      inputs: [{ name: 'query', datatype: 'BYTES', shape: [1], data: [TEXT], parameters: { a: TEXT } }],
    },
  },
  { route: 'POST /v1/vector_stores/*', path: '/v1/vector_stores/weir/search', body: { query: TEXT } },
]

const vectors: Behaviour = ({ res, body }) => {
  const inputs = Array.isArray(body['input']) ? body['input'] : [body['input']]
  const data = inputs.map((_, index) => ({
    index,
    embedding: Array.from({ length: 26 }, (__, i) => (i === 0 ? 1 : 0)),
  }))
  const usage = { prompt_tokens: 1, total_tokens: 1 }
  res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ object: 'list', data, usage }))
}

export const byPath =
  (behaviour: Behaviour): Behaviour =>
  (call) =>
    (call.req.url?.endsWith('/embeddings') === true ? vectors : behaviour)(call)

/** What an engine may have taken out of a body, whatever way it was written. */
export function spellings(text: string): string {
  try {
    return text + JSON.stringify(JSON.parse(text)) + decodeURIComponent(text.replaceAll('%', '%25'))
  } catch {
    return text
  }
}

export const leaks = (text: string, canaries = CANARIES): string[] => canaries.filter((canary) => text.includes(canary))

/** An engine of chats and embeddings, one that takes anything, and the models and pools in front of both. */
export class CanaryEngines {
  readonly engine: FakeUpstream
  readonly passing: PassingEngine

  constructor(engine: FakeUpstream, passing: PassingEngine) {
    this.engine = engine
    this.passing = passing
  }

  static async start(): Promise<CanaryEngines> {
    return new CanaryEngines(await FakeUpstream.start(byPath(answers())), await PassingEngine.start(takes()))
  }

  get tree(): Tree {
    const upstream = { kind: 'http-openai', timeoutMs: 5_000 }
    return {
      models: [
        { name: 'sim' },
        { name: 'embed', kind: 'embedding' },
        { name: 'rank', kind: 'ranking', transit: [] },
        { name: 'sound', kind: 'audio' },
        { name: 'picture', kind: 'image' },
        { name: 'order', kind: 'ranking', transit: ['rerank', 'tokenize'] },
      ],
      pools: [
        ...['sim', 'embed'].map((model) => ({ model, backend: upstream, replicas: [this.engine.url] })),
        { model: 'rank', backend: { kind: 'simulated', profile: 'h100-llama-1b' } },
        ...['sound', 'picture', 'order'].map((model) => ({
          model,
          backend: { ...upstream, engine: 'none' },
          replicas: [this.passing.url],
        })),
      ],
      screening: { pii: 'redact', secrets: 'redact' },
    }
  }

  /** Values that came through to an engine, each with its path. */
  leaked(): string[] {
    const sent = [
      ...this.engine.seen.map(({ path, text }) => [path, text] as const),
      ...this.passing.seen.map(({ path, body }) => [path, body?.begin ?? ''] as const),
    ]
    return sent.flatMap(([path, text]) => leaks(spellings(text)).map((canary) => `${path}: ${canary}`))
  }

  async close(): Promise<void> {
    await this.engine.close()
    await this.passing.close()
  }
}

export async function sendWay(address: string, way: Way, key: string): Promise<{ status: number; text: string }> {
  const { body } = way
  const isForm = body instanceof FormData
  const response = await fetch(address + (way.path ?? way.route.split(' ')[1] ?? ''), {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      ...(!isForm && { 'content-type': 'application/json' }),
      ...way.headers,
    },
    body: isForm ? body : typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, text: await response.text().catch(() => 'broken off') }
}
