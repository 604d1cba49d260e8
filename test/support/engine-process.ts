import { type ChildProcess, spawn } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { parseArgsOptions } from '../../src/cli/command.ts'
import { engineCommand, engineServerOptions } from '../../src/cli/engine.ts'
import { buildConfig } from '../../src/config/load.ts'
import { serveEngine } from '../../src/engine-server/engine-server.ts'
import { sampleValue } from './parse-exposition.ts'

const BIN = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'bin', 'spillway.mjs')

/** `spillway …` as a user starts it, on a free port, with what it said and how it ended. */
export class SpillwayProcess {
  readonly url: string
  readonly child: ChildProcess
  readonly #ended: Promise<number>
  readonly #said: () => string

  private constructor(url: string, child: ChildProcess, ended: Promise<number>, said: () => string) {
    this.url = url
    this.child = child
    this.#ended = ended
    this.#said = said
  }

  static start(...words: string[]): Promise<SpillwayProcess> {
    return SpillwayProcess.startWith({}, ...words)
  }

  /** The same with settings from the environment. */
  static async startWith(settings: Readonly<Record<string, string>>, ...words: string[]): Promise<SpillwayProcess> {
    const env = { ...process.env, ...settings }
    const child = spawn(process.execPath, [BIN, ...words, '--port', '0'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    const ended = new Promise<number>((resolve) =>
      child.on('close', (code, signal) => resolve(code ?? (signal ? 128 : -1))),
    )
    const url = await new Promise<string>((resolve, reject) => {
      const listen = (chunk: Buffer): void => {
        said += chunk.toString()
        const found = /listening on (http:\/\/\S+)/.exec(said)?.[1]
        if (found !== undefined) resolve(found)
      }
      child.stdout.on('data', listen)
      child.stderr.on('data', listen)
      void ended.then((code) => reject(new Error(`spillway ${words.join(' ')} ended with ${code}: ${said}`)))
    })
    return new SpillwayProcess(url, child, ended, () => said)
  }

  /** What it has written so far. */
  get said(): string {
    return this.#said()
  }

  /** The exit code, once it has ended. */
  get ended(): Promise<number> {
    return this.#ended
  }

  stop(signal: NodeJS.Signals = 'SIGKILL'): Promise<number> {
    this.child.kill(signal)
    return this.#ended
  }
}

/** The same engine inside this process, for what does not need one of its own: it starts in no time. */
export class InsideEngine {
  readonly url: string
  readonly said: string
  readonly stop: () => Promise<void>

  private constructor(url: string, said: string, stop: () => Promise<void>) {
    this.url = url
    this.said = said
    this.stop = stop
  }

  static async start(...words: string[]): Promise<InsideEngine> {
    const { values } = parseArgs({ args: words, options: parseArgsOptions(engineCommand) })
    const config = buildConfig(undefined, {}, { 'engine.listenPort': '0' })
    const options = engineServerOptions(values as Record<string, string>)
    let said = ''
    const hear = (text: string): void => {
      said += text
    }
    const running = await serveEngine(config, { out: hear, err: hear }, options)
    return new InsideEngine(running.address, said, () => running.close())
  }
}

export const postJson = (url: string, body: unknown, init: RequestInit = {}): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...init,
    headers: { 'content-type': 'application/json', ...(init.headers as Record<string, string> | undefined) },
  })

export async function metricOf(
  url: string,
  name: string,
  labels: Record<string, string> = {},
): Promise<number | undefined> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const model = /model_name="([^"]*)"/.exec(text)?.[1] ?? ''
  return sampleValue(text, `vllm:${name}`, { model_name: model, engine: '0', ...labels })
}

/** The frames of a stream as they come, each with the instant of its arrival in milliseconds. */
export async function* framesOf(response: Response): AsyncGenerator<{ at: number; data: string }> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(part, { stream: true })
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      yield { at: performance.now(), data: text.slice('data: '.length, end) }
      text = text.slice(end + 2)
    }
  }
}
