/**
 * Random numbers from a seed, the same on every machine.
 *
 * One run has one seed and many named streams (`arrivals`, `lengths`, `routing`, `rollout`, `faults` …): a new draw
 * in one subsystem must not shift the numbers of another. A stream's state is the run's seed mixed with the hash of
 * its name. The generator is sfc32 (Chris Doty-Humphrey's small fast counting generator, from PractRand): four 32-bit
 * words, integer arithmetic only, a period of at least 2^32.
 */
export class Rng {
  #a: number
  #b: number
  #c: number
  #counter: number

  private constructor(a: number, b: number, c: number) {
    this.#a = a
    this.#b = b
    this.#c = c
    this.#counter = 1
    // The first outputs still show the seed; twelve rounds mix it, as the generator's author advises.
    for (let i = 0; i < 12; i++) this.nextUint32()
  }

  static stream(seed: number, name: string): Rng {
    const hash = fnv1a32(name)
    return new Rng(Math.trunc(seed / 2 ** 32) ^ hash, seed | 0, Math.imul(hash, 0x9e3779b1))
  }

  nextUint32(): number {
    const out = (this.#a + this.#b + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + out) | 0
    return out >>> 0
  }

  /** Uniform in [0, 1). */
  next(): number {
    return this.nextUint32() / 2 ** 32
  }

  /** A whole number, uniform in [0, bound). */
  below(bound: number): number {
    return Math.floor(this.next() * bound)
  }
}

/** A number in [0, 1) that belongs to a name, the same everywhere: names that differ in their last letter are far apart. */
export function unitOf(name: string): number {
  // MurmurHash3's finalizer (Austin Appleby): FNV alone hardly moves its high bits for a last letter.
  let hash = fnv1a32(name)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}

/** FNV-1a over UTF-16 units: short, and good enough to tell names apart. Not for hostile input. */
export function fnv1a32(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}
