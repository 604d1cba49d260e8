import { type PortChoice, type Slice, sliceReader } from '../wire/endpoint-slice.ts'
import { type Discovery, type Endpoint, type EndpointAddress, endpointUrl, isSameList } from './discovery.ts'
import { type KubeAccess, KubeApi, type KubeBook } from './http-kube-watch.ts'

/**
 * Replicas from Kubernetes itself: the EndpointSlices of one service. A new pod is known in milliseconds, and a
 * terminating one is drained. Needs a service account that may `list` and `watch` endpointslices in its namespace. Where
 * that is not wanted, a headless service and `dns-discovery.ts` will do.
 */
export interface KubernetesOptions extends KubeAccess {
  readonly service: string
  readonly port: PortChoice
}

export class KubernetesDiscovery implements Discovery {
  readonly #options: KubernetesOptions
  readonly #api: KubeApi

  constructor(options: KubernetesOptions) {
    this.#options = options
    this.#api = new KubeApi(options)
  }

  watch(onList: (endpoints: readonly Endpoint[]) => void): () => void {
    const { service, port } = this.#options
    const selector = `labelSelector=${encodeURIComponent(`kubernetes.io/service-name=${service}`)}`
    const group = '/apis/discovery.k8s.io/v1'
    const question = { group, plural: 'endpointslices', selector, read: sliceReader(port) }
    return this.#api.follow(question, new SliceBook(this.#options, onList))
  }

  close(): Promise<void> {
    return this.#api.close()
  }
}

/** The slices of one service; their union is the list, which is reported when it changes. */
class SliceBook implements KubeBook<Slice> {
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
