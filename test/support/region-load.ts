import { CLIENT_KEY } from './region.ts'

/** Streaming clients of one gateway, each with one request at a time, and what became of every request. */
export interface Answered {
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

export class RegionLoad {
  readonly answers: Answered[] = []
  readonly #url: string
  readonly #workers: Promise<void>[]
  #isStopped = false
  #count = 0

  constructor(url: string, clients: number, tokens: number) {
    this.#url = url
    this.#workers = Array.from({ length: clients }, () => this.#work(tokens))
  }

  get completedCount(): number {
    return this.answers.filter(({ isWhole, errorCode }) => isWhole && errorCode === undefined).length
  }

  /** Nobody asks any more; resolves when the last answer has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#workers)
  }

  async #work(tokens: number): Promise<void> {
    while (!this.#isStopped) this.answers.push(await this.#ask(tokens))
  }

  async #ask(tokens: number): Promise<Answered> {
    const content = `Request ${this.#count++}: a weir holds the water level and spills what it cannot hold.`
    const body = {
      model: 'llama',
      stream: true,
      max_tokens: tokens,
      min_tokens: tokens,
      ignore_eos: true,
      messages: [{ role: 'user', content }],
    }
    const seen = { id: '', status: 0, characters: 0, errorCode: undefined as string | undefined, isWhole: false }
    try {
      const response = await fetch(`${this.#url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${CLIENT_KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(120_000),
      })
      seen.id = response.headers.get('x-request-id') ?? ''
      seen.status = response.status
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
      return { ...seen, broken: undefined }
    } catch (error) {
      return { ...seen, broken: String((error as Error).cause ?? error) }
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
