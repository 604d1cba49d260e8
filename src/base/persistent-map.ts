import { assert } from './assert.ts'
import { unitOf } from './rng.ts'

/**
 * A map from strings that is a value: a change returns another map, and the old one stays as it was. Both share
 * everything but the path to the change, so that a change costs the depth of the tree (four nodes at a million entries)
 * and not the size of the map.
 *
 * A hash array mapped trie (Phil Bagwell, "Ideal Hash Trees", 2001). A node consumes five bits of the key's hash: of its
 * 32 possible children it stores those that exist, and a bitmap that says which.
 *
 *   hash 0b…00011_00101:  root ─[5]─▶ branch ─[3]─▶ leaf
 *
 * Keys with the same 32-bit hash share a leaf, which is searched from one end to the other. Somebody who chooses keys can
 * make them collide: do not use this map for names that strangers choose without a bound on their number.
 */
export class PersistentMap<V> {
  readonly size: number
  readonly #root: TrieNode<V> | undefined

  private constructor(root: TrieNode<V> | undefined, size: number) {
    this.#root = root
    this.size = size
  }

  static empty<V>(): PersistentMap<V> {
    return new PersistentMap<V>(undefined, 0)
  }

  /** A map of many entries at once: its nodes are nobody's yet and are changed in place. Of two with one key the last counts. */
  static from<V>(entries: Iterable<readonly [string, V]>): PersistentMap<V> {
    let root: TrieNode<V> | undefined
    let size = 0
    for (const [key, value] of entries) {
      assert(value !== undefined, 'a persistent map stores no undefined')
      const leaf: TrieLeaf<V> = { kind: 'leaf', hash: mixedHash(key), key, value, next: undefined }
      const count = { added: 1 }
      root = root === undefined ? leaf : putInPlace(root, leaf, 0, count)
      size += count.added
    }
    return new PersistentMap(root, size)
  }

  get(key: string): V | undefined {
    let node = this.#root
    const hash = mixedHash(key)
    for (let rest = hash; node !== undefined; rest >>>= BITS) {
      if (node.kind === 'leaf') {
        if (node.key === key) return node.value
        node = node.next
        // The rest of the hash does not matter any more: only leaves follow.
        continue
      }
      const bit = 1 << (rest & MASK)
      node = (node.bitmap & bit) === 0 ? undefined : node.children[bitCount(node.bitmap & (bit - 1))]
    }
    return undefined
  }

  has(key: string): boolean {
    return this.get(key) !== undefined
  }

  /** The map with this value; undefined is no value. */
  with(key: string, value: V): PersistentMap<V> {
    assert(value !== undefined, 'a persistent map stores no undefined')
    const leaf: TrieLeaf<V> = { kind: 'leaf', hash: mixedHash(key), key, value, next: undefined }
    const count = { added: 1 }
    const root = this.#root === undefined ? leaf : put(this.#root, leaf, 0, count)
    return new PersistentMap(root, this.size + count.added)
  }

  without(key: string): PersistentMap<V> {
    if (this.#root === undefined || this.get(key) === undefined) return this
    return new PersistentMap(take(this.#root, key, mixedHash(key), 0), this.size - 1)
  }

  /** All entries, in an order that depends on the keys and not on when they were added. */
  *entries(): Generator<readonly [string, V]> {
    const open: TrieNode<V>[] = this.#root === undefined ? [] : [this.#root]
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      if (node.kind === 'branch') open.push(...node.children)
      else {
        yield [node.key, node.value]
        if (node.next !== undefined) open.push(node.next)
      }
    }
  }
}

type TrieNode<V> = TrieBranch<V> | TrieLeaf<V>

interface TrieBranch<V> {
  readonly kind: 'branch'
  /** Bit i is set when child i exists. Children are stored without gaps, in the order of their bits. */
  readonly bitmap: number
  readonly children: ReadonlyArray<TrieNode<V>>
}

interface TrieLeaf<V> {
  readonly kind: 'leaf'
  readonly hash: number
  readonly key: string
  readonly value: V
  /** Another key with the same hash. */
  readonly next: TrieLeaf<V> | undefined
}

const BITS = 5
const MASK = 31

/** The 32 bits behind `unitOf`, which is exact: a division by a power of two loses nothing. */
const mixedHash = (key: string): number => (unitOf(key) * 2 ** 32) >>> 0

function bitCount(bits: number): number {
  let n = bits - ((bits >>> 1) & 0x55555555)
  n = (n & 0x33333333) + ((n >>> 2) & 0x33333333)
  return Math.imul((n + (n >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}

/** Sets `count.added` to 0 when the leaf takes the place of another one. */
function put<V>(node: TrieNode<V>, leaf: TrieLeaf<V>, shift: number, count: { added: number }): TrieNode<V> {
  if (node.kind === 'leaf') {
    if (node.hash === leaf.hash) {
      const next = withoutKey(node, leaf.key)
      if (next !== node) count.added = 0
      return next === undefined ? leaf : { ...leaf, next }
    }
    // Two hashes part at the latest at bit 31, so the branches that grow here are seven at most.
    const bit = 1 << ((node.hash >>> shift) & MASK)
    return put({ kind: 'branch', bitmap: bit, children: [node] }, leaf, shift, count)
  }
  const bit = 1 << ((leaf.hash >>> shift) & MASK)
  const at = bitCount(node.bitmap & (bit - 1))
  const child = node.children[at]
  if ((node.bitmap & bit) === 0 || child === undefined) {
    return { kind: 'branch', bitmap: node.bitmap | bit, children: node.children.toSpliced(at, 0, leaf) }
  }
  const children = node.children.with(at, put(child, leaf, shift + BITS, count))
  return { kind: 'branch', bitmap: node.bitmap, children }
}

/** As `put`, for branches that no map has yet. */
function putInPlace<V>(node: TrieNode<V>, leaf: TrieLeaf<V>, shift: number, count: { added: number }): TrieNode<V> {
  if (node.kind === 'leaf') return put(node, leaf, shift, count)
  const own = node as { bitmap: number; children: TrieNode<V>[] } & typeof node
  const bit = 1 << ((leaf.hash >>> shift) & MASK)
  const at = bitCount(own.bitmap & (bit - 1))
  const child = own.children[at]
  if ((own.bitmap & bit) === 0 || child === undefined) {
    own.children.splice(at, 0, leaf)
    own.bitmap |= bit
  } else own.children[at] = putInPlace(child, leaf, shift + BITS, count)
  return own
}

function take<V>(node: TrieNode<V>, key: string, hash: number, shift: number): TrieNode<V> | undefined {
  if (node.kind === 'leaf') return withoutKey(node, key)
  const bit = 1 << ((hash >>> shift) & MASK)
  const at = bitCount(node.bitmap & (bit - 1))
  const child = node.children[at]
  if ((node.bitmap & bit) === 0 || child === undefined) return node
  const left = take(child, key, hash, shift + BITS)
  if (left !== undefined) return { ...node, children: node.children.with(at, left) }
  if (node.children.length === 1) return undefined
  return { kind: 'branch', bitmap: node.bitmap & ~bit, children: node.children.toSpliced(at, 1) }
}

/** The leaf's chain without this key; the same chain when it does not have the key. Chains are as long as the keys that collide: nearly always one. */
function withoutKey<V>(leaf: TrieLeaf<V>, key: string): TrieLeaf<V> | undefined {
  if (leaf.key === key) return leaf.next
  if (leaf.next === undefined) return leaf
  const next = withoutKey(leaf.next, key)
  return next === leaf.next ? leaf : { ...leaf, next }
}
