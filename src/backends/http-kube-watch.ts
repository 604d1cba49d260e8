import { readFile } from 'node:fs/promises'
import type { Dispatcher } from 'undici'
import type { Clock } from '../base/clock.ts'
import { type KubeItem, type KubeReader, readKubeEvent, readKubeList } from '../wire/kubernetes-objects.ts'
import type { EndpointAddress } from './discovery.ts'
import { HttpUpstream, type TlsOptions } from './http-upstream.ts'

/**
 * Objects of the Kubernetes API, listed once and then watched, so that a change is known in milliseconds.
 *
 *   list ─▶ watch from there ─▶ the server closes it (every few minutes) ─▶ watch on
 *     ▲                              │ too old, or broken
 *     └────────── after a pause ─────┘
 */
export interface KubeAccess extends EndpointAddress {
  /** `https://kubernetes.default.svc` inside a cluster. */
  readonly apiUrl: string
  readonly namespace: string
  /** Called before every request, because such tokens are renewed on disk. */
  readonly token: () => Promise<string>
  readonly tls?: TlsOptions
  readonly clock: Clock
  readonly onFailure?: (because: string) => void
}

/** Who is told what there is. */
export interface KubeBook<T extends KubeItem> {
  replace(items: readonly T[]): void
  put(item: T): void
  remove(item: T): void
}

export interface KubeQuestion<T extends KubeItem> {
  /** `/apis/GROUP/VERSION`, or `/api/v1`. */
  readonly group: string
  readonly plural: string
  /** `labelSelector=…` or `fieldSelector=…`, encoded. */
  readonly selector: string
  readonly read: KubeReader<T>
}

/** Files in which a pod finds its own credentials. */
export const IN_CLUSTER = {
  apiUrl: 'https://kubernetes.default.svc',
  tokenPath: '/var/run/secrets/kubernetes.io/serviceaccount/token',
  caPath: '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt',
} as const

export const readTokenFile = (path: string) => async (): Promise<string> => (await readFile(path, 'utf8')).trim()

/** The server ends a watch by itself after this time; a longer silence is a broken connection. */
const WATCH_S = 240
const PAUSE_US_MIN = 1_000_000
const PAUSE_US_MAX = 30_000_000
/** Longest line; a line has one object: a slice of a hundred endpoints, or a pod. */
const LINE_BYTES_MAX = 4 << 20
/** Longest list: a thousand pods of 60 kB, which is more than pods have. */
const LIST_BYTES_MAX = 64 << 20

export class KubeApi {
  readonly #access: KubeAccess
  readonly #upstream: HttpUpstream

  constructor(access: KubeAccess) {
    this.#access = access
    const silenceMsMax = (WATCH_S + 30) * 1_000
    // Two questions at most, each with its watch and the list after it.
    this.#upstream = new HttpUpstream({ url: access.apiUrl, tls: access.tls, silenceMsMax, connectionsMax: 4 })
  }

  /** Tells the book what there is, and every change, until the returned function is called. */
  follow<T extends KubeItem>(question: KubeQuestion<T>, book: KubeBook<T>): () => void {
    const abort = new AbortController()
    void this.#run(question, book, abort.signal)
    return () => abort.abort()
  }

  close(): Promise<void> {
    return this.#upstream.close()
  }

  async #run<T extends KubeItem>(question: KubeQuestion<T>, book: KubeBook<T>, signal: AbortSignal): Promise<void> {
    const { clock, onFailure } = this.#access
    let pauseUs = PAUSE_US_MIN
    let version: string | undefined
    while (!signal.aborted) {
      try {
        version ??= await this.#list(question, book, signal)
        version = await this.#watch(question, book, { from: version, signal })
        pauseUs = PAUSE_US_MIN
      } catch (error) {
        version = undefined
        if (signal.aborted) return
        const { code, name, message } = error as Error & { code?: string }
        onFailure?.(`Kubernetes could not be asked: ${code ?? (error instanceof ApiFailure ? message : name)}`)
        await clock.sleep(pauseUs)
        pauseUs = Math.min(PAUSE_US_MAX, 2 * pauseUs)
      }
    }
  }

  async #list<T extends KubeItem>(
    question: KubeQuestion<T>,
    book: KubeBook<T>,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const response = await this.#get(question, '', signal)
    const { version, items } = readKubeList(JSON.parse(await wholeOf(response.body)), question.read)
    if (!signal.aborted) book.replace(items)
    return version
  }

  /** Reads events until the server closes; returns the version to continue from, or undefined to list again. */
  async #watch<T extends KubeItem>(
    question: KubeQuestion<T>,
    book: KubeBook<T>,
    { from, signal }: { from: string | undefined; signal: AbortSignal },
  ): Promise<string | undefined> {
    const query = `&watch=1&allowWatchBookmarks=true&timeoutSeconds=${WATCH_S}&resourceVersion=${from ?? ''}`
    const response = await this.#get(question, query, signal)
    let version = from
    for await (const line of linesOf(response.body)) {
      const event = readKubeEvent(JSON.parse(line), question.read)
      if (signal.aborted || event.kind === 'lost') return undefined
      if (event.kind === 'put') book.put(event.item)
      if (event.kind === 'deleted') book.remove(event.item)
      version = (event.kind === 'bookmark' ? event.version : event.item.version) ?? version
    }
    return version
  }

  async #get<T extends KubeItem>(
    { group, plural, selector }: KubeQuestion<T>,
    query: string,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const { namespace, token } = this.#access
    const path = `${group}/namespaces/${encodeURIComponent(namespace)}/${plural}`
    const headers = this.#upstream.headers('authorization', `Bearer ${await token()}`)
    const options = { path: `${path}?${selector}${query}`, method: 'GET', headers, signal }
    const response = await this.#upstream.pool.request(options as Dispatcher.RequestOptions)
    if (response.statusCode === 200) return response
    await response.body.dump()
    throw new ApiFailure(`the API server answered ${response.statusCode}`)
  }
}

class ApiFailure extends Error {
  override readonly name = 'ApiFailure'
}

async function wholeOf(body: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of body) {
    bytes += part.length
    if (bytes > LIST_BYTES_MAX) throw new ApiFailure('the API server sent a list that is too long')
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}

async function* linesOf(body: AsyncIterable<Buffer>): AsyncIterable<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const part of body) {
    rest += decoder.decode(part, { stream: true })
    if (rest.length > LINE_BYTES_MAX) throw new ApiFailure('the API server sent a line that is too long')
    const lines = rest.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.trim() !== '') yield line
  }
}
