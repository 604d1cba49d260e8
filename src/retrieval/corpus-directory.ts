import type { Clock, Instant } from '../base/clock.ts'
import { secondsToUs } from '../base/clock.ts'
import type { CorpusFacts } from '../domain/corpus.ts'
import type { CorpusStore, StoreOptions } from '../lifecycle/retrieval-ports.ts'

/**
 * Resolves a name to a corpus and its version. Every retrieval asks, so the result is remembered for a moment: a change
 * made through this process is seen at once (`forget`), one made by another process within `FRESH_US`. An older result
 * still serves to look into a cache while the store does not answer.
 */
const FRESH_US = secondsToUs(1)

/** Corpora remembered by one process; the least recently used is dropped. */
const KNOWN_MAX = 4_096

interface Known {
  readonly facts: CorpusFacts | undefined
  readonly at: Instant
}

export class CorpusDirectory {
  readonly #clock: Clock
  readonly #store: Pick<CorpusStore, 'resolveCorpus'>
  readonly #known = new Map<string, Known>()

  constructor(clock: Clock, store: Pick<CorpusStore, 'resolveCorpus'>) {
    this.#clock = clock
    this.#store = store
  }

  /** What is known now: a `fresh` result is reliable, another one only serves while the store does not answer. */
  known(tenantId: string, corpus: string): { readonly facts: CorpusFacts | undefined; readonly isFresh: boolean } {
    const known = this.#known.get(keyOf(tenantId, corpus))
    if (known === undefined) return { facts: undefined, isFresh: false }
    return { facts: known.facts, isFresh: this.#clock.now() - known.at <= FRESH_US }
  }

  async ask(tenantId: string, corpus: string, options: StoreOptions): Promise<CorpusFacts | undefined> {
    const at = this.#clock.now()
    const facts = await this.#store.resolveCorpus(tenantId, corpus, options)
    const key = keyOf(tenantId, corpus)
    this.#known.delete(key)
    this.#known.set(key, { facts, at })
    if (this.#known.size > KNOWN_MAX) this.#known.delete(this.#known.keys().next().value as string)
    return facts
  }

  /** The corpus changed: the next lookup asks the store. The old result is kept as a last resort. */
  forget(tenantId: string, corpusId: string): void {
    for (const [key, { facts }] of this.#known) {
      if (facts?.tenantId === tenantId && facts.id === corpusId) this.#known.set(key, { facts, at: -FRESH_US })
    }
  }

  /** The corpus was deleted: nothing of it may be found again. */
  remove(tenantId: string, corpusId: string): void {
    for (const [key, { facts }] of this.#known) {
      if (facts?.tenantId === tenantId && facts.id === corpusId) this.#known.delete(key)
    }
  }

  removeTenant(tenantId: string): void {
    for (const [key, { facts }] of this.#known) if (facts?.tenantId === tenantId) this.#known.delete(key)
  }
}

const keyOf = (tenantId: string, corpus: string): string => `${tenantId}\n${corpus}`
