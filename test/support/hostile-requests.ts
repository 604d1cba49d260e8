import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { anthropicChecked } from './anthropic-shapes.ts'
import { cpuMsOf } from './cpu-time.ts'
import { InsideEngine } from './engine-process.ts'
import { checked } from './openai-shapes.ts'
import { type RawResponse, sendRaw } from './raw-http.ts'
import { authorization, MODEL, startPlatform, type TestPlatform, testTree } from './start-platform.ts'

/**
 * Sizes and numbers that a client names, on every route that takes a body: each gets an answer or a 4xx in the route's
 * own shape, soon, and no memory is made of it.
 */

const ADMIN_KEY = 'sk-test-admin'

let platform: TestPlatform
let engine: InsideEngine
let encoder: InsideEngine

/** A request that is right; each of its numbers is replaced in turn. */
interface Pattern {
  readonly path: string
  readonly body: Readonly<Record<string, unknown>>
  readonly key?: string
  readonly server?: 'gateway' | 'engine' | 'encoder'
}

const messages = [{ role: 'user', content: 'Hi.' }]
const spillway = { deadline_ms: 60_000, ttft_ms: 500, bid: 1, retrieval: null }
const numbers = { max_tokens: 1, n: 1, seed: 7, temperature: 1, top_p: 1, priority: 1 }

const PATTERNS: readonly Pattern[] = [
  { path: '/v1/vector_stores', body: { name: 'a', metadata: { a: 'b' } } },
  {
    path: '/v1/chat/completions',
    body: {
      model: MODEL,
      messages,
      ...numbers,
      max_completion_tokens: 1,
      top_logprobs: 0,
      logit_bias: { 5: 1 },
      spillway,
    },
  },
  { path: '/v1/completions', body: { model: MODEL, prompt: [1, 2], ...numbers, logprobs: null, best_of: 1, spillway } },
  { path: '/v1/completions', body: { model: MODEL, prompt: [[1], [2]], max_tokens: 1 } },
  {
    path: '/v1/responses',
    body: {
      model: MODEL,
      input: [{ role: 'user', content: 'Hi.' }],
      max_output_tokens: 1,
      max_tool_calls: 1,
      top_logprobs: 0,
      temperature: 1,
      top_p: 1,
      priority: 1,
      seed: 7,
      n: 1,
      spillway,
    },
  },
  {
    path: '/v1/messages',
    body: {
      model: MODEL,
      max_tokens: 1,
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'Hi.' }] },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: { at: 1 } }] },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: 'Ho.' }] }],
        },
      ],
      temperature: 1,
      top_p: 1,
      top_k: 1,
      seed: 7,
      priority: 1,
      logit_bias: { 5: 1 },
      thinking: { type: 'enabled', budget_tokens: 1 },
      spillway,
    },
  },
  { path: '/v1/messages/count_tokens', body: { model: MODEL, messages, priority: 1, spillway } },
  { path: `/openai/deployments/${MODEL}/chat/completions`, body: { messages, ...numbers, spillway } },
  { path: '/infer', body: { tenant_id: 'acme', tokens_requested: 1, priority_bid: 1 } },
  { path: '/v1/embeddings', body: { model: 'embed', input: [1, 2], dimensions: 4, priority: 1, spillway } },
  {
    path: '/v2/models/embed/infer',
    body: { inputs: [{ name: 'text', datatype: 'BYTES', shape: [2, 1], data: ['a', 'b'] }], spillway },
  },
  {
    path: '/v2/models/see/infer',
    body: { inputs: [{ name: 'image', datatype: 'FP32', shape: [1, 3, 1, 1], data: [0.5, 0.5, 0.5] }] },
  },
  {
    path: '/v1/vector_stores/shelf/search',
    body: { query: 'a', max_num_results: 3, ranking_options: { score_threshold: 0.5 } },
  },
  {
    path: '/v1/vector_stores/shelf/documents',
    body: { documents: [{ name: 'a', text: 'b', attributes: { year: 1 } }] },
  },
  {
    path: '/admin/v1/models',
    body: { model: { name: 'm', contextTokensMax: 5, createdAtS: 1 }, because: 'b' },
    key: ADMIN_KEY,
  },
  {
    path: '/admin/v1/models',
    body: { pools: [{ id: 'p', model: MODEL, replicas: 1, backend: { kind: 'simulated' }, weight: 1 }], because: 'b' },
    key: ADMIN_KEY,
  },
  { path: '/v1/chat/completions', body: { messages, ...numbers, spillway }, server: 'engine' },
  { path: '/v1/completions', body: { prompt: [1, 2], ...numbers, best_of: 1 }, server: 'engine' },
  { path: '/detokenize', body: { tokens: [1, 2] }, server: 'engine' },
  { path: '/v1/embeddings', body: { input: [[1], [2]], dimensions: 4 }, server: 'encoder' },
]

