import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pause } from './eventually.ts'

/**
 * An engine that says values in every place where an answer has text, whatever it is asked: in content, reasoning and
 * arguments, cut into small deltas, and beside them in log probabilities, ids, members that nobody knows and errors.
 */
export interface Said {
  readonly reasoning?: string
  readonly content?: string
  /** Arguments of calls, as JSON. */
  readonly calls?: readonly string[]
}

export type EngineMood = 'well' | 'refuses' | 'breaks-off' | 'hangs'

export class LeakingEngine {
  readonly #server = createServer((req, res) => void this.#answer(req, res))
  readonly #leak: string
  said: Said
  /** Letters of each delta. */
  pieceLength = 3
  everyMs = 0
  mood: EngineMood = 'well'
  /** Moods of the next requests, before `mood`. */
  readonly next: EngineMood[] = []
  readonly bodies: string[] = []
  readonly paths: string[] = []
  openCount = 0

  private constructor(leak: string, said: Said) {
    this.#leak = leak
    this.said = said
  }

  static async start(leak: string, said: Said): Promise<LeakingEngine> {
    const engine = new LeakingEngine(leak, said)
    await new Promise<void>((resolve) => engine.#server.listen(0, '127.0.0.1', resolve))
    return engine
  }

  get root(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get url(): string {
    return `${this.root}/v1`
  }

  close(): Promise<void> {
    this.#server.closeAllConnections()
    return new Promise((resolve) => {
      this.#server.close(() => resolve())
    })
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    res.on('error', () => {})
    const path = req.url ?? ''
    if (req.method === 'GET') {
      res.writeHead(/health|ready/.test(path) ? 200 : 404).end()
      return
    }
    this.openCount++
    res.on('close', () => this.openCount--)
    let text = ''
    try {
      for await (const part of req) text += String(part)
    } catch {
      return
    }
    this.bodies.push(text)
    this.paths.push(path)
    const mood = this.next.shift() ?? this.mood
    if (mood === 'refuses') {
      json(
        res,
        { error: { message: `bad prompt: ${this.#leak}`, code: 'bad', param: this.#leak, more: [this.#leak] } },
        400,
      )
      return
    }
    const body = (text.startsWith('{') ? JSON.parse(text) : {}) as Record<string, unknown>
    if (!/\/(chat\/)?completions$/.test(path)) this.#answerOther(path, body, res)
    else if (body['stream'] === true) await this.#stream(path, res, mood)
    else json(res, this.#whole(path))
  }

  /** Endpoints without choices. */
  #answerOther(path: string, body: Readonly<Record<string, unknown>>, res: ServerResponse): void {
    const leak = this.#leak
    const usage = { prompt_tokens: 1, total_tokens: 1, about: leak }
    if (path.endsWith('/embeddings')) {
      const inputs = Array.isArray(body['input']) ? body['input'] : [body['input']]
      json(res, { object: 'list', leak, data: inputs.map((_, index) => ({ index, embedding: [1, 0], leak })), usage })
    } else if (path.endsWith('/infer')) {
      json(res, {
        outputs: [{ name: 'text', datatype: 'BYTES', shape: [1], data: [leak], parameters: { leak } }],
        leak,
      })
    } else if (path.endsWith('/speech')) {
      res.writeHead(200, { 'content-type': 'audio/mpeg' }).end('ID3')
    } else if (path.endsWith('/translations')) {
      res.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' })
      for (const letter of `Write to ${leak} soon.`) res.write(letter)
      res.end()
    } else json(res, { text: `Write to ${leak}.`, [leak]: [{ revised_prompt: leak, token_strs: [leak] }], usage })
  }

  #whole(path: string): object {
    const { reasoning, content = '', calls } = this.said
    const leak = this.#leak
    const beside = {
      logprobs: { content: [{ token: leak, logprob: 0 }] },
      finish_reason: this.#finishReason,
      token_ids: [1],
      leak,
    }
    const message = {
      role: 'assistant',
      content,
      ...(reasoning !== undefined && { reasoning_content: reasoning }),
      ...(calls !== undefined && { tool_calls: calls.map((args, index) => callOf(args, index)) }),
      annotations: [{ url: leak }],
    }
    const choice = path.endsWith('/chat/completions') ? { message } : { text: content }
    return {
      id: 'x',
      object: 'chat.completion',
      model: 'm',
      prompt_logprobs: [leak],
      leak,
      choices: [{ index: 0, ...choice, ...beside }],
      usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12, about: leak },
    }
  }

  get #finishReason(): string {
    return this.said.calls === undefined ? 'stop' : 'tool_calls'
  }

  async #stream(path: string, res: ServerResponse, mood: EngineMood): Promise<void> {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    const leak = this.#leak
    const frame = (choice: object): string =>
      `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', leak, choices: [{ index: 0, ...choice, token_ids: [1], leak }] })}\n\n`
    const isChat = path.endsWith('/chat/completions')
    const deltas = this.#deltas().map((delta) => (isChat ? { delta } : { text: delta['content'] ?? '' }))
    const logprobs = { content: [{ token: leak, logprob: 0 }] }
    const until = mood === 'well' ? deltas.length : Math.ceil(deltas.length / 2)
    for (const delta of deltas.slice(0, until)) {
      res.write(frame({ ...delta, logprobs, finish_reason: null }))
      if (this.everyMs > 0) await pause(this.everyMs)
    }
    if (mood === 'hangs') return
    if (mood === 'breaks-off') {
      res.destroy()
      return
    }
    res.write(frame({ ...(isChat ? { delta: {} } : { text: '' }), finish_reason: this.#finishReason }))
    const usage = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12, about: leak }
    res.end(`data: ${JSON.stringify({ id: 'x', leak, choices: [], usage })}\n\ndata: [DONE]\n\n`)
  }

  #deltas(): Record<string, unknown>[] {
    const { reasoning = '', content = '', calls = [] } = this.said
    const cut = (text: string): string[] => text.match(new RegExp(`.{1,${this.pieceLength}}`, 'gs')) ?? []
    return [
      { role: 'assistant', content: '' },
      ...cut(reasoning).map((piece) => ({ reasoning_content: piece })),
      ...cut(content).map((piece) => ({ content: piece })),
      ...calls.flatMap((args, index) => [
        { tool_calls: [callOf('', index)] },
        ...cut(args).map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
      ]),
    ]
  }
}

const callOf = (args: string, index: number) => ({
  index,
  id: `call_${index}`,
  type: 'function',
  function: { name: 'send', arguments: args },
})

function json(res: ServerResponse, document: object, status = 200): void {
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(document))
}
