import { describe, expect, it } from 'vitest'
import { missingChains } from './missing-chains.ts'
import { checkpointText, NoteSigner, type PeerHead } from './signed-note.ts'

const SEED = Buffer.alloc(32, 7)

function note(origin: string, size: number, peers: readonly PeerHead[] = [], seed = SEED): string {
  const root = Buffer.alloc(32, size)
  return new NoteSigner(origin, seed).sign(checkpointText({ origin, size, root, chain: root, atMs: 5, peers }))
}

const key = new NoteSigner('any', SEED).publicKey
const head = (origin: string, size: number): PeerHead => ({
  origin,
  size,
  root: Buffer.alloc(32, 1).toString('base64'),
})

describe('a chain that is gone as a whole', () => {
  it('is missed by its checkpoints that were kept elsewhere', () => {
    const notes = [note('a/0', 3), note('a/0', 9), note('a/1', 2)]
    const present = [{ folder: '/audit/1', origin: 'a/1' }]
    expect(missingChains(present, notes, key)).toEqual([{ origin: 'a/0', size: 9, atMs: 5 }])
    expect(missingChains([...present, { folder: '/audit/0', origin: 'a/0' }], notes, key)).toEqual([])
  })

  it('is missed where another chain lies in its folder', () => {
    const copied = [0, 1].map((i) => ({ folder: `/audit/${i}`, origin: 'a/1' }))
    expect(missingChains(copied, [note('a/0', 3)], key)).toMatchObject([{ origin: 'a/0' }])
  })

  it('is missed by the other chains of its host, and chains of other hosts are not', () => {
    const notes = [note('a/1', 2, [head('a/0', 4), head('b/0', 8)])]
    expect(missingChains([{ folder: '/audit/1', origin: 'a/1' }], notes, key)).toMatchObject([
      { origin: 'a/0', size: 4 },
    ])
  })

  it('is not missed while it has no checkpoint of its own, nor by whoever has another key', () => {
    expect(missingChains([{ folder: '/audit/0', origin: '' }], [note('a/0', 1)], key)).toEqual([])
    const forged = note('a/0', 3, [], Buffer.alloc(32, 8))
    expect(missingChains([{ folder: '/audit/1', origin: 'a/1' }], [forged], key)).toEqual([])
  })
})