/** As texts, because JSON knows numbers that JavaScript does not write. */
const HOSTILE_NUMBERS = [
  '-0',
  '-1',
  '0.1',
  '1e-320',
  '2147483648',
  '4294967296',
  '110000000',
  '9007199254740993',
  '1e16',
  '1e100',
  '-1e100',
  '1e308',
  '1e400',
  '-1e400',
  '"1"',
  'null',
]

const HOSTILE_HEADERS = ['1e308', '-1e308', 'NaN', 'Infinity', '-0', '9007199254740993', '0x10', ' ', 'x'.repeat(4_000)]

const addressOf = ({ server = 'gateway' }: Pattern): string =>
  server === 'gateway' ? platform.address : server === 'engine' ? engine.url : encoder.url

async function send(pattern: Pattern, body: string | Buffer, more: Record<string, string> = {}): Promise<RawResponse> {
  const headers = { 'content-type': 'application/json', ...authorization(pattern.key), ...more }
  let response: RawResponse | undefined
  // The servers are in this thread, and so is every other request of the moment.
  const cpuMs = await cpuMsOf(async () => {
    response = await sendRaw(addressOf(pattern), { path: pattern.path, headers, body })
  })
  expect(cpuMs).toBeLessThan(10_000)
  return response as unknown as RawResponse
}

/** What this thread holds: the process has other tests in other threads. */
function memoryBytes(): number {
  const { heapTotal, external } = process.memoryUsage()
  return heapTotal + external
}

/** Undefined for an answer and for a mistake of the client's in the words of the route; else what is wrong. */
function problemIn(pattern: Pattern, { status, text }: RawResponse, what: string): string | undefined {
  if (status === 200) return undefined
  const problem = `${pattern.path} ${what}: ${status} ${text.slice(0, 300)}`
  if (status < 400 || status >= 500) return problem
  const { error } = JSON.parse(text) as { error: unknown }
  if (pattern.path.startsWith('/v2/')) return typeof error === 'string' ? undefined : problem
  if (pattern.path.startsWith('/v1/messages')) anthropicChecked('error', JSON.parse(text))
  else if (pattern.server === undefined) checked('error', { error })
  return (error as { message?: unknown }).message === undefined ? problem : undefined
}

/** The body once for each of its numbers, with a mark in the number's place. */
function withMarks(body: unknown): string[] {
  const marked: string[] = []
  const count =
    JSON.stringify(body, (_, value: unknown) => (typeof value === 'number' ? '#' : value)).split('"#"').length - 1
  for (let wanted = 0; wanted < count; wanted++) {
    let seen = 0
    marked.push(
      JSON.stringify(body, (_, value: unknown) => (typeof value === 'number' && seen++ === wanted ? '#' : value)),
    )
  }
  return marked
}

/**
 * Registers the suites. Each place in a body gets one in `every` of the hostile values; the next place gets the next ones,
 * so that each value stands in many places also in a sample.
 */
