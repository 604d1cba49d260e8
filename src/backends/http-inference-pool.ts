import {
  type EnginePod,
  type InferencePool,
  labelSelector,
  readEnginePod,
  readInferencePool,
} from '../wire/inference-pool.ts'
import { type Discovery, type Endpoint, endpointUrl, isSameList } from './discovery.ts'
import { type KubeAccess, KubeApi, type KubeBook } from './http-kube-watch.ts'

/**
 * Replicas from an InferencePool: the pool is followed for its labels and ports, and its pods for who is there. Beside
 * EndpointSlices, for clusters whose engines have an InferencePool and perhaps no service. Needs a service account that
 * may `list` and `watch` inferencepools and pods in the pool's namespace.
 *
 * Another selector is another list of pods: what is known stays until the new list has come.
 */
export interface InferencePoolOptions extends KubeAccess {
  readonly pool: string
}

export class InferencePoolDiscovery implements Discovery {
  readonly #options: InferencePoolOptions
  readonly #api: KubeApi

  constructor(options: InferencePoolOptions) {
    this.#options = options
    this.#api = new KubeApi(options)
  }

  watch(onList: (endpoints: readonly Endpoint[]) => void): () => void {
    const selector = `fieldSelector=${encodeURIComponent(`metadata.name=${this.#options.pool}`)}`
    const group = '/apis/inference.networking.k8s.io/v1'
    const book = new PoolBook(this.#api, this.#options, onList)
    const stop = this.#api.follow({ group, plural: 'inferencepools', selector, read: readInferencePool }, book)
    return () => {
      stop()
      book.stop()
    }
  }

  close(): Promise<void> {
    return this.#api.close()
  }
}

/** The one pool; whenever its labels change, its pods are followed anew. */
class PoolBook implements KubeBook<InferencePool> {
  readonly #api: KubeApi
  readonly #options: InferencePoolOptions
  readonly #pods: PodBook
  #selector: string | undefined
  #stopPods: () => void = () => {}

  constructor(api: KubeApi, options: InferencePoolOptions, onList: (endpoints: readonly Endpoint[]) => void) {
    this.#api = api
    this.#options = options
    this.#pods = new PodBook(options, onList)
  }

  replace(pools: readonly InferencePool[]): void {
    const pool = pools.find(({ name }) => name === this.#options.pool)
    if (pool === undefined) this.#lose('is not there')
    else this.put(pool)
  }

  put(pool: InferencePool): void {
    if (pool.name !== this.#options.pool) return
    // The API takes an empty selector for "everybody": engines would be whatever runs in the namespace.
    if (labelSelector(pool.labels) === '') this.#lose('selects nobody')
    else if (!pool.isPlain) this.#lose('has engines that do not speak HTTP/1.1')
    else this.#take(pool)
  }

  #take({ ports, labels }: InferencePool): void {
    this.#pods.usePorts(ports)
    const selector = labelSelector(labels)
    if (selector === this.#selector) return
    this.stop()
    this.#selector = selector
    const question = { group: '/api/v1', plural: 'pods', selector: `labelSelector=${encodeURIComponent(selector)}` }
    this.#stopPods = this.#api.follow({ ...question, read: readEnginePod }, this.#pods)
  }

  remove(pool: InferencePool): void {
    if (pool.name === this.#options.pool) this.#lose('was deleted')
  }

  stop(): void {
    this.#stopPods()
    this.#stopPods = () => {}
    this.#selector = undefined
  }

  #lose(how: string): void {
    this.stop()
    this.#options.onFailure?.(`InferencePool ${this.#options.pool} ${how}`)
    this.#pods.replace([])
  }
}

/** The pods of the pool, each with every port; the list is reported when it changes. */
class PodBook implements KubeBook<EnginePod> {
  readonly #options: InferencePoolOptions
  readonly #onList: (endpoints: readonly Endpoint[]) => void
  readonly #pods = new Map<string, EnginePod>()
  #ports: readonly number[] = []
  #told: readonly Endpoint[] | undefined

  constructor(options: InferencePoolOptions, onList: (endpoints: readonly Endpoint[]) => void) {
    this.#options = options
    this.#onList = onList
  }

  usePorts(ports: readonly number[]): void {
    this.#ports = ports
    // Before the first list of pods there is nothing to tell.
    if (this.#told !== undefined) this.#tell()
  }

  replace(pods: readonly EnginePod[]): void {
    this.#pods.clear()
    for (const pod of pods) this.#pods.set(pod.name, pod)
    this.#tell()
  }

  put(pod: EnginePod): void {
    this.#pods.set(pod.name, pod)
    this.#tell()
  }

  remove(pod: EnginePod): void {
    this.#pods.delete(pod.name)
    this.#tell()
  }

  #tell(): void {
    const endpoints = new Map<string, Endpoint>()
    const ports = this.#ports
    for (const { address, state } of this.#pods.values())
      for (const port of address === undefined ? [] : ports) {
        const id = `${address}:${port}`
        // An address is given to a new pod while the old one's end is still being told: ready wins.
        if (endpoints.get(id)?.state === 'ready') continue
        endpoints.set(id, { id, url: endpointUrl(this.#options, address as string, port), state })
      }
    const sorted = [...endpoints.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
    if (this.#told !== undefined && isSameList(this.#told, sorted)) return
    this.#told = sorted
    this.#onList(sorted)
  }
}
