import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { pause } from './eventually.ts'
import { pathOf } from './installed.ts'
import { writeTinyGguf } from './write-gguf.ts'

/**
 * A real llama.cpp engine over HTTP, when the package `node-llama-cpp` is there: loaded weights, its own tokenizer, its
 * own cache, one sequence per answer, behind the few lines of OpenAI's API that llama.cpp's server has. Whoever asks
 * while all sequences are taken waits, as there; a prompt that does not fit gets its 400.
 */

/** What we use of the package; it is not a dependency, so its own types are not here. */
interface Llama {
  loadModel(options: { modelPath: string }): Promise<LlamaModel>
  dispose(): Promise<void>
}
interface LlamaModel {
  tokenize(text: string): number[]
  detokenize(tokens: readonly number[], special?: boolean, lastTokens?: readonly number[]): string
  createContext(options: object): Promise<LlamaContext>
}
interface LlamaContext {
  getSequence(): LlamaSequence
}
interface LlamaSequence {
  evaluate(tokens: readonly number[], options: { temperature: number }): AsyncGenerator<number, void>
  clearHistory(): Promise<void>
}
interface LlamaPackage {
  readonly getLlama: (options: object) => Promise<Llama>
}

export interface LlamaEngine {
  serve(options?: LlamaServerOptions): Promise<LlamaServer>
  close(): Promise<void>
}

export interface LlamaServerOptions {
  /** Waits this long after each token, for answers that somebody wants to interrupt. */
  readonly everyMs?: number
  /** Answers 503 to everybody, as while it loads. */
  readonly isLoading?: boolean
  /** A prompt may be as long as this. */
  readonly contextTokens?: number
}

export interface LlamaServer {
  readonly url: string
  readonly openCount: number
  close(): Promise<void>
}

const SEQUENCES = 8
/** Of each sequence. */
const CONTEXT_TOKENS = 1_536

export async function startLlama(): Promise<LlamaEngine> {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-gguf-'))
  const modelPath = join(folder, 'tiny.gguf')
  writeTinyGguf(modelPath)
  const { getLlama } = (await import(pathToFileURL(pathOf('llama.cpp')).href)) as LlamaPackage
  const llama = await getLlama({ gpu: false, build: 'never', progressLogs: false, logLevel: 'error' })
  const model = await llama.loadModel({ modelPath })
  const options = { sequences: SEQUENCES, contextSize: CONTEXT_TOKENS, threads: 1 }
  const slots = new Slots(await model.createContext(options))
  return {
    serve: (more) => serve(model, slots, more),
    async close() {
      await llama.dispose()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The engine's sequences, taken in turn. */
class Slots {
  readonly #free: LlamaSequence[] = []
  readonly #waiting: Array<(sequence: LlamaSequence) => void> = []

  constructor(context: LlamaContext) {
    for (let i = 0; i < SEQUENCES; i++) this.#free.push(context.getSequence())
  }

  take(): Promise<LlamaSequence> {
    const sequence = this.#free.pop()
    if (sequence !== undefined) return Promise.resolve(sequence)
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  async giveBack(sequence: LlamaSequence): Promise<void> {
    await sequence.clearHistory()
    const next = this.#waiting.shift()
    if (next === undefined) this.#free.push(sequence)
    else next(sequence)
  }
}

interface Asked {
  readonly messages: ReadonlyArray<{ role: string; content: string }>
  readonly stream?: boolean
  readonly n?: number
  readonly max_tokens?: number
}

async function serve(model: LlamaModel, slots: Slots, options: LlamaServerOptions = {}): Promise<LlamaServer> {
  let openCount = 0
  const server = createServer((req, res) => {
    if (req.url === '/health') {
      res.writeHead(options.isLoading ? 503 : 200).end('{"status":"ok"}')
      return
    }
    if (req.method !== 'POST') {
      res.writeHead(404).end()
      return
    }
    openCount++
    res.on('error', () => {})
    res.on('close', () => openCount--)
    void answer(model, slots, options, req, res)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    get openCount() {
      return openCount
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function answer(
  model: LlamaModel,
  slots: Slots,
  options: LlamaServerOptions,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const text = await bodyOf(req)
  if (text === undefined) return
  const asked = JSON.parse(text) as Asked
  const prompt = model.tokenize(asked.messages.map(({ role, content }) => `${role}: ${content}\n`).join(''))
  const refuse = (code: number, message: string): void =>
    void res.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { code, message } }))
  if (options.isLoading) return refuse(503, 'Loading model')
  if (prompt.length >= (options.contextTokens ?? CONTEXT_TOKENS))
    return refuse(400, 'the request exceeds the available context size')
  if (asked.stream === true) res.writeHead(200, { 'content-type': 'text/event-stream' })
  const say = async (index: number): Promise<Said> => {
    const sequence = await slots.take()
    try {
      return await generate({ model, sequence, prompt, asked, index, res, everyMs: options.everyMs ?? 0 })
    } finally {
      await slots.giveBack(sequence)
    }
  }
  const said = await Promise.all(Array.from({ length: asked.n ?? 1 }, (_, index) => say(index)))
  if (res.destroyed) return
  const outputTokens = said.reduce((sum, { tokens }) => sum + tokens, 0)
  const usage = { prompt_tokens: prompt.length, completion_tokens: outputTokens }
  if (asked.stream === true) {
    res.end(`data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`)
    return
  }
  const choices = said.map(({ content }, index) => ({ index, message: { content }, finish_reason: 'length' }))
  res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ choices, usage }))
}

/** Undefined when the client has left in the middle of it. */
async function bodyOf(req: IncomingMessage): Promise<string | undefined> {
  let text = ''
  try {
    for await (const part of req) text += String(part)
    return text
  } catch {
    return undefined
  }
}

interface Said {
  readonly content: string
  readonly tokens: number
}

interface Turn {
  readonly model: LlamaModel
  readonly sequence: LlamaSequence
  readonly prompt: readonly number[]
  readonly asked: Asked
  readonly index: number
  readonly res: ServerResponse
  readonly everyMs: number
}

async function generate({ model, sequence, prompt, asked, index, res, everyMs }: Turn): Promise<Said> {
  const tokens: number[] = []
  let content = ''
  const tokensMax = asked.max_tokens ?? 16
  // Greedy: the same question has the same answer.
  for await (const token of sequence.evaluate(prompt, { temperature: 0 })) {
    if (res.destroyed) break
    const piece = model.detokenize([token], false, tokens.length === 0 ? prompt : tokens)
    tokens.push(token)
    content += piece
    const isLast = tokens.length >= tokensMax
    if (asked.stream === true) {
      const choice = { index, delta: { content: piece }, finish_reason: isLast ? 'length' : null }
      const isTaken = res.write(`data: ${JSON.stringify({ choices: [choice] })}\n\n`)
      if (!isTaken) await new Promise((resolve) => res.once('drain', resolve).once('close', resolve))
    }
    if (isLast) break
    if (everyMs > 0) await pause(everyMs)
  }
  return { content, tokens: tokens.length }
}
