import { DEMO_KEYS } from '../config/demo.ts'
import { loadConfig } from '../config/load.ts'
import { type Flag, type FlagValues, JSON_FLAG, textFlag, UsageError } from './command.ts'
import { askServer, SERVER_FLAGS, type ServerAsk, serverUrlOf } from './http-server-client.ts'

/** Flags of the commands about corpora of a running server. */
export const CORPUS_FLAGS: Readonly<Record<string, Flag>> = {
  ...SERVER_FLAGS,
  key: {
    type: 'string',
    short: 'k',
    value: 'KEY',
    meaning: 'a key of the tenant (default in the demo: the first demo key)',
  },
  json: JSON_FLAG,
}

export interface WireCorpus {
  readonly id: string
  readonly name: string
  readonly status: string
  readonly usage_bytes: number
  readonly file_counts: Readonly<Record<'in_progress' | 'completed' | 'failed' | 'total', number>>
  readonly spillway: { readonly passages: number; readonly embedded: number }
}

/** The server refused a call. */
export class CallRefused extends UsageError {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

export interface WireHit {
  readonly filename: string
  readonly score: number
  readonly content: ReadonlyArray<{ readonly text: string }>
}

/** Looks at the progress come less and less often: each counts against the tenant's requests a minute. */
const LOOK_MS_MIN = 300
const LOOK_MS_MAX = 3_000
const LOOK_GROWTH = 1.3

/** Waits for the tenant's allowance that one call may take, and the longest of them. */
const WAITS_MAX = 100
const WAIT_MS_MAX = 60_000

export class CorpusClient {
  readonly #url: string
  readonly #key: string
  #lookMs = LOOK_MS_MIN / LOOK_GROWTH

  constructor(flags: FlagValues) {
    const config = loadConfig({ path: textFlag(flags, 'config') })
    this.#url = serverUrlOf(flags, config)
    const key = textFlag(flags, 'key') ?? (config.file === undefined ? DEMO_KEYS[0]?.secret : undefined)
    if (key === undefined) throw new UsageError('--key is missing. Give a key of the tenant that owns the corpora.')
    this.#key = key
  }

  /** Waits where the tenant's allowance is used up, and says so through `onWait`. */
  async call<T>(
    method: ServerAsk['method'],
    path: string,
    body?: unknown,
    onWait: (ms: number) => void = () => {},
  ): Promise<T> {
    const ask = { url: this.#url, key: this.#key, method, path: `/v1/vector_stores${path}`, body }
    for (let waits = 0; ; waits++) {
      const { isOk, status, retryAfterMs, body: answer } = await askServer<T>(ask)
      if (isOk) return answer
      if (status !== 429 || retryAfterMs === undefined || waits >= WAITS_MAX) {
        throw new CallRefused(status, answer.error?.message ?? `the server answered ${status}`)
      }
      const waitMs = Math.min(WAIT_MS_MAX, retryAfterMs)
      onWait(waitMs)
      await sleep(waitMs)
    }
  }

  /** The wait between two looks at the progress of indexing. */
  pause(): Promise<void> {
    this.#lookMs = Math.min(LOOK_MS_MAX, this.#lookMs * LOOK_GROWTH)
    return sleep(this.#lookMs)
  }

  async has(corpus: string): Promise<boolean> {
    return (await this.list()).some(({ id, name }) => id === corpus || name === corpus)
  }

  /** All corpora of the tenant, read page by page. */
  async list(): Promise<WireCorpus[]> {
    const all: WireCorpus[] = []
    for (let after = ''; ; ) {
      const page = await this.call<{ data: WireCorpus[]; has_more: boolean }>('GET', `?limit=100&order=asc${after}`)
      all.push(...page.data)
      if (!page.has_more) return all
      after = `&after=${page.data.at(-1)?.id}`
    }
  }
}

const sleep = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms)
  })

export function corpusArgument(flags: FlagValues, command: string): string {
  const corpus = textFlag(flags, 'argument')
  if (corpus === undefined) throw new UsageError(`which corpus? Try: spillway ${command} handbook`)
  return corpus
}

export const pathOf = (corpus: string): string => `/${encodeURIComponent(corpus)}`
