import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { runCli } from './run-cli.ts'

const gpu = (name: string): string => join(import.meta.dirname, '..', '..', 'test', 'fixtures', 'gpu', name)
const folder = mkdtempSync(join(tmpdir(), 'spillway-calibrate-'))
afterAll(() => rmSync(folder, { recursive: true }))

async function run(...words: string[]): Promise<{ code: number; out: string; err: string }> {
  let out = ''
  let err = ''
  const code = await runCli(words, { out: (text) => (out += text), err: (text) => (err += text) })
  return { code, out, err }
}

const LIMITS = ['--max-seqs', '256', '--token-budget', '2048', '--blocks', '40000', '--block-size', '16']

describe('spillway engine validate', () => {
  it('prints what the measured engine did against what the simulated one does, within the bars', async () => {
    const files = ['--steps', gpu('h200-steps.csv'), '--requests', gpu('h200-replay-requests.csv')]
    const { code, out } = await run('engine', 'validate', '--profile', 'h200-llama-8b', ...files, ...LIMITS, '--json')
    const { steps, requests } = JSON.parse(out)
    expect(code).toBe(0)
    expect(steps.medianError).toBeLessThan(0.04)
    expect(steps.p90Error).toBeLessThan(0.1)
    for (const promise of [requests.ttft, requests.e2e]) {
      expect(Math.abs(promise.meanError)).toBeLessThan(0.1)
      expect(Math.abs(promise.p95Error)).toBeLessThan(0.1)
    }
  })

  it('takes requests without steps, and tells p90, p99 and throughput of each run', async () => {
    const files = ['--requests', gpu('h200-unseen-requests.csv')]
    const { code, out } = await run('engine', 'validate', '--profile', 'h200-llama-8b', ...files, ...LIMITS)
    expect(code).toBe(0)
    expect(out).not.toContain('error of step times')
    for (const run of ['conv-8rps-202: 245', 'conv-20rps-202: 879', 'conv-26rps-202: 869', 'all: 1993'])
      expect(out).toContain(`${run} requests replayed`)
    expect(out).toMatch(/mean +p50 +p90 +p95 +p99/)
    expect(out).toMatch(/throughput: 19\.47 → 19\.\d\d requests a second \(.*\), 3772 → 37\d\d output tokens/)
  })

  it('says which line of which file is broken', async () => {
    const path = join(folder, 'broken.csv')
    writeFileSync(
      path,
      'model,prefill_tokens,prefill_context,decode_batch,decode_context,step_ms\nllama-8b,0,0,1,x,5\n',
    )
    const { code, err } = await run('engine', 'validate', '--profile', 'h200-llama-8b', '--steps', path)
    expect(code).not.toBe(0)
    expect(err).toContain(`${path}:2:`)
    expect(err).not.toContain('    at ')
  })

  it.each([
    [['--profile', 'h200-lama-8b', '--steps', 'x.csv'], 'Did you mean "h200-llama-8b"?'],
    [['--profile', 'h200-llama-8b', '--steps', 'not-there.csv'], 'not-there.csv is not there'],
    [['--steps', 'x.csv'], '--profile is missing'],
    [['--profile', 'h200-llama-8b'], 'Give measured steps (--steps), requests (--requests) or both.'],
  ])('is one clear line for %j', async (flags, line) => {
    const { code, err } = await run('engine', 'validate', ...flags)
    expect(code).not.toBe(0)
    expect(err).toContain(line)
  })
})

describe('spillway engine fit', () => {
  it('writes a profile that validate takes, and that does as well on what was measured', async () => {
    const fitted = await run('engine', 'fit', '--steps', gpu('h200-steps.csv'), '--json')
    const fit = JSON.parse(fitted.out).fits.find((one: { model: string }) => one.model === 'llama-8b')
    expect(fit.crossValidated.medianError).toBeLessThan(0.04)
    const path = join(folder, 'fitted.json')
    writeFileSync(path, JSON.stringify(fit.profile))
    const { out } = await run('engine', 'validate', '--profile', path, '--steps', gpu('h200-steps.csv'), '--json')
    expect(JSON.parse(out).steps.medianError).toBeLessThan(0.04)
  })

  const recording = ['--served', gpu('h200-replay-steps.csv'), '--requests', gpu('h200-replay-requests.csv')]

  it('fits what an engine at work adds, and says what the recording cannot tell', async () => {
    const { code, out, err } = await run('engine', 'fit', ...recording)
    expect(code).toBe(0)
    expect(out).toMatch(/kernels alone +6848/)
    expect(out).toMatch(/kvReadUsPerToken +0\.0\d+/)
    expect(err).toMatch(/^spillway: hardly any step has more than \d+ sequences/)
  })

  it('writes a served profile that validate takes, from kernels of its own', async () => {
    const words = [...recording, '--steps', gpu('h200-steps.csv'), '--json']
    const { profile, serving } = JSON.parse((await run('engine', 'fit', ...words)).out)
    expect(serving.warnings).toHaveLength(1)
    const path = join(folder, 'served.json')
    writeFileSync(path, JSON.stringify(profile))
    const requests = ['--requests', gpu('h200-replay-requests.csv')]
    const { out } = await run('engine', 'validate', '--profile', path, ...requests, ...LIMITS, '--json')
    expect(Math.abs(JSON.parse(out).requests.e2e.meanError)).toBeLessThan(0.02)
    expect(Math.abs(JSON.parse(out).requests.ttft.meanError)).toBeLessThan(0.02)
  })

  it.each([
    [['--served', 'x.csv'], '--requests is missing'],
    [['--requests', 'x.csv'], '--served is missing'],
    [[], '--steps is missing'],
    [[...recording, '--like', 'reference-a100'], 'reference-a100 has no kernels to add to'],
    [[...recording, '--steps', gpu('h200-steps.csv'), '--like', 'h100-llama-70b-tp4'], 'has no steps of llama-70b'],
    [
      ['--served', gpu('h200-steps.csv'), ...recording.slice(2)],
      'h200-steps.csv:1: expected steps of an engine at work',
    ],
  ])('is one clear line for %j', async (flags, line) => {
    const { code, err } = await run('engine', 'fit', ...flags)
    expect(code).not.toBe(0)
    expect(err).toContain(line)
    expect(err).not.toContain('    at ')
  })
})
