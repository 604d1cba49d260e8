import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli } from '../../src/cli/run-cli.ts'
import { hashKey } from '../../src/config/key-hash.ts'
import { eventually } from '../support/eventually.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/** `spillway record` and `record.path` against a server that runs, and what `simulate --replay` makes of them. */
const ADMIN_KEY = 'sk-test-admin'
const SECRET = 'a word that nobody may repeat'
const folder = mkdtempSync(join(tmpdir(), 'spillway-record-'))
const always = join(folder, 'always.jsonl')

let platform: TestPlatform
beforeAll(async () => {
  const admin = { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] }
  platform = await startPlatform(testTree({ admin, record: { path: always } }))
}, 60_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function spillway(...words: string[]): Promise<{ code: number; out: string; err: string }> {
  const out: string[] = []
  const err: string[] = []
  const code = await runCli(words, { out: (text) => out.push(text), err: (text) => err.push(text) })
  return { code, out: out.join('\n'), err: err.join('\n') }
}

const record = (file: string, ...more: string[]) =>
  spillway('record', file, '--url', platform.address, '--key', ADMIN_KEY, ...more)

async function ask(key: string, body: object = {}): Promise<void> {
  const messages = [
    { role: 'system', content: `You know ${SECRET}. `.repeat(20) },
    { role: 'user', content: SECRET },
  ]
  const chat = { model: MODEL, messages, max_tokens: 12, user: SECRET, ...body }
  const response = await postJson(`${platform.baseURL}/chat/completions`, chat, {
    ...authorization(key),
    'x-session-id': SECRET,
  })
  await response.text()
}

type Line = Record<string, unknown>

const linesOf = (path: string): Line[] =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)

describe('spillway record', () => {
  const path = join(folder, 'some.jsonl')

  it('writes the requests of a running server without a word of them', { timeout: 60_000 }, async () => {
    const recording = record(path, '--requests', '3')
    await eventually('the recording begins', () => existsSync(path) && readFileSync(path, 'utf8') !== '')
    await ask(ACME_KEY)
    await ask(ACME_KEY, { stream: true })
    await ask(GLOBEX_KEY, { model: 'gpt-4o-mini', max_tokens: 7 })
    const { code, out } = await recording
    expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/some\.jsonl: 3 requests, 0\.0 MB$/) })
    const [header, ...rest] = linesOf(path)
    expect(header).toMatchObject({ spillway: 'recording', version: 1 })
    expect(rest.at(-1)).toEqual({ end: true })
    const requests = rest.slice(0, -1)
    expect(requests.map(({ tenant, model, max, outcome }) => [tenant, model, max, outcome])).toEqual([
      ['acme', MODEL, 12, 'completed'],
      ['acme', MODEL, 12, 'completed'],
      ['globex', MODEL, 7, 'completed'],
    ])
    const [first, second, third] = requests as [Line, Line, Line]
    expect(first['output']).toBeGreaterThan(0)
    expect(first['prompt']).toBeGreaterThan(50)
    // The same words have the same names for one tenant, and others for another.
    expect(first['prefix']).toEqual(second['prefix'])
    expect((first['prefix'] as number[]).length).toBeGreaterThan(3)
    expect((third['prefix'] as number[])[0]).not.toBe((first['prefix'] as number[])[0])
    const text = readFileSync(path, 'utf8')
    for (const word of SECRET.split(' ').filter((each) => each.length > 3)) expect(text).not.toContain(word)
    for (const key of [ACME_KEY, GLOBEX_KEY]) expect(text).not.toContain(key)
  })

  it('is played on simulated GPUs, with other numbers of replicas and of requests', { timeout: 60_000 }, async () => {
    const config = join(folder, 'spillway.yaml')
    const { server: _, ...tree } = testTree()
    writeFileSync(config, JSON.stringify(tree))
    const replay = (...more: string[]) => spillway('simulate', '--replay', path, '--config', config, '--json', ...more)
    const { code, out, err } = await replay()
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const report = JSON.parse(out) as { requests: { completed: number }; tenants: object; cost: { perHour: number } }
    expect(report.requests.completed).toBe(3)
    expect(Object.keys(report.tenants).sort()).toEqual(['acme', 'globex'])
    const more = JSON.parse(
      (await replay('--set', 'platform.pools.0.replicas=2', '--set', 'traffic.acme=0')).out,
    ) as typeof report
    expect(more.requests.completed).toBe(1)
    expect(more.cost.perHour).toBe(2 * report.cost.perHour)
    const unknown = await replay('--set', 'traffic.acm=2')
    expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining('Did you mean "acme"?') })
  })

  it('says what is wrong, and leaves no file behind', async () => {
    const cases: Array<[string[], RegExp]> = [
      [[path], /some\.jsonl is there already/],
      [[join(folder, 'no', 'such')], /its folder is not there/],
      [[join(folder, 'a.jsonl'), '--key', ACME_KEY], /the server answered 403/],
      [[join(folder, 'b.jsonl'), '--key', 'sk-unknown'], /does not know this admin key/],
      [[join(folder, 'c.jsonl'), '--url', 'http://127.0.0.1:1'], /no server answers at/],
    ]
    for (const [[file = '', ...more], because] of cases) {
      const { code, err } = await record(file, ...more)
      expect(code).not.toBe(0)
      expect(err).toMatch(because)
      expect(err).not.toMatch(/\n\s+at /)
    }
    for (const name of ['a', 'b', 'c']) expect(existsSync(join(folder, `${name}.jsonl`))).toBe(false)
  })

  it('ends when the server stops, and the configured recording has everything', { timeout: 60_000 }, async () => {
    const late = join(folder, 'late.jsonl')
    const recording = record(late)
    await eventually('the recording begins', () => existsSync(late) && readFileSync(late, 'utf8') !== '')
    await ask(ACME_KEY)
    await platform.close()
    expect(await recording).toMatchObject({ code: 0 })
    expect(linesOf(late).map((line) => Object.keys(line)[0])).toEqual(['spillway', 'atUs', 'end'])
    const all = linesOf(always)
    expect(all[0]).toMatchObject({ spillway: 'recording' })
    expect(all.filter((line) => 'atUs' in line)).toHaveLength(4)
    expect(all.at(-1)).toEqual({ end: true })
    expect(readFileSync(always, 'utf8')).not.toContain('nobody')
  })
})
