import { describe, expect, it } from 'vitest'
import { failuresOf, journalOf, namedScenario, runNamed } from '../support/simulated.ts'

/** Shipped scenarios of the fleet: where requests go, and what happens to those who serve them. */
const SHORTER: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  heterogeneous: { durationS: 50 },
  'long-context': { durationS: 60 },
}
const NAMES = ['heterogeneous', 'long-context']

describe('scenarios of the fleet', () => {
  it.each(NAMES)('%s', { timeout: 120_000 }, async (name) => {
    expect(failuresOf(await runNamed(name, 1, SHORTER[name]))).toEqual([])
  })

  it('rolling-restart really restarts every replica, one after the other', { timeout: 60_000 }, async () => {
    const { entries } = await journalOf(namedScenario('rolling-restart'), { seed: 2 })
    const health = entries.flatMap((entry) =>
      entry.kind === 'replica-health' && /draining|away|warming|steady/.test(entry.health)
        ? [`${entry.replicaId} ${entry.health}`]
        : [],
    )
    // After the first of all: each is drained, gone, warm again in steps, and only then it is the next one's turn.
    const turns = [...new Set(health.slice(health.indexOf('large-local-0 draining')))]
    expect(turns).toEqual(
      [0, 1, 2, 3].flatMap((i) => ['draining', 'away', 'warming', 'steady'].map((kind) => `large-local-${i} ${kind}`)),
    )
  })
})
