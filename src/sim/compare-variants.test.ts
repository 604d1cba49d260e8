import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { runCli } from '../cli/run-cli.ts'
import { compareVariants } from './compare-variants.ts'
import { loadScenario } from './scenario/fs-scenario.ts'

const folder = mkdtempSync(join(tmpdir(), 'spillway-simulate-'))
afterAll(() => rmSync(folder, { recursive: true }))

async function run(...words: string[]): Promise<{ code: number; out: string; err: string }> {
  let out = ''
  let err = ''
  const code = await runCli(words, { out: (text) => (out += text), err: (text) => (err += text) })
  return { code, out, err }
}

function file(name: string, lines: readonly string[]): string {
  const path = join(folder, name)
  writeFileSync(path, `${lines.join('\n')}\n`)
  return path
}

const SHORT = ['--set', 'durationS=20', '--set', 'warmupS=0']

describe('progress', () => {
  it('tells the share of all runs together, which never goes back', async () => {
    const ratios: number[] = []
    const names = new Set<string>()
    await compareVariants(loadScenario('baseline').file, {
      seed: 1,
      set: { durationS: 20, warmupS: 0 },
      compare: ['fifo', 'vtc'],
      onProgress: (what, _atS, _durationS, ratioOfAll) => {
        names.add(what)
        ratios.push(ratioOfAll)
      },
    })
    expect([...names]).toEqual(expect.arrayContaining(['baseline', 'fifo', 'vtc']))
    expect(ratios).toEqual(ratios.toSorted((a, b) => a - b))
    expect(ratios[0]).toBeLessThanOrEqual(1 / names.size)
    expect(ratios.at(-1)).toBeCloseTo(1)
  })
})

describe('spillway simulate', () => {
  it('plays a trace: every request at its time, for the tenants that it names', async () => {
    const lines = Array.from({ length: 40 }, (_, i) =>
      JSON.stringify({ t: i / 4, tenant: `t${i % 3}`, input: 100 + i, output: 20 }),
    )
    const { out } = await run('simulate', 'baseline', '--trace', file('t.jsonl', lines), ...SHORT, '--json')
    const report = JSON.parse(out)
    expect(report.requests).toMatchObject({ arrived: 40, completed: 40 })
    expect(report.tokens.output).toBe(800)
    expect(Object.keys(report.tenants).sort()).toEqual(['t0', 't1', 't2'])
  })

  it('plays it faster when told to', async () => {
    const path = file('slow.csv', ['arrival_s,input_tokens,output_tokens', '0,50,5', '30,50,5'])
    const arrived = async (...flags: string[]): Promise<number> =>
      JSON.parse((await run('simulate', 'baseline', '--trace', path, ...SHORT, ...flags, '--json')).out).requests
        .arrived
    expect(await arrived()).toBe(1)
    expect(await arrived('--speed', '3')).toBe(2)
  })

  it('reports a broken line of a trace with its place, and runs nothing', async () => {
    const path = file('broken.csv', ['arrival_s,input_tokens,output_tokens', '0.1,100,10', '0.2,x,10'])
    const { code, out, err } = await run('simulate', 'baseline', '--trace', path, ...SHORT)
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toContain(`${path}:3: input_tokens is "x"`)
    expect(err).not.toContain('    at ')
  })

  it('compares policies and settings side by side', async () => {
    const { out } = await run(
      'simulate',
      'baseline',
      ...SHORT,
      '--compare',
      'fifo,platform.pools.0.replicas=1',
      '--json',
    )
    const { variants } = JSON.parse(out)
    expect(Object.keys(variants)).toEqual(['fifo', 'platform.pools.0.replicas=1'])
    expect(variants['platform.pools.0.replicas=1'].cost.perHour).toBeLessThan(variants.fifo.cost.perHour)
  })

  it('compares with CoDel and a gradient limit, at every pool', async () => {
    const busy = ['--set', 'load=3', '--compare', 'fifo,codel,gradient', '--json']
    const { variants } = JSON.parse((await run('simulate', 'baseline', ...SHORT, ...busy)).out)
    expect(variants.fifo.requests.expired).toBeLessThan(variants.codel.requests.expired)
    expect(variants.codel.latency.ttft.p95).toBeLessThan(variants.fifo.latency.ttft.p95)
    expect(variants.gradient.engine).not.toEqual(variants.fifo.engine)
  })

  it.each([
    [['--compare', 'fifi'], 'Did you mean fifo?'],
    [
      ['--compare', 'nonsense'],
      'Known: spillway, no-ladder, drr, wfq, vtc, round-robin, fifo, strict, in-turn, fewest, predict, hpa-queue, hpa-util, static, fallback, bounded, codel, gradient; or give PATH=VALUE',
    ],
    [['--set', 'durationS.x=1'], 'nothing can be set at durationS.x'],
    [['--set', 'workload.9.band=offline'], 'nothing can be set at workload.9.band: it is a list of 3, counted from 0'],
    [['--trace', join(folder, 'not-there.csv')], 'not-there.csv'],
  ])('is one clear line for %j', async (flags, line) => {
    const { code, err } = await run('simulate', 'baseline', ...SHORT, ...flags)
    expect(code).toBe(1)
    expect(err).toContain(line)
    expect(err).not.toContain('    at ')
  })

  it('gives the same report for the same seed, and another for another', async () => {
    const report = async (seed: string): Promise<unknown> => {
      const { wall: _, ...rest } = JSON.parse(
        (await run('simulate', 'baseline', ...SHORT, '--seed', seed, '--json')).out,
      )
      return rest
    }
    expect(await report('3')).toEqual(await report('3'))
    expect(await report('3')).not.toEqual(await report('4'))
  })
})
