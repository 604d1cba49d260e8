import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { Result } from '../bench/experiments/kit/result.ts'
import { cellRequests } from '../bench/experiments/unseen/cell-requests.ts'
import { findTraces } from '../bench/experiments/unseen/find-traces.ts'
import { ProgressBar } from '../bench/experiments/unseen/progress-bar.ts'
import { RowsError, readRows } from '../bench/experiments/unseen/read-rows.ts'
import { intervalOf, pairedInterval, sharingOf, shownInterval } from '../bench/experiments/unseen/statistics.ts'

const folder = mkdtempSync(join(tmpdir(), 'spillway-unseen-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const rows = (count: number, row: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => row(i)).join('\n')

function fill(name: string, files: Readonly<Record<string, string>>): string {
  const path = join(folder, name)
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(join(path, file, '..'), { recursive: true })
    writeFileSync(join(path, file), text)
  }
  return path
}

describe('rows are read whatever their columns are called', () => {
  it.each([
    ['BurstGPT', 'Timestamp,Model,Request tokens,Response tokens,Total tokens\n5,x,100,20,120\n45,x,7,3,10', 's', 40],
    ['semicolons', 'arrival;prompt_len;output_len\n0;10;20\n1.5;11;21', 's', 1.5],
    ['tabs and milliseconds', 'arrival_ms\tinput\toutput\n0\t10\t20\n1500\t11\t21', 'ms', 1.5],
    ['milliseconds since 1970', 'ts,input,output\n1700000000000,1,2\n1700000002500,1,2', 'ms', 2.5],
    ['nanoseconds since 1970', 'ts,input,output\n1700000000000000000,1,2\n1700000002000000000,1,2', 'ns', 2],
    ['large gaps', '{"timestamp": 0, "isl": 1, "osl": 2}\n{"timestamp": 900000, "isl": 1, "osl": 2}', 'us', 0.9],
    ['dates with a zone', 'time,input,output\n2024-05-10 00:00:00.25+00:00,1,2\n2024-05-10T00:00:01.75Z,1,2', 's', 1.5],
    [
      'a JSON list',
      '[{"t": 1, "prompt_tokens": 3, "completion_tokens": 4}, {"t": 3, "prompt_tokens": 3, "completion_tokens": 4}]',
      's',
      2,
    ],
    [
      'nested fields',
      '{"timestamp": 0, "data": {"input_tokens": 5, "output_tokens": 6}}\n{"timestamp": 2, "data": {"input_tokens": 5, "output_tokens": 6}}',
      's',
      2,
    ],
    [
      'reasoning and answer',
      '{"timestamp": 0, "input_tokens": 5, "reason_tokens": 600, "answer_tokens": 6}\n{"timestamp": 2, "input_tokens": 5, "reason_tokens": 1, "answer_tokens": 2}',
      's',
      2,
    ],
  ])('%s', (_, text, unit, lastS) => {
    const read = readRows(text)
    expect([read.unit, read.requests.map(({ atUs }) => atUs)]).toEqual([unit, [0, lastS * 1e6]])
    for (const { promptTokens, outputTokens } of read.requests) {
      expect(promptTokens).toBeGreaterThan(0)
      expect(outputTokens).toBeGreaterThan(0)
    }
  })

  it('adds up what an answer was thought and said with', () => {
    const { requests } = readRows(
      '[{"t":0,"isl":5,"reasoning_tokens":600,"answer_tokens":6},{"t":1,"isl":5,"reasoning_tokens":1,"answer_tokens":0}]',
    )
    expect(requests.map(({ outputTokens }) => outputTokens)).toEqual([606, 1])
  })

  it('leaves out what cannot be read, counts it, and sorts the rest by time', () => {
    const text = 'user,time,input,output\na,2,10,20\nb,1,11,21\nc,late,1,1\nd,3,-4,1\ne,4\n,5,1,1'
    const { requests, badRows } = readRows(text)
    expect(requests.map(({ tenant, atUs }) => [tenant, atUs])).toEqual([
      ['b', 0],
      ['a', 1e6],
      [undefined, 4e6],
    ])
    expect(badRows).toBe(3)
  })

  it.each([
    ['', 'no row'],
    ['hello', 'neither a table nor JSON'],
    ['a,b\n1,2', 'no columns of time, prompt and answer among: a, b'],
    ['[1, 2', 'begins like a JSON list'],
    ['time,input,output\nx,y,z\nx,y,z', '0 of 2 rows'],
  ])('and %j is refused with a reason', (text, why) => {
    expect(() => readRows(text)).toThrow(RowsError)
    expect(() => readRows(text)).toThrow(why)
  })
})

const AZURE = `arrival_s,input_tokens,output_tokens\n${rows(40, (i) => `${i / 4},${50 + i},${5 + (i % 7)}`)}\n`

it('finds the traces of a folder by content, and names what it leaves out', () => {
  const client = {
    client: 'a',
    mean_rps: 900,
    input: { p50: 80 },
    output: { p50: 9 },
    windows: [
      [0, 900, 1],
      [600, 1, 1],
    ],
  }
  const path = fill('found', {
    'azure.txt': AZURE,
    'deeper/mooncake.json': rows(
      30,
      (i) => `{"timestamp": ${i * 100}, "input_length": 900, "output_length": 5, "hash_ids": [1, ${i}]}`,
    ),
    'vtc.log': rows(30, (i) => `{"t": ${i}, "tenant": "u${i % 3}", "input": 13, "output": 9}`),
    'clients.jsonl': JSON.stringify(client),
    'unsorted.csv': `arrival_s,input_tokens,output_tokens\n${rows(30, (i) => `${30 - i},5,6`)}`,
    'broken.csv': 'arrival_s,input_tokens,output_tokens\n1,2,x\n2,y,3\n3,4,5',
    'empty.csv': '',
    'few.csv': 'arrival_s,input_tokens,output_tokens\n1,2,3',
    'README.md': '# Traces\n\nSome words, and more of them.',
    '.hidden': AZURE,
  })
  const { traces, skipped } = findTraces(path)
  expect(traces.map(({ name, format }) => [name, format])).toEqual([
    ['azure.txt', 'azure'],
    ['clients.jsonl', 'servegen'],
    ['deeper/mooncake.json', 'mooncake'],
    ['unsorted.csv', 'rows'],
    ['vtc.log', 'vtc'],
  ])
  expect(skipped.map(({ name }) => name)).toEqual(['README.md', 'broken.csv', 'empty.csv', 'few.csv'])
  for (const { why } of skipped) expect(why).not.toBe('')
  const clients = traces[1]!
  // Of half a million described requests, a day that stays whole.
  expect(clients.requestsOf(1).length).toBeLessThan(100_000)
  expect(clients.requestsOf(1).at(-1)!.atUs).toBeGreaterThan(600e6)
  expect(clients.requestsOf(2)).not.toEqual(clients.requestsOf(1))
})

describe('one cell', () => {
  const trace = Array.from({ length: 50 }, (_, i) => ({ atUs: i * 1e6, promptTokens: 10, outputTokens: 10 + (i % 5) }))
  const workOf = ({ outputTokens }: { outputTokens: number }): number => outputTokens / 100
  const wish = { seed: 3, workPerS: 2, seconds: 30, requestsMax: 10_000 }

  it('asks for the wanted work in each second, from a ring', () => {
    const { requests, seconds } = cellRequests(trace, workOf, wish)
    const work = requests.reduce((sum, request) => sum + workOf(request), 0)
    expect(work / seconds).toBeCloseTo(wish.workPerS)
    expect(requests.length).toBeGreaterThan(trace.length)
    const times = requests.map(({ atUs }) => atUs)
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    expect([times[0], times.at(-1)! < seconds * 1e6]).toEqual([0, true])
  })

  it('is the same for a seed, another for another, and bounded', () => {
    const of = (seed: number, requestsMax: number) =>
      cellRequests(trace, workOf, { ...wish, seed, requestsMax }).requests
    expect(of(3, 20)).toEqual(of(3, 20))
    expect(of(4, 20)).not.toEqual(of(3, 20))
    expect(of(3, 20)).toHaveLength(20)
  })

  it('gives senders to a trace without any, and few seats to one with thousands', () => {
    const made = new Set(cellRequests(trace, workOf, wish).requests.map(({ tenant }) => tenant))
    expect(made.size).toBeGreaterThan(3)
    expect(made.size).toBeLessThanOrEqual(8)
    const many = trace.flatMap((request, i) => [0, 1, 2, 3].map((j) => ({ ...request, tenant: `user-${4 * i + j}` })))
    const seats = new Set(cellRequests(many, workOf, { ...wish, seconds: 90 }).requests.map(({ tenant }) => tenant))
    expect(seats.size).toBeLessThanOrEqual(64)
  })
})

describe('figures', () => {
  it('have intervals by Student’s t, paired where seeds are', () => {
    expect(intervalOf([1, 2, 3])).toEqual({ mean: 2, halfWidth: expect.closeTo(4.303 / Math.sqrt(3), 6) })
    expect(intervalOf([5])).toEqual({ mean: 5, halfWidth: undefined })
    expect(pairedInterval([11, 21, 31], [10, 20, 30])).toEqual({ mean: 1, halfWidth: 0 })
    expect(shownInterval({ mean: 1.234, halfWidth: 0.5 }, 1, true)).toBe('+1.2 ±0.5')
    expect(shownInterval({ mean: -0.01, halfWidth: undefined }, 1, true)).toBe('0.0')
  })

  it('say how evenly work was shared: equal parts, to none more than it asked for', () => {
    expect(
      sharingOf([
        { asked: 10, served: 10 },
        { asked: 100, served: 40 },
        { asked: 100, served: 40 },
      ]),
    ).toEqual({
      jain: 1,
      gapMax: 0,
    })
    const { jain, gapMax } = sharingOf([
      { asked: 10, served: 5 },
      { asked: 100, served: 85 },
    ])
    expect([jain < 1, gapMax]).toEqual([true, 50])
  })

  it('show how far the comparison is', () => {
    const lines: string[] = []
    let ms = 0
    const bar = new ProgressBar(
      4,
      (line) => lines.push(line),
      () => ms,
    )
    for (const name of ['a', 'b', 'c']) {
      bar.step(name)
      ms += 10_000
    }
    expect(lines[0]).toBe(`[${'-'.repeat(24)}] 0/4 a`)
    expect(lines[2]).toBe(`[${'#'.repeat(12)}${'-'.repeat(12)}] 2/4, 20 s left: c`)
  })
})

describe('the whole comparison', () => {
  const script = join(import.meta.dirname, '../bench/experiments/unseen.ts')
  const runOn = (path: string, ...more: string[]): string =>
    execFileSync(process.execPath, [script, path, ...more], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

  it('runs on a folder that it has never seen', () => {
    const path = fill('small', { 'a.csv': AZURE, 'notes.txt': 'nothing\n' })
    const short = ['--loads', '1.3', '--seconds', '4', '--requests', '60', '--policies', 'ours,codel,llm-d,clairvoyant']
    const result = JSON.parse(runOn(path, '--seeds', '2', ...short, '--json')) as Result
    const [files, table] = result.tables
    expect(files!.rows.map(([name, format]) => [name, format])).toEqual([
      ['a.csv', 'azure'],
      ['notes.txt', 'left out'],
    ])
    expect(table!.rows).toHaveLength(4)
    for (const row of table!.rows) expect(row[1]).toMatch(/^\d+\.\d\d ±\d/)
    expect(result.verdict[0]).toContain('1.3 ×, 1 traces × 2 seeds')
  })

  it('says what is wrong with a folder without traces', () => {
    const path = fill('none', { 'notes.txt': 'nothing\n' })
    expect(() => runOn(path)).toThrow(/notes\.txt: neither a table nor JSON/)
    expect(() => runOn(join(folder, 'away'))).toThrow(/is not a folder/)
  })

  it.each([['away'], ['none', '--policies', 'magic'], ['none', '--wat']])(
    'tells mistakes without a stack: %s %s',
    (...words) => {
      const [path = '', ...more] = words
      let said: unknown
      try {
        runOn(join(folder, path), ...more)
      } catch (error) {
        said = String((error as { stderr: Buffer | string }).stderr)
      }
      expect(said).toMatch(/\S/)
      expect(said).not.toMatch(/^ +at /m)
    },
  )
})
