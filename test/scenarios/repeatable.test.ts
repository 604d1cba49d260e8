import { describe, expect, it } from 'vitest'
import { runCli } from '../../src/cli/run-cli.ts'
import { hashOf, journalOf, namedScenario } from '../support/simulated.ts'

/** Law L9, and what `spillway simulate` says to a shell. */
describe('same seed, same journal', () => {
  it.each([
    ['viral-spike-20x', { durationS: 66, load: 0.15 }],
    ['replica-loss', { durationS: 40, load: 0.5, 'faults.0.atS': 10 }],
    ['disconnect-storm', { durationS: 45, load: 0.5 }],
  ] as const)('%s', { timeout: 60_000 }, async (name, set) => {
    const scenario = namedScenario(name, set)
    const [first, again, other] = [
      await journalOf(scenario, { seed: 7 }),
      await journalOf(scenario, { seed: 7 }),
      await journalOf(scenario, { seed: 8 }),
    ]
    expect(hashOf(again.entries)).toBe(hashOf(first.entries))
    expect(hashOf(other.entries)).not.toBe(hashOf(first.entries))
  })
})

describe('spillway simulate', () => {
  const run = async (...args: string[]): Promise<{ code: number; out: string; err: string }> => {
    let out = ''
    let err = ''
    const code = await runCli(['simulate', ...args], {
      out: (text) => (out += text),
      err: (text) => (err += text),
    })
    return { code, out, err }
  }

  it('leaves with 0 when everything is as expected', async () => {
    const { code, out } = await run('baseline', '--set', 'durationS=30', '--json')
    expect(code).toBe(0)
    expect(JSON.parse(out)).toMatchObject({ scenario: 'baseline', seed: 1, requests: { shed: 0 }, laws: [] })
  })

  it('leaves with 1 when an expectation does not hold, and says which', async () => {
    const { code, out } = await run('baseline', '--set', 'durationS=30', '--set', 'load=6')
    expect(code).toBe(1)
    expect(out).toMatch(/FAILS.*nobody is degraded/)
  })

  it('leaves with 2 when it does not understand, and with 1 when there is no such scenario', async () => {
    expect((await run('no-such-scenario')).code).toBe(1)
    expect((await run('baseline', '--seed', 'x')).code).toBe(2)
  })
})
