import { type ArchivedAnswer, type ArchivedKind, archivedBytes } from '../domain/archive.ts'
import type {
  AnswerChain,
  ArchiveAsk,
  ArchivePage,
  ArchiveStore,
  ArchiveTenant,
  ArchiveTotal,
  ChainAsk,
  MetadataChange,
} from '../lifecycle/archive-ports.ts'

/** The archive in memory: for tests, and as the plain twin of the SQL store. */
export class MemoryArchiveStore implements ArchiveStore {
  readonly #tenants = new Map<string, Map<string, ArchivedAnswer>>()

  put(tenantId: string, answers: readonly ArchivedAnswer[]): Promise<ArchiveTotal> {
    const known = this.#tenants.get(tenantId) ?? new Map<string, ArchivedAnswer>()
    this.#tenants.set(tenantId, known)
    for (const answer of answers) known.set(answer.id, answer)
    return Promise.resolve(totalOf(known.values()))
  }

  find(tenantId: string, kind: ArchivedKind, id: string, nowMs: number): Promise<ArchivedAnswer | undefined> {
    return Promise.resolve(this.#find(tenantId, kind, id, nowMs))
  }

  chain({ tenantId, kind, id, nowMs, answersMax, bytesMax }: ChainAsk): Promise<AnswerChain | undefined> {
    const answers: ArchivedAnswer[] = []
    let bytes = 0
    let next = this.#find(tenantId, kind, id, nowMs)
    while (next !== undefined && answers.length < answersMax) {
      bytes += archivedBytes(next)
      if (bytes > bytesMax && answers.length > 0) break
      answers.unshift(next)
      next = next.previousId === undefined ? undefined : this.#find(tenantId, kind, next.previousId, nowMs)
    }
    const [oldest] = answers
    if (oldest === undefined) return Promise.resolve(undefined)
    const state = oldest.previousId === undefined ? 'whole' : next === undefined ? 'broken' : 'too-long'
    return Promise.resolve({ answers, state })
  }

  list(
    tenantId: string,
    ask: ArchiveAsk & { readonly nowMs: number; readonly bytesMax: number },
  ): Promise<ArchivePage> {
    const { kind, after, nowMs, model, metadata = {}, limit, order, bytesMax } = ask
    const sorted = this.#sorted(tenantId)
    if (order === 'desc') sorted.reverse()
    const start = after === undefined ? 0 : sorted.findIndex((one) => one.id === after && one.kind === kind) + 1
    if (after !== undefined && start === 0) return Promise.resolve('no-such-after')
    const pairs = Object.entries(metadata)
    const found = sorted.slice(start).filter((one) => {
      if (one.kind !== kind || one.expiresAtMs <= nowMs || (model !== undefined && one.model !== model)) return false
      return pairs.every(([name, value]) => one.metadata[name] === value)
    })
    let bytes = 0
    const fitting = found.slice(0, limit).filter((one, n) => {
      bytes += archivedBytes(one)
      return n === 0 || bytes <= bytesMax
    })
    const items = fitting.map(({ input: _input, ...listed }) => listed)
    return Promise.resolve({ items, hasMore: found.length > items.length })
  }

  changeMetadata({ tenantId, kind, id, metadata, nowMs }: MetadataChange): Promise<ArchivedAnswer | undefined> {
    const known = this.#find(tenantId, kind, id, nowMs)
    if (known === undefined) return Promise.resolve(undefined)
    const changed = { ...known, metadata }
    this.#tenants.get(tenantId)?.set(id, changed)
    return Promise.resolve(changed)
  }

  remove(tenantId: string, kind: ArchivedKind, id: string, nowMs: number): Promise<boolean> {
    const isThere = this.#find(tenantId, kind, id, nowMs) !== undefined
    const answers = this.#tenants.get(tenantId)
    if (answers?.get(id)?.kind === kind) answers.delete(id)
    return Promise.resolve(isThere)
  }

  makeRoom(tenantId: string, bound: ArchiveTotal, limit: number): Promise<number> {
    const known = this.#tenants.get(tenantId) ?? new Map<string, ArchivedAnswer>()
    const isOver = (): boolean => {
      const { answers, bytes } = totalOf(known.values())
      return answers > bound.answers || bytes > bound.bytes
    }
    let erased = 0
    for (const { id } of this.#sorted(tenantId).slice(0, limit)) {
      if (!isOver()) break
      known.delete(id)
      erased++
    }
    return Promise.resolve(erased)
  }

  sweep(nowMs: number, limit: number): Promise<number> {
    const ended = [...this.#tenants.values()].flatMap((answers) =>
      [...answers.values()].filter(({ expiresAtMs }) => expiresAtMs <= nowMs),
    )
    return Promise.resolve(this.#erase(ended.slice(0, limit)))
  }

  eraseTenant(tenantId: string, beforeMs: number, limit: number): Promise<number> {
    const old = this.#sorted(tenantId).filter(({ createdAtMs }) => createdAtMs < beforeMs)
    return Promise.resolve(this.#erase(old.slice(0, limit)))
  }

  tenants(after: string, limit: number): Promise<readonly ArchiveTenant[]> {
    const some = [...this.#tenants]
      .filter(([tenantId, answers]) => tenantId > after && answers.size > 0)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .slice(0, limit)
    return Promise.resolve(
      some.map(([tenantId, answers]) => ({
        tenantId,
        ...totalOf(answers.values()),
        lastWrittenAtMs: Math.max(...[...answers.values()].map(({ createdAtMs }) => createdAtMs)),
      })),
    )
  }

  #find(tenantId: string, kind: ArchivedKind, id: string, nowMs: number): ArchivedAnswer | undefined {
    const answer = this.#tenants.get(tenantId)?.get(id)
    return answer?.kind === kind && answer.expiresAtMs > nowMs ? answer : undefined
  }

  #sorted(tenantId: string): ArchivedAnswer[] {
    return [...(this.#tenants.get(tenantId)?.values() ?? [])].sort(
      (a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1),
    )
  }

  #erase(answers: readonly ArchivedAnswer[]): number {
    for (const { tenantId, id } of answers) this.#tenants.get(tenantId)?.delete(id)
    return answers.length
  }
}

function totalOf(answers: Iterable<ArchivedAnswer>): ArchiveTotal {
  let [count, bytes] = [0, 0]
  for (const answer of answers) {
    count++
    bytes += archivedBytes(answer)
  }
  return { answers: count, bytes }
}
