import type { KeptAnswer } from '../../lifecycle/ports.ts'
import {
  type AnswerCandidate,
  type AnswerCandidates,
  type AnswerStore,
  type NewAnswer,
  SHELF_MAX,
  type Shelf,
} from './answer-store.ts'

/**
 * Answers in this process's memory. When there are too many, or they take too much memory, the tenant with the most
 * gives up its oldest, so that a tenant with many questions does not push out the answers of others.
 */
export interface MemoryAnswerOptions {
  readonly entriesMax: number
  readonly bytesMax: number
}

/** Some megabytes of vectors and as much text. */
const DEFAULTS: MemoryAnswerOptions = { entriesMax: 4_096, bytesMax: 32 * 1024 * 1024 }

interface Entry extends AnswerCandidate {
  readonly answer: KeptAnswer
  readonly bytes: number
  readonly shelf: string
}

interface Tenant {
  bytes: number
  /** Entries by id, oldest first: a Map keeps the order of insertion. */
  readonly entries: Map<string, Entry>
  readonly shelves: Map<string, Entry[]>
}

export class MemoryAnswerStore implements AnswerStore {
  readonly #options: MemoryAnswerOptions
  readonly #tenants = new Map<string, Tenant>()
  #lastId = 0
  #count = 0
  #bytes = 0

  constructor(options: MemoryAnswerOptions = DEFAULTS) {
    this.#options = options
  }

  get size(): number {
    return this.#count
  }

  get bytes(): number {
    return this.#bytes
  }

  candidates({ tenantId, name }: Shelf): AnswerCandidates {
    return this.#tenants.get(tenantId)?.shelves.get(name) ?? []
  }

  read({ tenantId, name }: Shelf, id: string): KeptAnswer | undefined {
    const tenant = this.#tenants.get(tenantId)
    const entry = tenant?.entries.get(id)
    if (tenant === undefined || entry === undefined || entry.shelf !== name) return undefined
    // A used entry becomes the newest.
    tenant.entries.delete(id)
    tenant.entries.set(id, entry)
    return entry.answer
  }

  add({ tenantId, name }: Shelf, { vector, words, answer, expiresAt }: NewAnswer): void {
    const bytes = ENTRY_BYTES + vector.byteLength + 2 * (words.length + (answer.content?.length ?? 0))
    if (bytes > this.#options.bytesMax) return
    const tenant = this.#tenants.get(tenantId) ?? { bytes: 0, entries: new Map(), shelves: new Map() }
    this.#tenants.set(tenantId, tenant)
    const entry: Entry = { id: String(++this.#lastId), vector, words, answer, expiresAt, bytes, shelf: name }
    const shelf = [...(tenant.shelves.get(name) ?? []), entry]
    tenant.shelves.set(name, shelf)
    tenant.entries.set(entry.id, entry)
    tenant.bytes += bytes
    if (shelf.length > SHELF_MAX) this.#remove(tenantId, shelf[0] as Entry)
    this.#count++
    this.#bytes += bytes
    while (this.#count > this.#options.entriesMax || this.#bytes > this.#options.bytesMax) this.#evict()
  }

  forgetTenant(tenantId: string): Promise<void> {
    const tenant = this.#tenants.get(tenantId)
    this.#tenants.delete(tenantId)
    this.#count -= tenant?.entries.size ?? 0
    this.#bytes -= tenant?.bytes ?? 0
    return Promise.resolve()
  }

  close(): Promise<void> {
    this.#tenants.clear()
    this.#count = 0
    this.#bytes = 0
    return Promise.resolve()
  }

  #evict(): void {
    let largest: [string, Tenant] | undefined
    for (const one of this.#tenants) if (largest === undefined || one[1].bytes > largest[1].bytes) largest = one
    const oldest = largest?.[1].entries.values().next().value
    if (largest !== undefined && oldest !== undefined) this.#remove(largest[0], oldest)
  }

  #remove(tenantId: string, entry: Entry): void {
    const tenant = this.#tenants.get(tenantId)
    if (tenant === undefined || !tenant.entries.delete(entry.id)) return
    const left = (tenant.shelves.get(entry.shelf) ?? []).filter((one) => one !== entry)
    if (left.length > 0) tenant.shelves.set(entry.shelf, left)
    else tenant.shelves.delete(entry.shelf)
    if (tenant.entries.size === 0) this.#tenants.delete(tenantId)
    tenant.bytes -= entry.bytes
    this.#bytes -= entry.bytes
    this.#count--
  }
}

/** Estimated bytes of objects, maps and numbers around one answer; it bounds the memory roughly. */
const ENTRY_BYTES = 600
