import { describe, expect, it } from 'vitest'
import { finished, type Turnout } from '../../../test/support/scripted-backend.ts'
import { BLOCKED, PASSED, ScriptedScreener, screeningOf } from '../../../test/support/scripted-screener.ts'
import { MODEL } from '../../../test/support/start-platform.ts'
import { VirtualWorld, type WorldOptions } from '../../../test/support/virtual-world.ts'

const SIMULATED = { backend: { kind: 'simulated' }, limit: { kind: 'fixed', concurrencyMax: 1 } }

async function screened(turnouts: readonly Turnout[], options: WorldOptions) {
  let screener!: ScriptedScreener
  const made = await VirtualWorld.scripted(turnouts, {
    ...options,
    screener: (clock) => {
      screener = new ScriptedScreener(clock)
      return screener
    },
  })
  return { ...made, screener }
}

describe('before the verdict', () => {
  it('no answer is given from the cache, and none at all when it blocks or the client goes', async () => {
    const answers = {
      find: () =>
        Promise.resolve({
          kind: 'hit',
          similarity: 1,
          answer: { content: 'known', usage: { promptTokens: 5, cachedTokens: 0, outputTokens: 2 } },
        } as const),
      keep: () => {},
      likeness: () => Promise.resolve(undefined),
    }
    const { world, screener, backend } = await screened([finished(1)], { answers: () => answers })
    const cacheable = { promptVersion: 'v', question: 'what?' }
    const answerCache = { similarityMin: 0.9, temperatureMax: 1, ttlUs: 1e9, checkRatio: 0 }
    const tenant = { ...world.serve().request.tenant, answerCache }
    await world.run()
    screener.mood.checkUs = 5_000
    const passed = world.serve({ tenant, cacheable, screening: screeningOf() })
    await world.run()
    expect((await passed.done).firstTokenAt! - (await passed.done).arrivedAt).toBe(5_000)
    screener.mood.checkUs = 1_000_000
    const gone = world.serve({ tenant, cacheable, screening: screeningOf() })
    const goesAt = world.virtual.now() + 5_000
    world.after(5_000, () => gone.cancellation.cancel('client-gone'))
    await world.run(goesAt)
    expect(gone.settled).toMatchObject({ at: goesAt, outcome: 'cancelled' })
    await world.run()
    expect(gone.sink.calls).toEqual([])
    Object.assign(screener.mood, { checkUs: 5_000, verdict: BLOCKED })
    const blocked = world.serve({ tenant, cacheable, screening: screeningOf() })
    await world.run()
    expect(await blocked.done).toMatchObject({ outcome: 'blocked', isCounted: true })
    expect(blocked.sink.calls).toEqual(['fail'])
    expect(backend.replicaIds).toHaveLength(1)
    expect(world.unrest()).toEqual([])
  })

  it.each([
    ['gate', 'passed', ['', '~shadow']],
    ['gate', 'blocked', []],
    ['overlap', 'passed', ['', '~shadow']],
    ['overlap', 'blocked', ['']],
  ] as const)('no mirror starts (%s, %s)', async (join, kind, called) => {
    const simulated = { ...SIMULATED, replicas: 1, inside: true }
    const shadowed: WorldOptions = {
      tree: {
        models: [
          {
            name: MODEL,
            releases: [{ version: '1' }, { version: '2' }],
            rollout: { stable: '1', shadow: { release: '2', percent: 100 } },
          },
        ],
        pools: [
          { model: MODEL, release: '1', ...simulated },
          { model: MODEL, release: '2', ...simulated },
        ],
      },
    }
    const { world, screener } = await screened([finished(3)], shadowed)
    Object.assign(screener.mood, { checkUs: 2_000, verdict: kind === 'blocked' ? BLOCKED : PASSED })
    const { request } = world.serve({ screening: screeningOf({ join }) })
    await world.run()
    const granted = world.entries.filter((entry) => entry.kind === 'granted')
    expect(granted.map(({ ticketId }) => ticketId.slice(request.id.length))).toEqual(called)
    const shadow = granted.find(({ ticketId }) => ticketId.endsWith('~shadow'))
    if (shadow !== undefined)
      expect(shadow.at).toBeGreaterThanOrEqual(world.entries.find((entry) => entry.kind === 'screened')!.at)
    // The copy was judged with its request.
    expect(screener.asked).toHaveLength(1)
    expect(world.unrest()).toEqual([])
  })
})
