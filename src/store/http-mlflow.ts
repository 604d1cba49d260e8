import { type Dispatcher, Pool } from 'undici'

/**
 * Reads the models and versions of an MLflow registry through its REST API, page by page; changes nothing there. The
 * importer decides which of them become releases.
 *
 * Failures are values, and never contain the server's words or our credential.
 */
export interface MlflowOptions {
  /** `https://mlflow.example.org`, with a path where it is served under one. */
  readonly url: string
  readonly token?: string | undefined
  readonly user?: { readonly name: string; readonly password: string } | undefined
  readonly timeoutMs?: number
}

export interface RegistryModel {
  readonly name: string
  readonly description: string
  readonly tags: Readonly<Record<string, string>>
  /** Name → version: `champion` → `3`. */
  readonly aliases: Readonly<Record<string, string>>
}

export interface RegistryVersion {
  readonly model: string
  readonly version: string
  /** Where the weights are: `s3://…`, `models:/…`. */
  readonly artifact: string
  /** Only `READY` versions can be served. */
  readonly status: string
  readonly stage: string
  readonly runId: string
  readonly aliases: readonly string[]
  readonly tags: Readonly<Record<string, string>>
  readonly createdAtMs: number
}

export type RegistryAnswer<T> =
  | { readonly kind: 'found'; readonly items: readonly T[] }
  | { readonly kind: 'failed'; readonly because: string }

const TIMEOUT_MS = 10_000
const PAGE_SIZE = 200
/** 20,000 models or versions: with more, the filter is wrong. */
const PAGES_MAX = 100

export class MlflowRegistry {
  readonly #pool: Pool
  readonly #basePath: string
  readonly #headers: readonly string[]
  readonly #timeoutMs: number

  constructor(options: MlflowOptions) {
    const url = new URL(options.url)
    this.#basePath = url.pathname.replace(/\/+$/, '')
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS
    const { token, user } = options
    const basic = user === undefined ? undefined : Buffer.from(`${user.name}:${user.password}`).toString('base64')
    const credential = token === undefined ? basic && `Basic ${basic}` : `Bearer ${token}`
    this.#headers = ['accept', 'application/json', ...(credential === undefined ? [] : ['authorization', credential])]
    this.#pool = new Pool(url.origin, { connections: 2 })
  }

  /** All registered models, or those whose name begins with a prefix. */
  async models(prefix = ''): Promise<RegistryAnswer<RegistryModel>> {
    const filter = prefix === '' ? {} : { filter: `name LIKE ${quoted(`${prefix}%`)}` }
    return this.#pages('registered-models/search', filter, 'registered_models', toModel)
  }

  /** All versions of one model, newest first as the server sorts them. */
  async versions(model: string): Promise<RegistryAnswer<RegistryVersion>> {
    return this.#pages('model-versions/search', { filter: `name=${quoted(model)}` }, 'model_versions', toVersion)
  }

  close(): Promise<void> {
    return this.#pool.destroy()
  }

  async #pages<T>(
    path: string,
    query: Readonly<Record<string, string>>,
    field: string,
    read: (item: Record<string, unknown>) => T,
  ): Promise<RegistryAnswer<T>> {
    const items: T[] = []
    let pageToken = ''
    for (let page = 0; page < PAGES_MAX; page++) {
      const asked = { ...query, max_results: String(PAGE_SIZE), ...(pageToken === '' ? {} : { page_token: pageToken }) }
      const answer = await this.#get(`${path}?${new URLSearchParams(asked).toString()}`)
      if (typeof answer === 'string') return { kind: 'failed', because: answer }
      const list = answer[field]
      if (Array.isArray(list)) items.push(...list.filter(isObject).map(read))
      pageToken = textOf(answer['next_page_token'])
      if (pageToken === '') return { kind: 'found', items }
    }
    return { kind: 'failed', because: `there are more than ${PAGES_MAX} pages` }
  }

  /** The body, or why there is none. */
  async #get(path: string): Promise<Record<string, unknown> | string> {
    try {
      const response = await this.#pool.request({
        path: `${this.#basePath}/api/2.0/mlflow/${path}`,
        method: 'GET',
        headers: [...this.#headers],
        signal: AbortSignal.timeout(this.#timeoutMs),
      } as Dispatcher.RequestOptions)
      if (response.statusCode !== 200) {
        await response.body.dump()
        return `the registry answered ${response.statusCode}`
      }
      const body: unknown = await response.body.json()
      return isObject(body) ? body : 'the registry sent something that is not an object'
    } catch (error) {
      if (error instanceof SyntaxError) return 'the registry sent something that is not JSON'
      return `the registry could not be asked: ${(error as { code?: string }).code ?? (error as Error).name}`
    }
  }
}

function toModel(item: Record<string, unknown>): RegistryModel {
  const aliases = pairs(item['aliases'], 'alias', 'version')
  return { name: textOf(item['name']), description: textOf(item['description']), tags: tagsOf(item), aliases }
}

function toVersion(item: Record<string, unknown>): RegistryVersion {
  return {
    model: textOf(item['name']),
    version: textOf(item['version']),
    artifact: textOf(item['source']),
    status: textOf(item['status']),
    stage: textOf(item['current_stage']),
    runId: textOf(item['run_id']),
    aliases: Array.isArray(item['aliases']) ? item['aliases'].map(String) : [],
    tags: tagsOf(item),
    createdAtMs: Number(item['creation_timestamp'] ?? 0),
  }
}

const tagsOf = (item: Record<string, unknown>): Record<string, string> => pairs(item['tags'], 'key', 'value')

function pairs(list: unknown, key: string, value: string): Record<string, string> {
  if (!Array.isArray(list)) return {}
  return Object.fromEntries(list.filter(isObject).map((pair) => [textOf(pair[key]), textOf(pair[value])]))
}

/** The filter has two kinds of quotes and no escapes: a name with one kind of quote is put into the other. */
const quoted = (text: string): string => (text.includes("'") ? `"${text.replaceAll('"', '')}"` : `'${text}'`)

/** Versions are numbers in some answers, and texts in others. */
const textOf = (value: unknown): string => (typeof value === 'string' || typeof value === 'number' ? String(value) : '')

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
