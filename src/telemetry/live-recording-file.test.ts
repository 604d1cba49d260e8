import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../../test/support/eventually.ts'
import { RecordingFile } from './live-recording-file.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-recording-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const HEADER = '{"spillway":"recording"}\n'
const line = (i: number): string => `{"n":${String(i).padStart(4, '0')}}\n`

function open(name: string, more: Partial<ConstructorParameters<typeof RecordingFile>[0]> = {}) {
  const troubles: string[] = []
  const path = join(folder, name)
  const onTrouble = (text: string): void => void troubles.push(text.replaceAll(folder, ''))
  const file = new RecordingFile({ path, fileBytesMax: 100, filesMax: 3, onTrouble, ...more })
  file.write(HEADER)
  return { file, path, troubles }
}

describe('a recording in files', () => {
  it('turns over at its size, keeps so many files, and begins each with the header', async () => {
    const { file, path } = open('r.jsonl', { fileBytesMax: 700_000 })
    const large = (i: number): string => `{"n":${i},"x":"${'x'.repeat(100_000)}"}\n`
    for (let i = 0; i < 30; i++) expect(file.write(large(i))).toBe(true)
    await file.close()
    expect(readdirSync(folder).sort()).toEqual(['r.jsonl', 'r.jsonl.1', 'r.jsonl.2'])
    const texts = [`${path}.2`, `${path}.1`, path].map((each) => readFileSync(each, 'utf8'))
    const numbers = texts.map((text) => {
      expect(text.startsWith(HEADER)).toBe(true)
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(700_000)
      const lines = text.slice(HEADER.length).trimEnd().split('\n')
      return lines.map((each) => (JSON.parse(each) as { n: number }).n)
    })
    // The newest lines, in order, without a hole between two files.
    const kept = numbers.flat()
    expect(kept).toEqual(Array.from({ length: kept.length }, (_, i) => 30 - kept.length + i))
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  it('gathers lines for a while, then writes them by itself', async () => {
    const { file, path } = open('r.jsonl')
    file.write(line(1))
    file.flush()
    expect(existsSync(path)).toBe(false)
    file.write(line(2))
    await eventually('the lines are written', () => existsSync(path) && readFileSync(path, 'utf8').includes(line(2)))
    expect(readFileSync(path, 'utf8')).toBe(HEADER + line(1) + line(2))
    await file.close()
  })

  it('leaves the file of an earlier process as the one before', async () => {
    writeFileSync(join(folder, 'r.jsonl'), 'earlier')
    const { file, path } = open('r.jsonl')
    file.write(line(1))
    await file.close()
    expect(readFileSync(`${path}.1`, 'utf8')).toBe('earlier')
    expect(readFileSync(path, 'utf8')).toBe(HEADER + line(1))
  })

  it('refuses lines above its bound instead of growing', () => {
    const { file } = open('r.jsonl')
    const large = `${'x'.repeat(1_000_000)}\n`
    expect([1, 2, 3, 4].map(() => file.write(large))).toEqual([true, true, true, false])
  })

  it('says once why it cannot write, loses lines for a while, then tries again and counts them', async () => {
    let nowMs = 0
    const { file, path, troubles } = open('gone/r.jsonl', { nowMs: () => nowMs })
    expect(file.write(line(1))).toBe(true)
    await file.close()
    expect(troubles).toEqual([
      'the recording /gone/r.jsonl cannot be written: its folder is not there. Requests go on unrecorded.',
    ])
    expect(file.write(line(2))).toBe(false)
    nowMs = 20_000
    mkdirSync(join(folder, 'gone'))
    expect(file.write(line(3))).toBe(true)
    await file.close()
    expect(readFileSync(path, 'utf8')).toBe(`${HEADER}{"lost":1}\n${line(3)}`)
    expect(troubles).toHaveLength(1)
  })
})
