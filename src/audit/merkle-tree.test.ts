import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EMPTY_ROOT, InclusionProver, MerkleFrontier, rootOfProof } from './merkle-tree.ts'

/** RFC 6962, section 2.1, word for word: slow, and plainly right. */
const sha = (...parts: Uint8Array[]): Buffer => createHash('sha256').update(Buffer.concat(parts)).digest()
const splitOf = (n: number): number => {
  let k = 1
  while (k * 2 < n) k *= 2
  return k
}
function naiveRoot(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 0) return sha(Buffer.alloc(0))
  if (leaves.length === 1) return sha(Buffer.from([0]), leaves[0] as Buffer)
  const k = splitOf(leaves.length)
  return sha(Buffer.from([1]), naiveRoot(leaves.slice(0, k)), naiveRoot(leaves.slice(k)))
}
function naivePath(m: number, leaves: readonly Buffer[]): Buffer[] {
  if (leaves.length <= 1) return []
  const k = splitOf(leaves.length)
  return m < k
    ? [...naivePath(m, leaves.slice(0, k)), naiveRoot(leaves.slice(k))]
    : [...naivePath(m - k, leaves.slice(k)), naiveRoot(leaves.slice(0, k))]
}

const leavesOf = (count: number): Buffer[] => Array.from({ length: count }, (_, i) => sha(Buffer.from(`event ${i}`)))
const treeOf = (leaves: readonly Buffer[]): MerkleFrontier => {
  const tree = new MerkleFrontier()
  for (const leaf of leaves) tree.push(leaf)
  return tree
}
const hex = (hashes: readonly Uint8Array[]): string[] => hashes.map((each) => Buffer.from(each).toString('hex'))

describe('the tree of RFC 6962', () => {
  it('has the roots of the naive one at every size, also when it goes on from a kept frontier', () => {
    const leaves = leavesOf(130)
    expect(new MerkleFrontier().root()).toEqual(EMPTY_ROOT)
    const tree = new MerkleFrontier()
    for (let size = 0; size <= leaves.length; size++) {
      expect(tree.root().equals(naiveRoot(leaves.slice(0, size)))).toBe(true)
      const again = new MerkleFrontier(JSON.parse(JSON.stringify(tree.state())))
      expect(again.root().equals(tree.root())).toBe(true)
      if (size < leaves.length) tree.push(leaves[size] as Buffer)
    }
  })

  it('proves every leaf of every tree as the naive one does, with log n hashes', () => {
    const leaves = leavesOf(40)
    for (let size = 1; size <= leaves.length; size++) {
      for (let m = 0; m < size; m++) {
        const prover = new InclusionProver(m)
        for (const leaf of leaves.slice(0, size)) prover.push(leaf)
        const { proof, root } = prover.finish()
        expect(hex(proof)).toEqual(hex(naivePath(m, leaves.slice(0, size))))
        expect(proof.length).toBeLessThanOrEqual(Math.ceil(Math.log2(size)))
        expect(rootOfProof({ index: m, data: leaves[m] as Buffer }, size, proof)?.equals(root)).toBe(true)
      }
    }
  })

  it('proves leaves behind a frontier whose own leaves are gone', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 400 }), fc.nat(399), fc.nat(399), (size, a, b) => {
        const m = a % size
        const kept = Math.min(b, m)
        const leaves = leavesOf(size)
        const prover = new InclusionProver(m, treeOf(leaves.slice(0, kept)).state())
        for (const leaf of leaves.slice(kept)) prover.push(leaf)
        const { proof, root } = prover.finish()
        expect(root.equals(treeOf(leaves).root())).toBe(true)
        expect(rootOfProof({ index: m, data: leaves[m] as Buffer }, size, proof)?.equals(root)).toBe(true)
      }),
      { numRuns: 60 },
    )
  })

  it('takes no other leaf, place, size or proof for the true one', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 200 }), fc.nat(199), fc.nat(199), fc.nat(7), (size, a, b, flip) => {
        const m = a % size
        const leaves = leavesOf(size)
        const prover = new InclusionProver(m)
        for (const leaf of leaves) prover.push(leaf)
        const { proof, root } = prover.finish()
        const data = leaves[m] as Buffer
        const isRoot = (found: Buffer | undefined): boolean => found?.equals(root) === true
        const other = b % size
        if (other !== m) expect(isRoot(rootOfProof({ index: other, data }, size, proof))).toBe(false)
        if (other !== m)
          expect(isRoot(rootOfProof({ index: m, data: leaves[other] as Buffer }, size, proof))).toBe(false)
        expect(isRoot(rootOfProof({ index: m, data }, size, proof.slice(1)))).toBe(false)
        expect(isRoot(rootOfProof({ index: m, data }, size, [...proof, root]))).toBe(false)
        const bent = proof.map((each, i) => (i === b % proof.length ? Buffer.from(each) : each))
        const target = bent[b % proof.length] as Buffer
        target[0] = (target[0] as number) ^ (1 << flip)
        expect(isRoot(rootOfProof({ index: m, data }, size, bent))).toBe(false)
        expect(rootOfProof({ index: size, data }, size, proof)).toBeUndefined()
      }),
      { numRuns: 60 },
    )
  })

  it('refuses a frontier that is none', () => {
    expect(() => new MerkleFrontier({ size: 3, hashes: ['00'] })).toThrow('3 leaves')
    expect(() => new InclusionProver(1, treeOf(leavesOf(2)).state())).toThrow('before the first')
  })
})
