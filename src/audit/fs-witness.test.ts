import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FsWitness } from './fs-witness.ts'
import { checkpointText, NoteSigner } from './signed-note.ts'

let path = ''
let nowMs = 1_790_000_000_000
let conflicts: string[] = []
beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), 'witness-'))
  conflicts = []
  nowMs = 1_790_000_000_000
})
afterEach(() => rmSync(path, { recursive: true }))

const make = (): FsWitness =>
  new FsWitness({ path, nowMs: () => nowMs, onConflict: (origin, because) => conflicts.push(`${origin}: ${because}`) })

const noteOf = (size: number, more: { origin?: string; fill?: number; atMs?: number } = {}): string => {
  const { origin = 'us.example/0', fill = size, atMs = nowMs } = more
  const root = Buffer.alloc(32, fill)
  return new NoteSigner(origin, Buffer.alloc(32, 3)).sign(
    checkpointText({ origin, size, root, chain: root, atMs, peers: [] }),
  )
}

const sizes = (witness: FsWitness): number[] => witness.heads().map(({ size }) => size)
const kept = (origin = 'us.example/0'): string =>
  readFileSync(join(path, 'witnessed', encodeURIComponent(origin), '2026-09.checkpoints'), 'utf8')

describe('a witness of other gateways’ audits', () => {
  it('remembers the newest head of each, also over a restart, and keeps a checkpoint a minute', async () => {
    const witness = make()
    await witness.take([noteOf(5), noteOf(9, { origin: 'asia.example/0' })])
    nowMs += 10_000
    await witness.take([noteOf(6)])
    nowMs += 60_000
    await witness.take([noteOf(7)])
    expect(sizes(witness)).toEqual([7, 9])
    expect(kept().match(/^us\.example\/0$/gm)).toHaveLength(2)
    const again = make()
    await again.start()
    expect(new Set(sizes(again))).toEqual(new Set([7, 9]))
    expect(conflicts).toEqual([])
  })

  it('tells of a chain that goes back or has two roots, and keeps the evidence', async () => {
    const witness = make()
    await witness.take([noteOf(5)])
    await witness.take([noteOf(5, { fill: 99 })])
    nowMs += 1_000
    await witness.take([noteOf(4)])
    expect(conflicts).toEqual([
      'us.example/0: it has two roots of 5 events',
      'us.example/0: it had 5 events and says 4 now',
    ])
    expect(kept().match(/^us\.example\/0$/gm)).toHaveLength(3)
    expect(sizes(witness)).toEqual([5])
  })

  it('takes an older checkpoint that comes late for nothing', async () => {
    const witness = make()
    await witness.take([noteOf(5), noteOf(4, { atMs: nowMs - 10_000 }), noteOf(5)])
    expect(conflicts).toEqual([])
    expect(kept().match(/^us\.example\/0$/gm)).toHaveLength(1)
  })

  it('keeps neither rubbish nor names that lead elsewhere, and no more chains than its bound', async () => {
    const witness = make()
    const elsewhere = ['..', '.', '../../etc/passwd'].map((origin) => noteOf(1, { origin }))
    await witness.take(['', 'x'.repeat(20_000), 'no note', ...elsewhere])
    expect(readdirSync(path)).toEqual([])
    await witness.take([noteOf(1, { origin: 'a/../b' })])
    expect(readdirSync(join(path, 'witnessed'))).toEqual(['a%2F..%2Fb'])
    for (let i = 0; i < 300; i++) await witness.take([noteOf(1, { origin: `o/${i}` })])
    expect(witness.heads()).toHaveLength(256)
  })
})
