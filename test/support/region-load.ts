import { pause } from './eventually.ts'
import { CLIENT_KEY } from './region.ts'

/** Streaming clients of one region, each with one request at a time, and what became of every request. */
export interface LoadOptions {
  /** Gateways, which each client asks in turn, as a balancer without health checks would have it. */
  readonly urls: readonly string[]
  readonly clients: number
  readonly tokens: number
  readonly key?: string
  /** Begins every prompt: whose request it is. */
  readonly name?: string
}

export interface Answered {
  /** The gateway that was asked. */
  readonly url: string
  readonly startedAt: number
  readonly endedAt: number
  readonly retryAfter: string | null
  /** The answer's `x-should-retry`. */
  readonly shouldRetry: string | null
  readonly id: string
  readonly status: number
  /** Characters of the answer that came before its end. */
  readonly characters: number
  /** The code of an error frame, or of an error body. */
  readonly errorCode: string | undefined
  /** It ended with `data: [DONE]`. */
  readonly isWhole: boolean
  /** The connection broke. */
  readonly broken: string | undefined
}

const NOT_SERVED_MS = 50

export class RegionLoad {
  readonly answers: Answered[] = []
  readonly #options: LoadOptions
  readonly #workers: Promise<void>[]
  #isStopped = false
  #count = 0

  constructor(options: LoadOptions) {
    this.#options = options
    this.#workers = Array.from({ length: options.clients }, () => this.#work())
  }

  get completedCount(): number {
    return this.answers.filter(({ isWhole, errorCode }) => isWhole && errorCode === undefined).length
  }

  /** Nobody asks any more; resolves when the last answer has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#workers)
  }

  async #work(): Promise<void> {
    while (!this.#isStopped) {
      const answer = await this.#ask()
      this.answers.push(answer)
      // A client that was not served does not ask again at once.
      if (answer.status !== 200 || answer.broken !== undefined) await pause(NOT_SERVED_MS)
    }
  }

  async #ask(): Promise<Answered> {
    const { urls, tokens, key = CLIENT_KEY, name = 'Request' } = this.#options
    const nth = this.#count++
    const url = urls[nth % urls.length] as string
    const startedAt = performance.now()
    const content = `${name} ${nth}: a weir holds the water level and spills what it cannot hold.`
    const body = {
      model: 'llama',
      stream: true,
      max_tokens: tokens,
      min_tokens: tokens,
      ignore_eos: true,
      messages: [{ role: 'user', content }],
    }
    const seen = {
      id: '',
      status: 0,
      characters: 0,
      errorCode: undefined as string | undefined,
      isWhole: false,
      retryAfter: null as string | null,
      shouldRetry: null as string | null,
    }
    const over = (broken?: string): Answered => ({ ...seen, url, startedAt, endedAt: performance.now(), broken })
    try {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(120_000),
      })
      seen.id = response.headers.get('x-request-id') ?? ''
      seen.status = response.status
      seen.retryAfter = response.headers.get('retry-after')
      seen.shouldRetry = response.headers.get('x-should-retry')
      let text = ''
      const decoder = new TextDecoder()
      for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
        text += decoder.decode(part, { stream: true })
        for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
          read(text.slice(0, end), seen)
          text = text.slice(end + 2)
        }
      }
      if (response.status !== 200) seen.errorCode = codeIn(text) ?? `status ${response.status}`
      return over()
    } catch (error) {
      return over(String((error as Error).cause ?? error))
    }
  }
}

function read(frame: string, seen: { characters: number; errorCode: string | undefined; isWhole: boolean }): void {
  if (!frame.startsWith('data: ')) return
  const data = frame.slice('data: '.length)
  if (data === '[DONE]') {
    seen.isWhole = true
    return
  }
  const json = JSON.parse(data) as {
    error?: { code?: string }
    choices?: Array<{ delta?: { content?: string | null } }>
  }
  if (json.error !== undefined) seen.errorCode = json.error.code ?? 'error'
  seen.characters += json.choices?.[0]?.delta?.content?.length ?? 0
}

function codeIn(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { error?: { code?: string } }).error?.code
  } catch {
    return undefined
  }
}
