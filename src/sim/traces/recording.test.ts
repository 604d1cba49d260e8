import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { openTrace, surveyTrace } from './fs-trace.ts'
import { TraceError } from './trace.ts'

const folder = mkdtempSync(join(tmpdir(), 'spillway-recording-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let fileCount = 0
function write(text: string): string {
  const path = join(folder, `file-${fileCount++}`)
  writeFileSync(path, text)
  return path
}

const header = (more: object = {}): string =>
  JSON.stringify({
    spillway: 'recording',
    version: 1,
    startedAt: '2026-11-15T10:00:00.000Z',
    blockTokens: 16,
    ...more,
  })
const request = (more: object = {}): string =>
  JSON.stringify({
    atUs: 1_000_000,
    tenant: 'acme',
    model: 'llama-8b',
    prompt: 812,
    output: 143,
    deadlineUs: 30_000_000,
    outcome: 'completed',
    ...more,
  })
const END = '{"end":true}'

function read(lines: readonly string[], options = {}, lastEnd = '\n') {
  const trace = openTrace(write(lines.join('\n') + lastEnd), options)
  const requests = [...trace.requests()]
  return { requests, notes: [...trace.notes].map((note) => note.replace(/^.*file-\d+: /, '')) }
}

function complaint(text: string): string {
  try {
    surveyTrace(openTrace(write(text)))
  } catch (error) {
    expect(error).toBeInstanceOf(TraceError)
    return (error as Error).message.replace(/^.*file-\d+/, 'file')
  }
  return 'nothing'
}

describe('a recording is read', () => {
  it('with everything that a client asked for, from the first arrival on', () => {
    const full = {
      band: 'interactive',
      bid: 3,
      cached: 256,
      max: 200,
      n: 2,
      output: 300,
      session: 77,
      prefix: [5, 6],
    }
    const { requests, notes } = read([header(), request(full), END])
    expect(requests).toEqual([
      {
        atUs: 0,
        tenant: 'acme',
        promptTokens: 812,
        outputTokens: 150,
        prefixHashes: [5, 6],
        hashUnitTokens: 16,
        asked: {
          model: 'llama-8b',
          band: 'interactive',
          bid: 3,
          outputTokensMax: 200,
          choiceCount: 2,
          sessionHash: 77,
          deadlineUs: 30_000_000,
          cachedTokens: 256,
        },
      },
    ])
    expect(notes).toEqual([])
  })

  it('in the order of arrivals, although it was written in the order of ends', () => {
    const lines = [3, 1, 2].map((s) => request({ atUs: s * 1_000_000, prompt: s }))
    const { requests } = read([header(), ...lines, END], { factor: 2 })
    expect(requests.map(({ atUs, promptTokens }) => [atUs, promptTokens])).toEqual([
      [0, 1],
      [500_000, 2],
      [1_000_000, 3],
    ])
  })

  it('joined from several files, with the time between their beginnings', () => {
    const later = header({ startedAt: '2026-11-15T10:01:00.000Z' })
    const { requests } = read([header(), request({ atUs: 0 }), later, request({ atUs: 0 }), END])
    expect(requests.map(({ atUs }) => atUs)).toEqual([0, 60_000_000])
  })

  it('with lengths of the tenant’s own answers where a request got none, within its bound, the same for a seed', () => {
    const refused = { outcome: 'rejected', output: 0 }
    const lines = [
      header(),
      request({ output: 40 }),
      request({ output: 60 }),
      request({ tenant: 'other', output: 9 }),
      ...Array.from({ length: 20 }, () => request({ ...refused, atUs: 2_000_000 })),
      request({ ...refused, atUs: 3_000_000, max: 5 }),
      END,
    ]
    const { requests, notes } = read(lines)
    const drawn = requests.slice(3, 23).map(({ outputTokens }) => outputTokens)
    expect(new Set(drawn)).toEqual(new Set([40, 60]))
    expect(requests.at(-1)?.outputTokens).toBe(5)
    expect(read(lines).requests).toEqual(requests)
    expect(notes).toEqual(['21 requests got no answer; their lengths are drawn from answers to the tenant.'])
  })

  it('without answers of the cache and models that do not generate text, and says how many', () => {
    const { requests, notes } = read([
      header(),
      request({ isRepeated: true }),
      request({ kind: 'embedding', output: 0 }),
      request(),
      '{"lost":12}',
      END,
    ])
    expect(requests).toHaveLength(1)
    expect(notes).toEqual([
      'up to 12 requests are missing: the recorder had no room for them.',
      '1 answers came from the answer cache and are left out.',
      '1 requests for models that do not generate text are left out.',
    ])
  })

  it('up to a last line that was cut short, with a note; a recording without an end has one too', () => {
    const cut = read([header(), request(), request().slice(0, 40)], {}, '')
    expect(cut.requests).toHaveLength(1)
    expect(cut.notes).toEqual(['its last line is cut short and was left out: the recording was not closed.'])
    const open = read([header(), request()])
    expect(open.requests).toHaveLength(1)
    expect(open.notes).toEqual(['it has no end: the recording was not closed, and its last requests may be missing.'])
  })
})

describe('rubbish gets a place and a reason', () => {
  const cases: Array<[string, string, string]> = [
    ['cut in the middle', `${header()}\n${request().slice(0, 30)}\n${request()}\n`, 'file:2: this is not JSON'],
    ['another version', `${header({ version: 2 })}\n${request()}\n`, 'file:1: a recording of version 2; this is 1.'],
    [
      'mixed versions',
      `${header()}\n${request()}\n${header({ version: 9 })}\n`,
      'file:3: a recording of version 9; this is 1. Read it with the Spillway that wrote it, or record again.',
    ],
    ['another file of ours', `${header({ spillway: 'plan' })}\n`, 'file:1: this is "plan", not a recording.'],
    ['no date', `${header({ startedAt: 'monday' })}\n`, 'file:1: startedAt is "monday", not a date.'],
    ['a block of nothing', `${header({ blockTokens: 1e6 })}\n`, 'file:1: blockTokens is 1000000, longer than any'],
    ['no tenant', `${header()}\n${request({ tenant: 7 })}\n`, 'file:2: tenant is 7, not a name.'],
    ['a length in words', `${header()}\n${request({ prompt: 'long' })}\n`, 'file:2: prompt is "long", not a number'],
    ['an endless length', `${header()}\n${request({ output: 1e300 })}\n`, 'file:2: output is 1e+300, not a number'],
    ['a band of its own', `${header()}\n${request({ band: 'vip' })}\n`, 'file:2: band is "vip". Known: interactive'],
    ['text for names', `${header()}\n${request({ prefix: ['hello'] })}\n`, 'file:2: prefix is ["hello"], not a list'],
    ['an unknown kind', `${header()}\n${request({ kind: 'song' })}\n`, 'file:2: kind is "song", which is no kind'],
    ['files in the wrong order', twoFilesBackwards(), 'file:4: it was recorded before the lines above.'],
    ['a list', `${header()}\n[1]\n`, 'file:2: this is [1], not an object.'],
    ['nothing but a header', `${header()}\n`, 'file: no request in it.'],
    ['an empty file', '', 'file: empty.'],
    ['bytes', '\u0000\u0001\u0002\n', 'file:1: not a trace that we know.'],
  ]
  it.each(cases)('%s', (_, text, because) => expect(complaint(text)).toContain(because))
})

function twoFilesBackwards(): string {
  const earlier = header({ startedAt: '2026-11-15T09:00:00.000Z' })
  return `${header()}\n${request()}\n${earlier}\n${request()}\n`
}
