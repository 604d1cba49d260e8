import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli } from './run-cli.ts'

/** `spillway plan` as a person types it, on a trace small enough to be played in a second. */
const folder = mkdtempSync(join(tmpdir(), 'spillway-plan-'))
const trace = join(folder, 'trace.csv')
const profileFile = join(folder, 'learned.json')
afterAll(() => rmSync(folder, { recursive: true, force: true }))

beforeAll(async () => {
  // Eight prompts of 1,500 tokens a second, about as many as one A100 can read; four times as many need several.
  const rows = Array.from({ length: 640 }, (_, i) => `${(i / 8).toFixed(3)},1500,24,${i % 2 === 0 ? 'a' : 'b'}`)
  writeFileSync(trace, ['arrival_s,input_tokens,output_tokens,tenant', ...rows].join('\n'))
  const { findGpuProfile } = await import('../engine/gpu-profiles.ts')
  const { coefficients } = findGpuProfile('h200-llama-8b') as { coefficients: object }
  writeFileSync(profileFile, JSON.stringify({ name: 'learned', like: 'h200-llama-8b', coefficients }))
})

async function plan(...words: string[]): Promise<{ code: number; out: string; err: string }> {
  const out: string[] = []
  const err: string[] = []
  const io = { out: (text: string) => out.push(text), err: (text: string) => err.push(text) }
  const code = await runCli(['plan', ...words], io)
  return { code, out: out.join('\n'), err: err.join('\n') }
}

interface Told {
  readonly answer: { readonly replicas: number; readonly runs: readonly unknown[] } | null
  readonly because: string
  readonly curve: ReadonlyArray<{ readonly replicas: number; readonly meets: boolean }>
  readonly trace: object
}

const told = async (...words: string[]): Promise<Told> => JSON.parse((await plan(...words, '--json')).out) as Told

describe('spillway plan', () => {
  it('finds the smallest fleet and shows the curve, the money, the worst minute and the seeds', {
    timeout: 60_000,
  }, async () => {
    const page = join(folder, 'plan.html')
    const base = ['--trace', trace, '--duration', '40', '--profile', 'a100-llama-8b', '--load', '4']
    const { code, out, err } = await plan(...base, '--page', page)
    expect(code).toBe(0)
    expect(out).toContain('320 requests in 40 s, 2 tenants, times 4; on a100-llama-8b')
    expect(out).toMatch(/✗ +1 .*1 run, the last misses/)
    expect(out).toMatch(/→ +\d+ .*3 of 3 meet it/)
    expect(out).toMatch(/\d+ replicas: \$\d+\.\d\d an hour, \$\d.* a million tokens\./)
    expect(out).toMatch(/All 3 seeds meet the target; .* in the worst minute is/)
    expect(err).toBe(`The page: ${page}`)
    const html = readFileSync(page, 'utf8')
    expect(html).toContain('Time to first token, by replicas')
    expect(html).not.toMatch(/https?:\/\//)
  })

  it('tells machines the same, and needs more replicas for more requests or a slower GPU', {
    timeout: 60_000,
  }, async () => {
    const base = ['--trace', trace, '--seeds', '1', '--duration', '20']
    const one = await told(...base, '--profile', 'h100-llama-8b')
    expect(one.trace).toMatchObject({ requests: 160, durationS: 20, tenants: 2 })
    expect(one.answer?.runs).toHaveLength(1)
    const more = await told(...base, '--profile', 'h100-llama-8b', '--load', '8')
    expect(more.answer?.replicas).toBeGreaterThan(one.answer?.replicas ?? Number.POSITIVE_INFINITY)
    const slower = await told(...base, '--profile', 'a100-llama-8b', '--load', '8')
    expect(slower.answer?.replicas).toBeGreaterThan(more.answer?.replicas ?? Number.POSITIVE_INFINITY)
  })

  it('takes a profile from a file, as the one that it is like', { timeout: 60_000 }, async () => {
    const base = ['--trace', trace, '--seeds', '1', '--duration', '20']
    const file = await told(...base, '--profile', profileFile)
    expect(file.answer?.replicas).toBeGreaterThan(0)
    // Money and memory are those of the profile that it is like.
    expect(file.answer?.runs[0]).toMatchObject({ usdPerHour: 5.75 * (file.answer?.replicas ?? 0) })
  })

  it('says when no number of replicas suffices, with exit code 1', { timeout: 60_000 }, async () => {
    const words = ['--trace', trace, '--profile', 'a100-llama-8b', '--ttft-p95', '20', '--duration', '20']
    const { code, out } = await plan(...words)
    expect(code).toBe(1)
    expect(out).toMatch(/No answer: .*(do not help|do not suffice)/)
  })

  it.each([
    [[], 2, '--trace is missing'],
    [['--trace', 'x.csv'], 2, '--profile is missing'],
    [['--trace', 'not-there.csv', '--profile', 'h100-llama-8b'], 1, 'not-there.csv: there is no such file.'],
    [['--trace', 'TRACE', '--profile', 'h100-lama-8b'], 1, 'Did you mean "h100-llama-8b"?'],
    [['--trace', 'TRACE', '--profile', 'not-there.json'], 1, 'not-there.json is not there.'],
    [['--trace', 'PROFILE', '--profile', 'h100-llama-8b'], 1, 'not a trace that we know'],
    [['--trace', 'TRACE', '--profile', 'h100-llama-8b', '--seeds', '0'], 2, '--seeds is "0"'],
    [['--trace', 'TRACE', '--profile', 'h100-llama-8b', '--ttft-p95', 'fast'], 2, '--ttft-p95 is "fast"'],
  ])('%j is one line', async (words, exitCode, because) => {
    const named = words.map((word) => (word === 'TRACE' ? trace : word === 'PROFILE' ? profileFile : word))
    const { code, err } = await plan(...named)
    expect(code).toBe(exitCode)
    expect(err).toContain(because)
    expect(err).not.toMatch(/\n\s+at /)
  })
})
