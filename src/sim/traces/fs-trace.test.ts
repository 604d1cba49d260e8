import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { openTrace, surveyTrace } from './fs-trace.ts'
import { blockHashes, TraceError, type TraceOptions } from './trace.ts'

const folder = mkdtempSync(join(tmpdir(), 'spillway-trace-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let fileCount = 0
function write(lines: readonly string[], end = '\n'): string {
  const path = join(folder, `trace-${fileCount++}`)
  writeFileSync(path, lines.join(end) + end)
  return path
}

function read(lines: readonly string[], options: Partial<TraceOptions> = {}, end = '\n') {
  const trace = openTrace(write(lines, end), options)
  return { format: trace.format, requests: [...trace.requests()] }
}

/** The message without the folder. */
function complaint(lines: readonly string[]): string {
  try {
    surveyTrace(openTrace(write(lines)))
  } catch (error) {
    expect(error).toBeInstanceOf(TraceError)
    return (error as Error).message.replace(/^.*trace-\d+/, 'file')
  }
  return 'nothing'
}

const AZURE = ['arrival_s,input_tokens,output_tokens', '0.000,374,44', '4.315,396,109']
const MOONCAKE = [
  '{"timestamp": 0, "input_length": 1000, "output_length": 6, "hash_ids": [7, 8]}',
  '{"timestamp": 1500, "input_length": 513, "output_length": 4, "hash_ids": [7, 9]}',
]
const VTC = [
  '{"t": 0.0, "tenant": "u13", "input": 13, "output": 199}',
  '{"t": 0.25, "tenant": "u2", "input": 36, "output": 0}',
]
const client = (name: string, windows: unknown) =>
  JSON.stringify({
    client: name,
    mean_rps: 2,
    input: { p10: 100, p50: 200, p90: 400 },
    output: { p50: 20, p99: 90 },
    windows,
  })

describe('a trace is known by its content', () => {
  it('reads Azure as condensed, with both kinds of line end and blank lines', () => {
    const expected = [
      { atUs: 0, promptTokens: 374, outputTokens: 44 },
      { atUs: 4_315_000, promptTokens: 396, outputTokens: 109 },
    ]
    expect(read(AZURE)).toEqual({ format: 'azure', requests: expected })
    expect(read([...AZURE, '', ''], {}, '\r\n')).toEqual({ format: 'azure', requests: expected })
  })

  it('reads a table with a column of tenants', () => {
    const [head, ...rows] = AZURE
    const { format, requests } = read([`${head},tenant`, ...rows.map((row, i) => `${row},t${i}`)])
    expect([format, requests.map(({ tenant }) => tenant)]).toEqual(['azure', ['t0', 't1']])
    expect(complaint([`${head},tenant`, `${rows[0]}, `])).toBe(
      'file:2: tenant is empty. Name the tenant, or leave the column out.',
    )
  })

  it('reads Azure as published, with dates of seven digits', () => {
    const lines = [
      'TIMESTAMP,ContextTokens,GeneratedTokens',
      '2023-11-16 18:15:46.6805900,374,44',
      '2023-11-16 18:16:47.1805900,396,109',
    ]
    expect(read(lines).requests.map(({ atUs }) => atUs)).toEqual([0, 60_500_000])
  })

  it('reads Mooncake with its prefix hashes', () => {
    const { format, requests } = read(MOONCAKE)
    expect(format).toBe('mooncake')
    expect(requests[1]).toEqual({
      atUs: 1_500_000,
      promptTokens: 513,
      outputTokens: 4,
      prefixHashes: [7, 9],
      hashUnitTokens: 512,
    })
    // 32 blocks of the first unit are shared; one token of the second is no whole block.
    expect(blockHashes(requests[1]!, 16)).toEqual(blockHashes(requests[0]!, 16).slice(0, 32))
  })

  it('reads VTC with its tenants; an answer of no tokens counts as one', () => {
    expect(read(VTC)).toEqual({
      format: 'vtc',
      requests: [
        { atUs: 0, tenant: 'u13', promptTokens: 13, outputTokens: 199 },
        { atUs: 250_000, tenant: 'u2', promptTokens: 36, outputTokens: 1 },
      ],
    })
  })

  it('draws ServeGen clients at their rates, merged by time, the same for the same seed', () => {
    const lines = [
      client('a', [
        [0, 5, 1.2],
        [600, 0, 0],
        [1200, 1, 0],
      ]),
      client('b', [[0, 1, 3]]),
    ]
    const { format, requests } = read(lines, { seed: 3 })
    expect(format).toBe('servegen')
    const times = requests.map(({ atUs }) => atUs)
    expect(times).toEqual(times.toSorted((x, y) => x - y))
    const count = (tenant: string, fromS: number, toS: number) =>
      requests.filter((r) => r.tenant === tenant && r.atUs >= fromS * 1e6 && r.atUs < toS * 1e6).length
    expect(count('a', 0, 600)).toBeGreaterThan(2_700)
    expect(count('a', 0, 600)).toBeLessThan(3_300)
    expect(count('a', 600, 1200)).toBe(0)
    expect(count('b', 0, 600)).toBeGreaterThan(400)
    const prompts = requests.map(({ promptTokens }) => promptTokens).toSorted((x, y) => x - y)
    expect(Math.abs(prompts[prompts.length >> 1]! - 200)).toBeLessThan(20)
    expect(read(lines, { seed: 3 }).requests).toEqual(requests)
    expect(read(lines, { seed: 4 }).requests).not.toEqual(requests)
  })

  it('compresses time', () => {
    expect(read(AZURE, { factor: 5 }).requests.map(({ atUs }) => atUs)).toEqual([0, 863_000])
    expect(read(MOONCAKE, { factor: 1.5 }).requests.map(({ atUs }) => atUs)).toEqual([0, 1_000_000])
  })

  it('surveys: how many, how long, who', () => {
    expect(surveyTrace(openTrace(write(VTC)))).toEqual({
      requestCount: 2,
      lastAtUs: 250_000,
      tenants: ['u13', 'u2'],
      models: [],
    })
  })
})

describe('a broken line is reported with its place and the reason, never skipped', () => {
  it.each([
    ['text for a number', [...AZURE, '5.1,many,3'], 'file:4: input_tokens is "many", not a number of tokens.'],
    ['a missing column', [...AZURE, '5.1,12'], 'file:4: 2 columns where the first line names 3.'],
    ['half a token', [...AZURE, '', '5.1,1.5,3'], 'file:5: input_tokens is "1.5", not a number of tokens.'],
    ['no time', [...AZURE, ',1,3'], 'file:4: arrival_s is "", not a time.'],
    [
      'time running backwards',
      [...AZURE, '4.0,1,3'],
      'file:4: arrival_s is 4, before the line above. Sort the file by time.',
    ],
    [
      'a line cut short',
      [...MOONCAKE, '{"timestamp": 2000, "inp'],
      'file:3: this is not JSON: "{\\"timestamp\\": 2000, \\"inp". The line may be cut short.',
    ],
    [
      'hashes that are none',
      [...MOONCAKE, '{"timestamp": 2000, "input_length": 9, "output_length": 9, "hash_ids": ["a"]}'],
      'file:3: hash_ids is ["a"], not a list of whole numbers.',
    ],
    [
      'more hashes than prompt',
      [...MOONCAKE, '{"timestamp": 2000, "input_length": 9, "output_length": 9, "hash_ids": [1, 2]}'],
      'file:3: hash_ids names 2 blocks, but 9 tokens have at most 1.',
    ],
    ['no tenant', [...VTC, '{"t": 1, "input": 3, "output": 9}'], 'file:3: tenant is missing, not a name.'],
    [
      'negative tokens',
      [...VTC, '{"t": 1, "tenant": "u", "input": -3, "output": 9}'],
      'file:3: input is -3, not a number of tokens.',
    ],
    ['a list', [...VTC, '[1]'], 'file:3: this is [1], not an object.'],
    ['a window of text', [client('a', [[0, 'x', 1]])], 'file:1: a window is [0,"x",1], not [start, rate, variation].'],
    [
      'windows out of order',
      [
        client('a', [
          [600, 1, 1],
          [0, 1, 1],
        ]),
      ],
      'file:1: the window at 0 s is not after the one before it.',
    ],
    ['nothing', [''], 'file: empty.'],
    ['only a head', [AZURE[0]!], 'file: no request in it.'],
  ])('%s', (_, lines, message) => {
    expect(complaint(lines)).toBe(message)
  })

  it('names the formats that it knows', () => {
    expect(complaint(['time;tokens'])).toMatch(/^file:1: not a trace that we know.*\n {2}azure .*\n {2}mooncake /)
  })

  it('says when there is no such file', () => {
    expect(() => openTrace(join(folder, 'none'))).toThrow(/there is no such file/)
  })
})

it('reads characters and lines across the pieces that it reads the file in', () => {
  const lines = Array.from({ length: 4_000 }, (_, i) => JSON.stringify({ t: i, tenant: `ü${i}`, input: 5, output: 5 }))
  const { requests } = read(lines)
  expect(requests.map(({ tenant }) => tenant)).toEqual(lines.map((_, i) => `ü${i}`))
})
