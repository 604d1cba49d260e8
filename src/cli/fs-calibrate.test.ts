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
})
