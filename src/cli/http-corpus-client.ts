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
  readonly spillway: { readonly passages: number }
}

export interface WireHit {
  readonly filename: string
  readonly score: number
  readonly content: ReadonlyArray<{ readonly text: string }>
}

const LOOK_EVERY_MS = 300

export class CorpusClient {
  readonly #url: string
  readonly #key: string

  constructor(flags: FlagValues) {
    const config = loadConfig({ path: textFlag(flags, 'config') })
    this.#url = serverUrlOf(flags, config)
    const key = textFlag(flags, 'key') ?? (config.file === undefined ? DEMO_KEYS[0]?.secret : undefined)
    if (key === undefined) throw new UsageError('--key is missing. Give a key of the tenant that owns the corpora.')
    this.#key = key
  }

  async call<T>(method: ServerAsk['method'], path: string, body?: unknown): Promise<T> {
    const answer = await askServer<T>({
      url: this.#url,
      key: this.#key,
      method,
      path: `/v1/vector_stores${path}`,
      body,
    })
    if (!answer.isOk) throw new UsageError(answer.body.error?.message ?? `the server answered ${answer.status}`)
    return answer.body
  }

  /** The wait between two looks at the progress of indexing. */
  pause(): Promise<void> {
    return new Promise((resolve) => {
      setTimeout(resolve, LOOK_EVERY_MS)
    })
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

export function corpusArgument(flags: FlagValues, command: string): string {
  const corpus = textFlag(flags, 'argument')
  if (corpus === undefined) throw new UsageError(`which corpus? Try: spillway ${command} handbook`)
  return corpus
}

export const pathOf = (corpus: string): string => `/${encodeURIComponent(corpus)}`
