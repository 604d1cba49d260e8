import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../../test/support/eventually.ts'
import { listSegments, walkSegment } from './fs-segment.ts'
import { FsSpool, type SpoolOptions } from './fs-spool.ts'
import { FsSpoolReader } from './fs-spool-reader.ts'

let folder = ''
let told: string[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'spool-'))
  told = []
})
afterEach(() => rmSync(folder, { recursive: true }))

const complain = (problem: string): void => {
  told.push(problem)
}
let nowUs = 1_000_000
const optionsOf = (more: Partial<SpoolOptions> = {}): SpoolOptions => ({
  folder,
  now: () => nowUs,
  later(ms, run) {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
  complain,
  ...more,
})
const open = (more?: Partial<SpoolOptions>): Promise<FsSpool> => FsSpool.open(optionsOf(more))
const reader = (spool: FsSpool): Promise<FsSpoolReader> => FsSpoolReader.open(spool, 'ledger', complain)

/** Everything that is left to read; the reader is closed. */
async function drain(one: FsSpoolReader, step = 7): Promise<string[]> {
  const texts: string[] = []
  for (;;) {
    const records = await one.read(step)
    if (records.length === 0) break
    texts.push(...records.map(({ text }) => text))
  }
  await one.close()
  return texts
}

describe('a spool', () => {
  it('gives back what was appended, in order, over restarts and any sizes of reads', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 20 }), { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 1, max: 9 }),
        async (lives, step) => {
          rmSync(folder, { recursive: true })
          for (const texts of lives) {
            const spool = await open()
            for (const text of texts) expect(spool.append(text)).toBeGreaterThan(0)
            await spool.close()
          }
          const spool = await open()
          const read = await drain(await reader(spool), step)
          expect(read).toEqual(lives.flat())
          await spool.close()
        },
      ),
      { numRuns: 25 },
    )
    expect(told).toEqual([])
  })

  it('commits many records together, and tells who waits', async () => {
    const spool = await open()
    const seqs = Array.from({ length: 1_000 }, (_, i) => spool.append(`{"n":${i}}`) as number)
    expect(await spool.committed(seqs.at(-1) as number)).toBe(true)
    expect(spool.view()).toMatchObject({ committed: 1_000, waitingBytes: 0 })
    expect(spool.view().commits).toBeLessThan(10)
    await spool.close()
  })

  it('reads nothing that is not committed', async () => {
    const spool = await open()
    const one = await reader(spool)
    spool.append('a')
    expect(await one.read(10)).toEqual([])
    await spool.committed(1)
    expect(await one.read(10)).toEqual([{ seq: 1, text: 'a' }])
    await one.close()
    await spool.close()
  })

  it('goes on behind the last acknowledged record', async () => {
    const first = await open()
    for (const text of ['a', 'b', 'c']) first.append(text)
    await first.committed(3)
    const one = await reader(first)
    await one.read(3)
    await one.acknowledge(2)
    await one.close()
    await first.close()
    const second = await open()
    expect(await drain(await reader(second))).toEqual(['c'])
    await second.close()
  })

  it('cuts a torn tail at every byte, keeps what was whole, and tells it', async () => {
    const spool = await open()
    spool.append('first')
    await spool.committed(1)
    spool.append('second')
    await spool.close()
    const [segment] = await listSegments(folder)
    const path = segment?.path ?? ''
    const whole = readFileSync(path)
    const head = (await walkSegment(path))?.bytes as number
    expect(head).toBe(whole.length)
    const frame = 'second'.length + 36
    for (let cut = 1; cut < frame; cut += 5) {
      for (const name of readdirSync(folder)) rmSync(join(folder, name))
      writeFileSync(path, whole.subarray(0, whole.length - cut))
      told = []
      const again = await open()
      expect(again.view()).toMatchObject({ last: 1, tornBytes: frame - cut })
      expect(told).toHaveLength(1)
      expect(again.append('third')).toBe(2)
      await again.committed(2)
      expect(await drain(await reader(again))).toEqual(['first', 'third'])
      await again.close()
    }
  })

  it('finds a changed byte anywhere in a segment', async () => {
    const spool = await open()
    for (let i = 0; i < 20; i++) spool.append(`{"n":${i}}`)
    await spool.close()
    const [segment] = await listSegments(folder)
    const path = segment?.path ?? ''
    const whole = readFileSync(path)
    for (let at = 0; at < whole.length; at += 11) {
      const changed = Buffer.from(whole)
      changed[at] = (changed[at] as number) ^ 1
      writeFileSync(path, changed)
      const walked = await walkSegment(path)
      expect(walked === undefined || walked.next < 21).toBe(true)
    }
  })

  it('begins again in a folder whose newest segment has no whole head', async () => {
    const spool = await open()
    spool.append('a')
    await spool.close()
    writeFileSync(join(folder, '000000000000002.spool'), 'SPW')
    const again = await open()
    expect(again.append('b')).toBe(2)
    await again.committed(2)
    expect(await drain(await reader(again))).toEqual(['a', 'b'])
    await again.close()
  })

  it('skips the rest of a damaged segment, and tells how much is lost', async () => {
    for (const texts of [['a', 'b', 'c'], ['d']]) {
      const spool = await open()
      for (const text of texts) spool.append(text)
      await spool.close()
    }
    const [segment] = await listSegments(folder)
    truncateSync(segment?.path ?? '', statSync(segment?.path ?? '').size - 10)
    const spool = await open()
    expect(await drain(await reader(spool))).toEqual(['a', 'b', 'd'])
    expect(told).toEqual([expect.stringContaining('1 records of it cannot be read')])
    await spool.close()
  })

  it('takes nothing beyond its bounds, and counts it', async () => {
    const spool = await open({ bytesMax: 500 })
    const taken = Array.from({ length: 20 }, () => spool.append('x'.repeat(64))).filter((seq) => seq !== undefined)
    expect(taken).toHaveLength(5)
    expect(spool.view().refused).toBe(15)
    expect(spool.append('y'.repeat(400_000))).toBeUndefined()
    await spool.close()
    expect(spool.append('late')).toBeUndefined()
  })

  it('keeps what waits when the disk fails, and writes it once when the disk is back', async () => {
    const spool = await open()
    rmSync(folder, { recursive: true })
    spool.append('a')
    await eventually('the disk fails', () => spool.view().isInTrouble)
    spool.append('b')
    expect(told).toHaveLength(1)
    mkdirSync(folder)
    expect(await spool.committed(2)).toBe(true)
    expect(await drain(await reader(spool))).toEqual(['a', 'b'])
    await spool.close()
  })

  it('removes segments that are acknowledged and past their retention, and no others', async () => {
    for (const text of ['a', 'b', 'c']) {
      const spool = await open()
      spool.append(text)
      await spool.close()
    }
    nowUs = Date.now() * 1_000 + 60_000_000
    const kept = await open({ retentionMs: 3_600_000 })
    await kept.trim(3)
    expect(kept.segments()).toHaveLength(3)
    await kept.close()
    const spool = await open({ retentionMs: 1_000 })
    await spool.trim(1)
    expect((await listSegments(folder)).map(({ first }) => first)).toEqual([2, 3])
    await spool.close()
  })

  it('does not hang on a cursor that is no number', async () => {
    const spool = await open()
    spool.append('a')
    await spool.committed(1)
    writeFileSync(join(folder, 'ledger.cursor'), 'rubbish')
    expect(await drain(await reader(spool))).toEqual(['a'])
    expect(told).toHaveLength(1)
    await spool.close()
  })
})