export function describeHostileRequests(every: number): void {
  const sampled = <T>(values: readonly T[], place: number): readonly T[] =>
    values.filter((_, i) => i % every === place % every)

  beforeAll(async () => {
    const simulated = { kind: 'simulated', profile: 'h100-llama-1b' }
    platform = await startPlatform(
      testTree({
        models: [
          { name: MODEL, contextTokensMax: 512 },
          { name: 'embed', kind: 'embedding', contextTokensMax: 512 },
          { name: 'see', kind: 'vision' },
        ],
        pools: [
          { model: MODEL, backend: simulated },
          { model: 'embed', backend: simulated },
          { model: 'see', backend: simulated },
        ],
        admin: { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] },
      }),
    )
    const shelf = { path: '/v1/vector_stores', body: {} }
    expect((await send(shelf, JSON.stringify({ name: 'shelf' }))).status).toBe(200)
    engine = await InsideEngine.start('--profile', 'h100-llama-1b', '--max-model-len', '512')
    encoder = await InsideEngine.start('--kind', 'embedding', '--profile', 'h100-llama-1b')
  }, 60_000)
  afterAll(async () => {
    await platform.close()
    await engine.stop()
    await encoder.stop()
  })

  describe('hostile numbers', () => {
    it.each(PATTERNS.map((pattern) => [`${pattern.server ?? 'gateway'} ${pattern.path}`, pattern] as const))(
      'in %s',
      async (_name, pattern) => {
        expect(problemIn(pattern, await send(pattern, JSON.stringify(pattern.body)), 'as it is')).toBeUndefined()
        const before = memoryBytes()
        for (const [place, marked] of withMarks(pattern.body).entries()) {
          await Promise.all(
            sampled(HOSTILE_NUMBERS, place).map(async (number) => {
              const body = marked.replace('"#"', number)
              expect(problemIn(pattern, await send(pattern, body), body)).toBeUndefined()
            }),
          )
        }
        // One of these numbers taken at its word is gigabytes.
        expect(memoryBytes() - before).toBeLessThan(500_000_000)
      },
      60_000,
    )

    it('in headers', async () => {
      const pattern: Pattern = { path: '/v1/chat/completions', body: { model: MODEL, messages, max_tokens: 1 } }
      const names = ['deadline-ms', 'ttft-ms', 'bid', 'top-k', 'hops', 'cut-off', 'band'].map(
        (name) => `x-spillway-${name}`,
      )
      for (const [place, name] of [...names, 'x-slo-ttft-ms', 'x-session-id'].entries()) {
        for (const value of sampled(HOSTILE_HEADERS, place)) {
          const response = await send(pattern, JSON.stringify(pattern.body), { [name]: value })
          expect(problemIn(pattern, response, `${name}: ${value}`)).toBeUndefined()
        }
      }
    })

    it('in addresses', async () => {
      for (const path of ['/v1/files', '/v1/vector_stores', '/admin/v1/changes', '/v1/vector_stores/shelf/files']) {
        for (const limit of ['1e308', '-1', 'NaN', 'Infinity', '9007199254740993', '0.5', '']) {
          const headers = authorization(path.startsWith('/admin') ? ADMIN_KEY : undefined)
          const response = await sendRaw(platform.address, { method: 'GET', path: `${path}?limit=${limit}`, headers })
          expect(problemIn({ path, body: {} }, response, limit)).toBeUndefined()
        }
      }
    })
  })

  describe('hostile sizes', () => {
    const tensors = (shape: readonly number[], data: readonly unknown[] = []): string =>
      JSON.stringify({ inputs: [{ name: 'text', datatype: 'BYTES', shape, data }] })
    const infer: Pattern = { path: '/v2/models/embed/infer', body: {} }

    it.each([
      [[110_000_000, 0]],
      [[1_000_000, 0]],
      [[0, 1_000_000]],
      [[0]],
      [[65_536, 65_536, 65_536, 65_536]],
      [Array.from({ length: 9 }, () => 1)],
    ])('the shape %j without data', async (shape) => {
      expect((await send(infer, tensors(shape))).status).toBe(400)
    })

    it('more rows than a batch has', async () => {
      const rows = Array.from({ length: 200_000 }, () => 'a')
      const { status, text } = await send(infer, tensors([rows.length], rows))
      expect([status, text]).toEqual([400, expect.stringContaining('at most 2048 rows')])
    })

    const deep = (depth: number, open: string, close: string): string => `${open.repeat(depth)}1${close.repeat(depth)}`

    it.each(PATTERNS.map((pattern, i) => [`${pattern.server ?? 'gateway'} ${pattern.path}`, pattern, i] as const))(
      'depth, keys, values and texts in %s',
      async (_name, pattern, place) => {
        const json = JSON.stringify(pattern.body)
        const field = (value: string): string => `${json.slice(0, -1)},"extra":${value}}`
        const complex = [
          field(deep(1_000, '[', ']')),
          field(deep(20_000, '{"a":', '}')),
          field(`{${Array.from({ length: 40_000 }, (_, i) => `"k${i}":1`).join(',')}}`),
          field(`[${'[],'.repeat(40_000)}1]`),
          field(`[${'1,'.repeat(1_100_000)}1]`),
          field(`[${'"",'.repeat(1_100_000)}1]`),
          deep(200_000, '[', ']'),
        ]
        for (const body of sampled(complex, place)) {
          const response = await send(pattern, body)
          expect(problemIn(pattern, response, body.slice(0, 200))).toBeUndefined()
          expect(response.status).toBe(400)
          expect(response.text).toMatch(/keys|objects and lists|values/)
        }
        const halves = json.replaceAll(/"(Hi\.|b|a|acme|shelf)"/g, '"\\ud83d"')
        const bodies = halves === json ? [field('"\\ude00"')] : [halves, field('"\\ude00"')]
        for (const body of bodies) expect((await send(pattern, body)).status).toBe(400)
      },
      60_000,
    )

    it('names that no database takes, in addresses', async () => {
      for (const path of [
        '/v1/files/%00',
        '/v1/vector_stores/%00',
        '/v1/vector_stores?after=%00',
        '/v1/files/%ed%a0%80',
      ]) {
        const response = await sendRaw(platform.address, { method: 'GET', path, headers: authorization() })
        expect(problemIn({ path, body: {} }, response, path)).toBeUndefined()
      }
      const headers = authorization(ADMIN_KEY)
      for (const path of ['/admin/v1/models/%00', '/admin/v1/changes?name=%00', '/admin/v1/changes?name=%ed%a0%80']) {
        expect(
          problemIn({ path, body: {} }, await sendRaw(platform.address, { method: 'GET', path, headers }), path),
        ).toBeUndefined()
      }
    })

    const part = '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n'
    const file = (content: string): string =>
      `--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n${content}\r\n--x--`
    it.each([
      ['500,000 empty parts', `${part.repeat(500_000)}--x--`],
      ['no end', part],
      ['a file of zeros', file('\u0000'.repeat(1_000))],
    ])('a form of %s', async (_what, body) => {
      const type = { 'content-type': 'multipart/form-data; boundary=x' }
      const cpuMs = await cpuMsOf(async () => {
        const response = await send({ path: '/v1/files', body: {} }, body, type)
        expect([response.status, response.text]).toEqual([400, expect.stringContaining('invalid_file')])
      })
      expect(cpuMs).toBeLessThan(2_000)
    })

    it('texts without end and texts without meaning, where a name or a word is expected', async () => {
      const texts = [
        JSON.stringify('x'.repeat(70_000)),
        '"\\u0000"',
        '"\\ufffe\\uffff"',
        '"__proto__"',
        '"constructor"',
        '""',
      ]
      for (const pattern of PATTERNS) {
        const json = JSON.stringify(pattern.body)
        const places = [...json.matchAll(/"(?:[^"\\]|\\.)*"/g)].filter(({ index }) => json[index - 1] !== undefined)
        for (const [place, { 0: word, index }] of places.entries()) {
          await Promise.all(
            sampled(texts, place).map(async (text) => {
              const body = json.slice(0, index) + text + json.slice(index + word.length)
              expect(problemIn(pattern, await send(pattern, body), `${word} → ${text.slice(0, 20)}`)).toBeUndefined()
            }),
          )
        }
      }
    }, 120_000)
  })

  it('after all this nothing runs, nothing is held, and nothing was our fault', () => {
    expect(platform.platform.liveCount).toBe(0)
    expect(platform.entries.filter((entry) => entry.kind === 'fault-seen')).toEqual([])
    expect(engine.said).not.toContain('Error')
  })
}
