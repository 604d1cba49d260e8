import type { ServerResponse } from 'node:http'
import type { Behaviour, UpstreamCall } from './fake-upstream.ts'

/**
 * A misbehaving server's scripts: the ways in which real engines differ from OpenAI's documentation, as their users and
 * sources report them, in our own words. Each dialect answers as that engine does: its frames, its line ends, its
 * finish reasons, its way to tell usage and to refuse.
 */
export interface Dialect {
  readonly name: string
  /** Answers, streamed or whole, every choice. */
  readonly answers: Behaviour
  readonly full: Behaviour
  readonly unable: Behaviour
}

const WORDS = ['The ', 'weir ', 'holds ', 'the ', 'wäter.']

interface Manner {
  readonly eol?: string
  /** Before anything else. */
  readonly prelude?: readonly string[]
  /** Between the words. */
  readonly between?: readonly string[]
  readonly finish: string
  /** What stands as `finish_reason` before the end. */
  readonly unfinished?: unknown
  /** In a frame of its own, with the last word of all, or with every frame. */
  readonly usage: 'own' | 'last' | 'every'
  readonly hasDone?: boolean
  readonly contentType?: string | undefined
  readonly space?: string
  /** Adds the engine's own fields to each frame and choice. */
  readonly extra?: object
  readonly choiceExtra?: object
}

const isChat = (call: UpstreamCall): boolean => call.req.url?.includes('/chat/completions') === true
const indexes = (call: UpstreamCall): number[] => Array.from({ length: Number(call.body['n'] ?? 1) }, (_, i) => i)
const usageOf = (call: UpstreamCall, words: number) => ({
  prompt_tokens: 11,
  total_tokens: 11 + words,
  completion_tokens: words * indexes(call).length,
})

