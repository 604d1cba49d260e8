import { assert } from '../base/assert.ts'

/**
 * Which pieces of prompts are still in memory, and who may use them?
 *
 * As in vLLM (docs/design/prefix_caching.md) a full block has a name, the hash of its tokens chained with the name of
 * the block before it, so equal names mean equal prompts up to here. We name *units* of one or more blocks (Mooncake's
 * traces name 512 tokens at a time, and one look-up per 16 tokens would cost more than the rest of a request). A unit
 * in use has a reference count; an unused one stays, oldest use first, until its blocks are needed for something else.
 *
 *     held:  refs > 0                        idle:  oldest ⇄ … ⇄ youngest     (linked through the entries)
 *
 * Salts have name spaces of their own, so reuse across them is impossible by construction, not merely improbable
 * (law L13). A unit deep in a prompt is given back before those it hangs on, so a chain is evicted from its end.
 */

/** The end of a linked list of entries. */
const NONE = -1

export class PrefixCache {
  readonly #spaces = new Map<string, Map<number, number>>()
  #refs: Int32Array
  #older: Int32Array
  #younger: Int32Array
  readonly #hashes: number[] = []
  readonly #salts: string[] = []
  readonly #spare: number[] = []
  #entryCount = 0
  #oldest = NONE
  #youngest = NONE
  #idleUnits = 0
  #heldUnits = 0

  /** Grows as names appear: most engines of a simulated fleet see none. */
  constructor(unitsExpected = 64) {
    this.#refs = new Int32Array(unitsExpected)
    this.#older = new Int32Array(unitsExpected)
    this.#younger = new Int32Array(unitsExpected)
  }

  get idleUnits(): number {
    return this.#idleUnits
  }

  get heldUnits(): number {
    return this.#heldUnits
  }

  /** The unit of that name, if it is in memory. */
  find(salt: string, hash: number): number | undefined {
    return this.#spaces.get(salt)?.get(hash)
  }

  isIdle(unit: number): boolean {
    return this.#refs[unit] === 0
  }

  refsOf(unit: number): number {
    return this.#refs[unit] as number
  }

  hold(unit: number): void {
    if (this.#refs[unit] === 0) {
      this.#unlink(unit)
      this.#idleUnits--
      this.#heldUnits++
    }
    this.#refs[unit] = (this.#refs[unit] as number) + 1
  }

  release(unit: number): void {
    const refs = (this.#refs[unit] as number) - 1
    assert(refs >= 0, 'a unit is released as often as it was held')
    this.#refs[unit] = refs
    if (refs > 0) return
    this.#heldUnits--
    this.#idleUnits++
    this.#linkYoungest(unit)
  }

  /** Gives a name to blocks that the caller holds. From here the cache owns them and the caller holds one reference. */
  name(salt: string, hash: number): number {
    let space = this.#spaces.get(salt)
    if (space === undefined) {
      space = new Map()
      this.#spaces.set(salt, space)
    }
    const unit = this.#spare.pop() ?? this.#addEntry()
    space.set(hash, unit)
    this.#hashes[unit] = hash
    this.#salts[unit] = salt
    this.#refs[unit] = 1
    this.#heldUnits++
    return unit
  }

  /** Forgets the idle unit that was used longest ago; its blocks are the caller's. */
  evictOldest(): void {
    const unit = this.#oldest
    assert(unit !== NONE, 'only an idle unit can be evicted')
    this.#unlink(unit)
    this.#idleUnits--
    const salt = this.#salts[unit] as string
    const space = this.#spaces.get(salt)
    space?.delete(this.#hashes[unit] as number)
    if (space?.size === 0) this.#spaces.delete(salt)
    this.#spare.push(unit)
  }

  #addEntry(): number {
    const unit = this.#entryCount++
    if (unit === this.#refs.length) {
      this.#refs = grown(this.#refs)
      this.#older = grown(this.#older)
      this.#younger = grown(this.#younger)
    }
    return unit
  }

  #linkYoungest(unit: number): void {
    this.#older[unit] = this.#youngest
    this.#younger[unit] = NONE
    if (this.#youngest === NONE) this.#oldest = unit
    else this.#younger[this.#youngest] = unit
    this.#youngest = unit
  }

  #unlink(unit: number): void {
    const older = this.#older[unit] as number
    const younger = this.#younger[unit] as number
    if (older === NONE) this.#oldest = younger
    else this.#younger[older] = younger
    if (younger === NONE) this.#youngest = older
    else this.#older[younger] = older
  }
}

function grown(from: Int32Array): Int32Array {
  const to = new Int32Array(from.length * 2)
  to.set(from)
  return to
}
