import type { Fence } from '../domain/leader.ts'
import type {
  HistoryAsk,
  RegistryChange,
  RegistryEntry,
  RegistryState,
  RegistryStore,
  RegistryWrite,
} from '../domain/registry.ts'

/** The registry in memory: for tests, and as the plain twin of the SQL one. */
export class MemoryRegistryStore implements RegistryStore {
  readonly #entries = new Map<string, RegistryEntry>()
  readonly #changes: RegistryChange[] = []
  #revision = 0
  readonly #isHeld: (fence: Fence) => boolean

  constructor(isHeld: (fence: Fence) => boolean = () => true) {
    this.#isHeld = isHeld
  }

  load(): Promise<RegistryState> {
    return Promise.resolve({ revision: this.#revision, entries: [...this.#entries.values()].sort(inOrder) })
  }

  revision(): Promise<number> {
    return Promise.resolve(this.#revision)
  }

  write({ expectedRevision, atMs, by, because, edits, fence }: RegistryWrite): Promise<number | 'stale' | 'deposed'> {
    if (fence !== undefined && !this.#isHeld(fence)) return Promise.resolve('deposed')
    if (expectedRevision !== this.#revision) return Promise.resolve('stale')
    this.#revision++
    for (const { kind, name, body } of edits) {
      const key = `${kind}\u0000${name}`
      const before = this.#entries.get(key)?.body
      const after = body === undefined ? undefined : structuredClone(body)
      if (after === undefined) this.#entries.delete(key)
      else this.#entries.set(key, { kind, name, body: after })
      this.#changes.push({ revision: this.#revision, atMs, by, because, kind, name, before, after })
    }
    return Promise.resolve(this.#revision)
  }

  history({ name, poolIds = [], limit }: HistoryAsk): Promise<readonly RegistryChange[]> {
    const pools = [name, ...poolIds]
    const isAsked = ({ kind, name: changed, before, after }: RegistryChange): boolean => {
      if (name === undefined || changed === name || changed.startsWith(`${name}@`)) return true
      const bodies = [before, after].filter((body) => body !== undefined)
      if (kind === 'pool') return bodies.some((body) => body['model'] === name)
      return kind === 'replica' && bodies.some((body) => pools.some((pool) => body['pool'] === pool))
    }
    return Promise.resolve(this.#changes.filter(isAsked).toReversed().slice(0, limit))
  }
}

const inOrder = (a: RegistryEntry, b: RegistryEntry): number =>
  a.kind === b.kind ? (a.name < b.name ? -1 : 1) : a.kind < b.kind ? -1 : 1