function speak(manner: Manner): Behaviour {
  return async (call) => {
    if (call.body['stream'] !== true) {
      whole(call, manner)
      return
    }
    const { contentType = 'text/event-stream; charset=utf-8' } = manner
    call.res.writeHead(
      200,
      'contentType' in manner && manner.contentType === undefined ? {} : { 'content-type': contentType },
    )
    for (const frame of frames(call, manner)) {
      if (call.isGone()) return
      call.res.write(frame)
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    call.res.end()
  }
}

function whole(call: UpstreamCall, manner: Manner): void {
  const content = WORDS.join('')
  const choices = indexes(call).map((index) => ({
    index,
    ...(isChat(call) ? { message: { role: 'assistant', content } } : { text: content }),
    finish_reason: manner.finish,
    ...manner.choiceExtra,
  }))
  json(call.res, 200, { ...manner.extra, choices, usage: usageOf(call, WORDS.length) })
}

function* frames(call: UpstreamCall, manner: Manner): Iterable<string> {
  const { eol = '\n', space = ' ', prelude = [], between = [], unfinished = null } = manner
  const frame = (data: object | string): string =>
    `data:${space}${typeof data === 'string' ? data : JSON.stringify(data)}${eol}${eol}`
  const chunk = (choice: object, words: number): string =>
    frame({
      ...manner.extra,
      choices: [{ ...choice, ...manner.choiceExtra }],
      ...(manner.usage === 'every' ? { usage: usageOf(call, words) } : {}),
    })
  const said = (index: number, content: string, finish_reason: unknown) =>
    isChat(call) ? { index, delta: { content }, finish_reason } : { index, text: content, finish_reason }
  yield* prelude
  let count = 0
  for (const word of WORDS) {
    count++
    for (const index of indexes(call)) yield chunk(said(index, word, unfinished), count)
    yield* between
  }
  for (const index of indexes(call)) yield chunk(said(index, '', manner.finish), count)
  if (manner.usage !== 'every') yield frame({ ...manner.extra, choices: [], usage: usageOf(call, WORDS.length) })
  if (manner.hasDone !== false) yield frame('[DONE]')
}

export function json(res: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

const refuses =
  (status: number, body: unknown, headers: Record<string, string> = {}): Behaviour =>
  ({ res }) =>
    json(res, status, body, headers)

/** An error under a 200, as the first frame of a stream. */
const streamsError =
  (body: unknown): Behaviour =>
  ({ res }) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: ${JSON.stringify(body)}\n\ndata: [DONE]\n\n`)
  }

const SGLANG_FULL_WORDS = { object: 'error', message: 'The request queue is full.', param: null, code: 503 }
const SGLANG_FULL = {
  streamed: streamsError({ error: { ...SGLANG_FULL_WORDS, type: 'SERVICE_UNAVAILABLE' } }),
  whole: refuses(503, { ...SGLANG_FULL_WORDS, type: '503' }),
}

export const DIALECTS: readonly Dialect[] = [
  {
    name: 'vLLM',
    answers: speak({ finish: 'stop', usage: 'every', choiceExtra: { stop_reason: null, token_ids: null } }),
    full: streamsError({ error: { message: 'overloaded', type: 'ServiceUnavailableError', param: null, code: 503 } }),
    unable: refuses(400, {
      object: 'error',
      message: 'context length',
      type: 'BadRequestError',
      param: null,
      code: 400,
    }),
  },
  {
    // Its refusals have words where the Python front end has numbers; full, it queues as the other does.
    name: 'vLLM\u2019s Rust front end',
    answers: speak({ finish: 'stop', usage: 'every' }),
    full: streamsError({ error: { message: 'overloaded', type: 'ServiceUnavailableError', param: null, code: 503 } }),
    unable: refuses(400, {
      error: {
        message: 'this model\u2019s maximum context length is 4096 tokens',
        type: 'invalid_request_error',
        param: null,
        code: 'invalid_request_error',
      },
    }),
  },
  {
    name: 'SGLang',
    answers: speak({ finish: 'stop', usage: 'own', choiceExtra: { matched_stop: 128_009 }, unfinished: null }),
    // A stream is told under a 200, a whole answer with a status.
    full: (call) => (call.body['stream'] === true ? SGLANG_FULL.streamed(call) : SGLANG_FULL.whole(call)),
    unable: refuses(400, { object: 'error', message: 'too long', type: 'BadRequestError', param: null, code: 400 }),
  },
  {
    name: 'llama.cpp',
    answers: speak({ finish: 'stop', usage: 'own', extra: { timings: { predicted_ms: 3.5 } } }),
    full: refuses(503, { error: { code: 503, message: 'Loading model', type: 'unavailable_error' } }),
    unable: streamsError({
      error: {
        code: 400,
        message: 'the request exceeds the available context size',
        type: 'exceed_context_size_error',
      },
    }),
  },
  {
    name: 'TGI',
    answers: speak({
      finish: 'eos_token',
      usage: 'own',
      space: '',
      prelude: [':\n\n'],
      between: [': keep-alive\n\n'],
    }),
    full: refuses(429, { error: 'Model is overloaded', error_type: 'overloaded' }),
    unable: refuses(422, { error: '`inputs` tokens + `max_new_tokens` must be <= 4096', error_type: 'validation' }),
  },
  {
    name: 'Ollama',
    answers: speak({ finish: 'stop', usage: 'own', extra: { system_fingerprint: 'fp_ollama' }, unfinished: '' }),
    full: refuses(503, {
      error: { message: 'server busy, please try again', type: 'api_error', param: null, code: null },
    }),
    unable: refuses(400, { error: { message: 'invalid message format', type: 'invalid_request_error' } }),
  },
  {
    name: 'OpenAI',
    answers: speak({ finish: 'stop', usage: 'own', extra: { object: 'chat.completion.chunk', obfuscation: 'x9' } }),
    full: refuses(
      429,
      { error: { message: 'Rate limit reached', type: 'requests', param: null, code: 'rate_limit_exceeded' } },
      { 'retry-after-ms': '1500', 'retry-after': '2' },
    ),
    unable: refuses(400, {
      error: {
        message: 'Too long.',
        type: 'invalid_request_error',
        param: 'messages',
        code: 'context_length_exceeded',
      },
    }),
  },
  {
    name: 'Azure',
    answers: speak({
      finish: 'stop',
      usage: 'own',
      prelude: [
        `data: ${JSON.stringify({ id: '', choices: [], created: 0, model: '', prompt_filter_results: [{ prompt_index: 0 }] })}\n\n`,
      ],
      between: [
        `data: ${JSON.stringify({ id: '', choices: [{ index: 0, finish_reason: null, content_filter_offsets: { check_offset: 4 } }] })}\n\n`,
      ],
      choiceExtra: { content_filter_results: { hate: { filtered: false } } },
    }),
    full: refuses(
      429,
      { error: { code: '429', message: 'Requests have exceeded the token rate limit.' } },
      { 'retry-after': '7' },
    ),
    unable: refuses(400, { error: { code: 'content_filter', message: 'filtered', param: 'prompt', status: 400 } }),
  },
  {
    name: 'a proxy that loses the type and the end',
    answers: speak({
      finish: 'stop',
      usage: 'every',
      eol: '\r\n',
      hasDone: false,
      contentType: undefined,
      prelude: ['\r\n', 'event: ping\r\ndata:\r\n\r\n', 'retry: 1000\r\n\r\n'],
    }),
    full: refuses(529, '<html>overloaded</html>'),
    unable: refuses(413, '<html>too large</html>'),
  },
]
