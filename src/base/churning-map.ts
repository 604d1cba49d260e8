/**
 * A map for what comes and goes with every request. V8's maps make a new table every few dozen comings and goings, and
 * each old table points to the next (for iterators that are under way): once one has been promoted to the old
 * generation, everything that later tables held is kept alive and promoted too, until the next full collection, long
 * after it was deleted here. So now and then a fresh map takes over, to which no table points. The order stays that of
 * insertion.
 */
const DELETIONS_BEFORE_RENEWAL = 1_024

export class ChurningMap<K, V> {
  #map = new Map<K, V>()
  #deletions = 0

  get size(): number {
    return this.#map.size
  }

  get(key: K): V | undefined {
    return this.#map.get(key)
  }

  set(key: K, value: V): void {
    this.#map.set(key, value)
  }

  delete(key: K): boolean {
    if (!this.#map.delete(key)) return false
    // A much larger map is renewed when it has halved: the cost of the copy is spread over as many deletions.
    if (++this.#deletions >= Math.max(DELETIONS_BEFORE_RENEWAL, this.#map.size)) {
      this.#deletions = 0
      this.#map = new Map(this.#map)
    }
    return true
  }

  /** Do not delete during a walk: deleted entries may then still be seen. */
  keys(): MapIterator<K> {
    return this.#map.keys()
  }

  values(): MapIterator<V> {
    return this.#map.values()
  }

  entries(): MapIterator<[K, V]> {
    return this.#map.entries()
  }
}
