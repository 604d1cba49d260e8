import type { ServerResponse } from 'node:http'
import { type Asked, json, ScriptedServer } from './scripted-server.ts'

/**
 * A stub of the Kubernetes API server: objects by collection, listed and watched with label and field selectors as the
 * API's description has them (discovery.k8s.io/v1, core/v1). A watch is told of what changed since its `resourceVersion`;
 * an object that stops matching a selector is told as deleted, as the real one does.
 */
export interface KubeObject {
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> }
}

interface Watcher {
  readonly asked: Asked
  readonly collection: string
  readonly res: ServerResponse
}

interface Change {
  readonly version: number
  readonly collection: string
  readonly before: KubeObject | undefined
  readonly after: KubeObject | undefined
}

export class FakeKubeApi {
  /** Answered instead of anything else, while set. */
  refusal: number | undefined
  /** Older versions are answered with 410, as after a compaction. */
  oldestVersion = 0
  readonly #objects = new Map<string, Map<string, KubeObject>>()
  readonly #changes: Change[] = []
  readonly #watchers = new Set<Watcher>()
  #server: ScriptedServer | undefined
  #version = 100

  static async start(collections: readonly string[]): Promise<FakeKubeApi> {
    const api = new FakeKubeApi()
    const reply = (collection: string) => (asked: Asked, res: ServerResponse) => api.#answer(collection, asked, res)
    api.#server = await ScriptedServer.start(Object.fromEntries(collections.map((one) => [`GET ${one}`, reply(one)])))
    return api
  }

  get url(): string {
    return this.#server?.url ?? ''
  }

  get seen(): readonly Asked[] {
    return this.#server?.seen ?? []
  }

  get watchCount(): number {
    return this.#watchers.size
  }

  put(collection: string, object: KubeObject): void {
    const all = this.#objects.get(collection) ?? new Map<string, KubeObject>()
    this.#objects.set(collection, all)
    const after = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#version + 1) } }
    this.#change(collection, all.get(object.metadata.name), after)
    all.set(object.metadata.name, after)
  }

  delete(collection: string, name: string): void {
    const before = this.#objects.get(collection)?.get(name)
    this.#objects.get(collection)?.delete(name)
    this.#change(collection, before, undefined)
  }

  /** Ends every watch, as the server does when their time is over. */
  endWatches(): void {
    for (const { res } of this.#watchers) res.end()
  }

  /** Moves versions on without a change that anybody sees. */
  bookmark(): void {
    this.#version += 10
    for (const watcher of this.#watchers) this.#send(watcher, 'BOOKMARK', { metadata: { name: '' } })
  }

  async close(): Promise<void> {
    await this.#server?.close()
  }

  #answer(collection: string, asked: Asked, res: ServerResponse): void {
    if (this.refusal !== undefined) return void json({ message: 'no' }, this.refusal)(asked, res)
    if (asked.query.get('watch') !== '1') {
      const items = [...(this.#objects.get(collection)?.values() ?? [])].filter((object) => matches(object, asked))
      return void json({ metadata: { resourceVersion: String(this.#version) }, items })(asked, res)
    }
    const from = Number(asked.query.get('resourceVersion'))
    res.writeHead(200, { 'content-type': 'application/json' })
    res.flushHeaders()
    const watcher = { asked, collection, res }
    if (from < this.oldestVersion) {
      this.#send(watcher, 'ERROR', { metadata: { name: '' } })
      res.end()
      return
    }
    this.#watchers.add(watcher)
    res.on('close', () => this.#watchers.delete(watcher))
    for (const change of this.#changes) if (change.version > from) this.#tell(watcher, change)
  }

  #change(collection: string, before: KubeObject | undefined, after: KubeObject | undefined): void {
    const change = { version: ++this.#version, collection, before, after }
    this.#changes.push(change)
    for (const watcher of this.#watchers) this.#tell(watcher, change)
  }

  #tell(watcher: Watcher, { collection, before, after }: Change): void {
    if (collection !== watcher.collection) return
    const was = before !== undefined && matches(before, watcher.asked)
    const is = after !== undefined && matches(after, watcher.asked)
    if (is) this.#send(watcher, was ? 'MODIFIED' : 'ADDED', after)
    else if (was) this.#send(watcher, 'DELETED', before)
  }

  #send({ res }: Watcher, type: string, object: KubeObject): void {
    const metadata = { resourceVersion: String(this.#version), ...object.metadata }
    res.write(`${JSON.stringify({ type, object: { ...object, metadata } })}\n`)
  }
}

function matches({ metadata }: KubeObject, { query }: Asked): boolean {
  const pairs = (query.get('labelSelector') ?? '').split(',').filter((pair) => pair !== '')
  const isLabelled = pairs.every((pair) => metadata.labels?.[pair.split('=')[0]!] === pair.split('=')[1])
  const field = query.get('fieldSelector')
  return isLabelled && (field === null || field === `metadata.name=${metadata.name}`)
}
