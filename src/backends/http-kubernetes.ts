import { readFile } from 'node:fs/promises'
import type { Dispatcher } from 'undici'
import type { Clock } from '../base/clock.ts'
import { type PortChoice, readSliceEvent, readSliceList, type Slice } from '../wire/endpoint-slice.ts'
import { type Discovery, type Endpoint, type EndpointAddress, endpointUrl, isSameList } from './discovery.ts'
import { HttpUpstream, type TlsOptions } from './http-upstream.ts'

/**
 * Replicas from Kubernetes itself: the EndpointSlices of one service, listed once and then watched, so that a new pod is
 * known in milliseconds and a terminating one is drained. Needs a service account that may `list` and `watch`
 * endpointslices in its namespace. Where that is not wanted, a headless service and `dns-discovery.ts` will do.
 *
 *   list ─▶ watch from there ─▶ the server closes it (every few minutes) ─▶ watch on
 *     ▲                              │ too old, or broken
 *     └────────── after a pause ─────┘
 */
export interface KubernetesOptions extends EndpointAddress {
  /** `https://kubernetes.default.svc` inside a cluster. */
  readonly apiUrl: string
  readonly namespace: string
  readonly service: string
  readonly port: PortChoice
  /** Called before every request, because such tokens are renewed on disk. */
  readonly token: () => Promise<string>
  readonly tls?: TlsOptions
  readonly clock: Clock
  readonly onFailure?: (because: string) => void
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
/** Longest line; a line has one slice, at most a hundred endpoints. */
const LINE_BYTES_MAX = 4 << 20

export class KubernetesDiscovery implements Discovery {
  readonly #options: KubernetesOptions
  readonly #upstream: HttpUpstream

  constructor(options: KubernetesOptions) {
    this.#options = options
    const silenceMsMax = (WATCH_S + 30) * 1_000
    this.#upstream = new HttpUpstream({ url: options.apiUrl, tls: options.tls, silenceMsMax, connectionsMax: 2 })
  }

  watch(onList: (endpoints: readonly Endpoint[]) => void): () => void {
    const abort = new AbortController()
    void this.#run(new SliceBook(this.#options, onList), abort.signal)
    return () => abort.abort()
  }

  close(): Promise<void> {
    return this.#upstream.close()
  }

  async #run(book: SliceBook, signal: AbortSignal): Promise<void> {
    const { clock, onFailure } = this.#options
    let pauseUs = PAUSE_US_MIN
    let version: string | undefined
    while (!signal.aborted) {
      try {
        version ??= await this.#list(book, signal)
        version = await this.#follow(book, version, signal)
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

  async #list(book: SliceBook, signal: AbortSignal): Promise<string | undefined> {
    const response = await this.#get('', signal)
    const { version, slices } = readSliceList(await response.body.json(), this.#options.port)
    book.replace(slices)
    return version
  }

  /** Reads events until the server closes; returns the version to continue from, or undefined to list again. */
  async #follow(book: SliceBook, from: string | undefined, signal: AbortSignal): Promise<string | undefined> {
    const query = `&watch=1&allowWatchBookmarks=true&timeoutSeconds=${WATCH_S}&resourceVersion=${from ?? ''}`
    const response = await this.#get(query, signal)
    let version = from
    for await (const line of linesOf(response.body)) {
      const event = readSliceEvent(JSON.parse(line), this.#options.port)
      if (event.kind === 'lost') return undefined
      if (event.kind === 'put') book.put(event.slice)
      if (event.kind === 'deleted') book.remove(event.slice)
      version = (event.kind === 'bookmark' ? event.version : event.slice.version) ?? version
    }
    return version
  }

  async #get(query: string, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const { namespace, service, token } = this.#options
    const selector = encodeURIComponent(`kubernetes.io/service-name=${service}`)
    const path = `/apis/discovery.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/endpointslices`
    const headers = this.#upstream.headers('authorization', `Bearer ${await token()}`)
    const options = { path: `${path}?labelSelector=${selector}${query}`, method: 'GET', headers, signal }
    const response = await this.#upstream.pool.request(options as Dispatcher.RequestOptions)
    if (response.statusCode === 200) return response
    await response.body.dump()
    throw new ApiFailure(`the API server answered ${response.statusCode}`)
  }
}

class ApiFailure extends Error {
  override readonly name = 'ApiFailure'
}

/** The slices of one service; their union is the list, which is reported when it changes. */
class SliceBook {
  readonly #address: EndpointAddress
  readonly #onList: (endpoints: readonly Endpoint[]) => void
  readonly #slices = new Map<string, Slice>()
  #told: readonly Endpoint[] | undefined

  constructor(address: EndpointAddress, onList: (endpoints: readonly Endpoint[]) => void) {
    this.#address = address
    this.#onList = onList
  }

  replace(slices: readonly Slice[]): void {
    this.#slices.clear()
    for (const slice of slices) this.#slices.set(slice.name, slice)
    this.#tell()
  }

  put(slice: Slice): void {
    this.#slices.set(slice.name, slice)
    this.#tell()
  }

  remove(slice: Slice): void {
    this.#slices.delete(slice.name)
    this.#tell()
  }

  #tell(): void {
    const endpoints = new Map<string, Endpoint>()
    for (const { endpoints: list } of this.#slices.values())
      for (const { address, port, state, zone } of list) {
        const id = `${address}:${port}`
        // While an endpoint moves from one slice to another it may be in both: ready wins.
        if (endpoints.get(id)?.state === 'ready') continue
        const url = endpointUrl(this.#address, address, port)
        endpoints.set(id, { id, url, state, ...(zone === undefined ? {} : { zone }) })
      }
    const sorted = [...endpoints.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
    if (this.#told !== undefined && isSameList(this.#told, sorted)) return
    this.#told = sorted
    this.#onList(sorted)
  }
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
