import { type CachedPassages, type CacheKey, keyPrefix, keyText, type PassageCache } from './passage-cache.ts'

/**
 * Passages in this process's memory: the least recently used entry is dropped when there are too many or they take too
 * much memory. Sizes are estimates (two bytes a character and a constant).
 */
export interface MemoryCacheOptions {
  readonly entriesMax: number
  readonly bytesMax: number
}

/** Half a minute of a hundred different questions a second, or a few hundred long questions. */
export const MEMORY_CACHE_DEFAULTS: MemoryCacheOptions = { entriesMax: 4_096, bytesMax: 32 * 1024 * 1024 }

const PASSAGE_BYTES = 400

export class MemoryPassageCache implements PassageCache {
  readonly #options: MemoryCacheOptions
  readonly #entries = new Map<string, { readonly entry: CachedPassages; readonly bytes: number }>()
  #bytes = 0

  constructor(options: MemoryCacheOptions = MEMORY_CACHE_DEFAULTS) {
    this.#options = options
  }

  get bytes(): number {
    return this.#bytes
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: CacheKey): CachedPassages | undefined {
    const text = keyText(key)
    const found = this.#entries.get(text)
    if (found === undefined) return undefined
    this.#entries.delete(text)
    this.#entries.set(text, found)
    return found.entry
  }

  set(key: CacheKey, entry: CachedPassages): void {
    const text = keyText(key)
    this.#remove(text)
    const bytes = sizeOf(text, entry)
    if (bytes > this.#options.bytesMax) return
    this.#entries.set(text, { entry, bytes })
    this.#bytes += bytes
    while (this.#bytes > this.#options.bytesMax || this.#entries.size > this.#options.entriesMax) {
      this.#remove(this.#entries.keys().next().value as string)
    }
  }

  forgetTenant(tenantId: string): Promise<void> {
    const mine = keyPrefix(tenantId)
    for (const text of this.#entries.keys()) if (text.startsWith(mine)) this.#remove(text)
    return Promise.resolve()
  }

  close(): Promise<void> {
    this.#entries.clear()
    this.#bytes = 0
    return Promise.resolve()
  }

  #remove(text: string): void {
    const found = this.#entries.get(text)
    if (found === undefined) return
    this.#entries.delete(text)
    this.#bytes -= found.bytes
  }
}

function sizeOf(key: string, { passages }: CachedPassages): number {
  let bytes = PASSAGE_BYTES + 2 * key.length
  for (const { text, source } of passages) bytes += PASSAGE_BYTES + 2 * (text.length + source.length)
  return bytes
}
