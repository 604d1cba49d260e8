import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../config/key-hash.ts'
import { runCli } from './run-cli.ts'

/** `spillway simulate --replay` as a person types it, for a gateway in front of real engines. */
const folder = mkdtempSync(join(tmpdir(), 'spillway-replay-'))
const at = (name: string): string => join(folder, name)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const HEADER = '{"spillway":"recording","version":1,"startedAt":"2026-11-15T10:00:00.000Z","blockTokens":16}'
const request = (i: number, more: object = {}): string =>
  JSON.stringify({
    atUs: i * 250_000,
    tenant: i % 2 === 0 ? 'acme' : 'globex',
    model: 'llama',
    prompt: 900,
    output: 30,
    deadlineUs: 30_000_000,
    outcome: 'completed',
    ...more,
  })

const pool = (more: object = {}) => ({
  model: 'llama',
  backend: { kind: 'http-openai', ...more },
  replicas: ['http://gpu-1:8000/v1', 'http://gpu-2:8000/v1'],
})
const config = (pools: readonly object[]): string =>
  JSON.stringify({
    models: [{ name: 'llama', releases: [{ version: '1' }] }],
    pools,
    tenants: [{ id: 'acme', weight: 2, keys: [{ id: 'a', hash: hashKey('sk-a') }] }],
  })

beforeAll(async () => {
  const requests = Array.from({ length: 40 }, (_, i) => request(i))
  writeFileSync(at('day.jsonl'), [HEADER, ...requests, request(40, { model: 'gone' }), '{"end":true}', ''].join('\n'))
  writeFileSync(at('cut.jsonl'), [HEADER, ...requests, request(40).slice(0, 30)].join('\n'))
  writeFileSync(at('broken.jsonl'), [HEADER, request(0), request(1).slice(0, 30), request(2), ''].join('\n'))
  writeFileSync(at('newer.jsonl'), [HEADER.replace('"version":1', '"version":7'), request(0), ''].join('\n'))
  writeFileSync(at('real.yaml'), config([pool()]))
  writeFileSync(at('named.yaml'), config([pool({ profile: 'a100-llama-8b' })]))
  const { findGpuProfile } = await import('../engine/gpu-profiles.ts')
  const { coefficients } = findGpuProfile('h200-llama-8b') as { coefficients: object }
  writeFileSync(at('learned.json'), JSON.stringify({ name: 'learned', like: 'h200-llama-8b', coefficients }))
})

async function simulate(...words: string[]): Promise<{ code: number; out: string; err: string }> {
  const out: string[] = []
  const err: string[] = []
  const io = { out: (text: string) => out.push(text), err: (text: string) => err.push(text.replaceAll(folder, '')) }
  const code = await runCli(['simulate', ...words], io)
  return { code, out: out.join('\n'), err: err.join('\n') }
}

interface Told {
  readonly requests: { readonly completed: number }
  readonly tenants: Readonly<Record<string, { readonly weight: number }>>
  readonly cost: { readonly perHour: number }
}
const replay = (name: string, ...more: string[]) =>
  simulate('--replay', at(name), '--config', at('real.yaml'), '--json', ...more)
const told = (out: string): Told => JSON.parse(out) as Told

describe('a recording on the configured platform', () => {
  it('plays real engines as a usual GPU, and says what it had to guess', { timeout: 30_000 }, async () => {
    const { code, out, err } = await replay('day.jsonl')
    expect(code).toBe(0)
    expect(told(out)).toMatchObject({ requests: { completed: 41 }, cost: { perHour: 2 * 4.25 } })
    expect(told(out).tenants['globex']?.weight).toBe(2)
    expect(err.split('\n')).toEqual([
      'Note: tenants that are not in the configuration get the settings of acme: globex.',
      'Note: models that are not in the configuration are played as llama: gone.',
      'Note: the GPU of pool llama is not in the configuration; it is played as h100-llama-8b. Give --profile, or set backend.profile.',
    ])
  })

  it('takes the GPU from the configuration, from the catalogue or from a file', { timeout: 30_000 }, async () => {
    const named = await simulate('--replay', at('day.jsonl'), '--config', at('named.yaml'), '--json')
    expect(told(named.out).cost.perHour).toBe(2 * 3)
    expect(named.err).not.toContain('GPU')
    const given = await replay('day.jsonl', '--profile', 'a100-llama-8b', '--set', 'platform.pools.0.replicas=3')
    expect(told(given.out).cost.perHour).toBe(3 * 3)
    expect(given.err).not.toContain('GPU')
    const learned = await replay('day.jsonl', '--profile', at('learned.json'))
    expect(told(learned.out).cost.perHour).toBe(2 * 5.75)
  })

  it('plays half the requests of a tenant, or twice those of all', { timeout: 30_000 }, async () => {
    const half = told((await replay('day.jsonl', '--set', 'traffic.acme=0')).out)
    expect([half.requests.completed, Object.keys(half.tenants)]).toEqual([20, ['globex']])
    const twice = told((await replay('day.jsonl', '--set', 'load=2')).out)
    expect(twice.requests.completed).toBe(82)
  })

  it('plays a recording on the platform of a scenario', { timeout: 30_000 }, async () => {
    const { code, out } = await simulate(
      'baseline',
      '--replay',
      at('day.jsonl'),
      '--json',
      '--set',
      'warmupS=0',
      '--set',
      'expect=[]',
    )
    expect(code).toBe(0)
    expect(told(out).requests.completed).toBeGreaterThan(0)
  })

  it('tolerates a last line that was cut short, with a note', { timeout: 30_000 }, async () => {
    const { code, out, err } = await replay('cut.jsonl')
    expect([code, told(out).requests.completed]).toEqual([0, 40])
    expect(err).toContain('Note: /cut.jsonl: its last line is cut short and was left out')
  })

  it.each([
    [['--replay', 'broken.jsonl'], '/broken.jsonl:3: this is not JSON'],
    [['--replay', 'newer.jsonl'], '/newer.jsonl:1: a recording of version 7; this is 1.'],
    [['--replay', 'real.yaml'], '/real.yaml:1: not a trace that we know.'],
    [['--replay', 'gone.jsonl'], '/gone.jsonl: there is no such file.'],
    [['--replay', ''], ': this is a folder. Give the path of a file.'],
    [['--replay', 'day.jsonl', '--profile', 'h100-lama-8b'], 'Did you mean "h100-llama-8b"?'],
    [['--replay', 'day.jsonl', '--profile', 'gone.json'], 'gone.json is not there.'],
    [['--replay', 'day.jsonl', '--set', 'traffic.acme=lots'], 'traffic.acme'],
    [['--replay', 'day.jsonl', '--trace', 'x.csv'], 'give --replay or --trace, not both.'],
  ])('%j is one line and no stack', async ([flag, name, ...more], because) => {
    const { code, err } = await simulate(flag!, at(name!), ...more, '--config', at('real.yaml'))
    expect(code).not.toBe(0)
    expect(err).toContain(because)
    expect(err).not.toMatch(/\n\s+at /)
  })
})
