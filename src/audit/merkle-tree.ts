import { hash } from 'node:crypto'

/**
 * The Merkle tree of RFC 6962 over the audit's events: which root do these leaves have, and is this leaf among them?
 *
 * A leaf's data is the chain's hash of an event. A tree that only grows needs no more than the roots of its whole
 * subtrees, largest first (its *frontier*): one for each bit of its size. So the tree of a billion events is thirty
 * hashes, and whoever has the frontier before a segment needs nothing of the segments before.
 *
 *   7 leaves:   [0..3]  [4,5]  [6]      root = H(H[0..3], H(H[4,5], H[6]))
 */
const HASH_BYTES = 32
const LEAF = Buffer.alloc(1 + HASH_BYTES, 0)
const NODE = Buffer.alloc(1 + 2 * HASH_BYTES, 1)

/** Data of another length than a hash's is hashed too; the audit's own leaves are all hashes. */
export function leafHash(data: Uint8Array): Buffer {
  if (data.length !== HASH_BYTES) return hash('sha256', Buffer.concat([LEAF.subarray(0, 1), data]), 'buffer')
  LEAF.set(data, 1)
  return hash('sha256', LEAF, 'buffer')
}

export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  NODE.set(left, 1)
  NODE.set(right, 1 + HASH_BYTES)
  return hash('sha256', NODE, 'buffer')
}

/** The same two on hashes as strings of bytes: Node gives those in a third of the time of a buffer. */
function leafBytes(data: Uint8Array): string {
  LEAF.set(data, 1)
  return hash('sha256', LEAF, 'binary')
}

function nodeBytes(left: string, right: string): string {
  NODE.write(left, 1, 'latin1')
  NODE.write(right, 1 + HASH_BYTES, 'latin1')
  return hash('sha256', NODE, 'binary')
}

/** The root of a tree without leaves. */
export const EMPTY_ROOT = hash('sha256', '', 'buffer')

export interface FrontierState {
  readonly size: number
  /** Roots of the whole subtrees, largest first, in hexadecimal. */
  readonly hashes: readonly string[]
}

export class MerkleFrontier {
  #size: number
  /** Strings of bytes. */
  readonly #hashes: string[]

  constructor({ size, hashes }: FrontierState = { size: 0, hashes: [] }) {
    if (hashes.length !== onesOf(size) || hashes.some((each) => !/^[0-9a-f]{64}$/.test(each))) {
      throw new Error(`a tree of ${size} leaves has ${onesOf(size)} whole subtrees, not these ${hashes.length}`)
    }
    this.#size = size
    this.#hashes = hashes.map((each) => Buffer.from(each, 'hex').toString('latin1'))
  }

  get size(): number {
    return this.#size
  }

  /** Takes the data of the next leaf: a hash. */
  push(data: Uint8Array): void {
    let top = leafBytes(data)
    // A whole subtree of the same size as the new one becomes its left half.
    for (let rest = this.#size; rest % 2 === 1; rest = (rest - 1) / 2)
      top = nodeBytes(this.#hashes.pop() as string, top)
    this.#hashes.push(top)
    this.#size++
  }

  root(): Buffer {
    if (this.#size === 0) return EMPTY_ROOT
    const root = this.#hashes.reduceRight((right, left) => nodeBytes(left, right))
    return Buffer.from(root, 'latin1')
  }

  state(): FrontierState {
    return { size: this.#size, hashes: this.#hashes.map((each) => Buffer.from(each, 'latin1').toString('hex')) }
  }
}

interface Subtree {
  readonly hash: Buffer
  readonly leaves: number
  readonly hasTarget: boolean
}

/**
 * The inclusion proof of one leaf, made while the leaves pass by: no more is kept than the frontier and the proof. The
 * leaves begin where the given frontier ends, so a leaf before that cannot be proved.
 */
export class InclusionProver {
  readonly #target: number
  readonly #proof: Buffer[] = []
  #subtrees: Subtree[]
  #size: number

  constructor(target: number, { size, hashes }: FrontierState = { size: 0, hashes: [] }) {
    if (target < size) throw new Error(`leaf ${target} is before the first leaf that is kept, ${size}`)
    this.#target = target
    this.#size = size
    const sizes = bitsOf(size)
    this.#subtrees = hashes.map((each, i) => ({
      hash: Buffer.from(each, 'hex'),
      leaves: sizes[i] as number,
      hasTarget: false,
    }))
  }

  get size(): number {
    return this.#size
  }

  push(data: Uint8Array): void {
    let top: Subtree = { hash: leafHash(data), leaves: 1, hasTarget: this.#size === this.#target }
    while (this.#subtrees.at(-1)?.leaves === top.leaves) top = this.#join(this.#subtrees.pop() as Subtree, top)
    this.#subtrees.push(top)
    this.#size++
  }

  /** Hashes from the leaf's sibling up to the root's child, and the root; nothing may be pushed afterwards. */
  finish(): { readonly proof: readonly Buffer[]; readonly root: Buffer } {
    if (this.#size <= this.#target)
      throw new Error(`the tree has ${this.#size} leaves, and none of number ${this.#target}`)
    const root = this.#subtrees.reduceRight((right, left) => this.#join(left, right))
    return { proof: this.#proof, root: root.hash }
  }

  #join(left: Subtree, right: Subtree): Subtree {
    if (left.hasTarget) this.#proof.push(right.hash)
    if (right.hasTarget) this.#proof.push(left.hash)
    const hasTarget = left.hasTarget || right.hasTarget
    return { hash: nodeHash(left.hash, right.hash), leaves: left.leaves + right.leaves, hasTarget }
  }
}

/** The root that a proof leads to; undefined when the proof cannot be one of this place in a tree of this size. */
export function rootOfProof(
  leaf: { readonly index: number; readonly data: Uint8Array },
  size: number,
  proof: readonly Uint8Array[],
): Buffer | undefined {
  if (!(leaf.index >= 0 && leaf.index < size)) return undefined
  let at = leaf.index
  let last = size - 1
  let top = leafHash(leaf.data)
  for (const sibling of proof) {
    if (last === 0 || sibling.length !== HASH_BYTES) return undefined
    if (at % 2 === 1 || at === last) {
      top = nodeHash(sibling, top)
      // The last node of a level that has no sibling goes up by itself.
      while (at % 2 === 0 && at !== 0) {
        at /= 2
        last = Math.floor(last / 2)
      }
    } else {
      top = nodeHash(top, sibling)
    }
    at = Math.floor(at / 2)
    last = Math.floor(last / 2)
  }
  return last === 0 ? top : undefined
}

/** Sizes of the whole subtrees of a tree, largest first. Sizes beyond 2^31 are not of a bitwise operator's kind. */
function bitsOf(size: number): number[] {
  const sizes: number[] = []
  for (let bit = 1, rest = size; rest > 0; bit *= 2, rest = Math.floor(rest / 2)) if (rest % 2 === 1) sizes.unshift(bit)
  return sizes
}

const onesOf = (size: number): number => bitsOf(size).length
