import { describe, expect, it } from 'vitest'
import { injectionRule, screeningOf } from '../../test/support/scripted-screener.ts'
import { MODEL } from '../../test/support/start-platform.ts'
import { VirtualWorld, type WorldOptions } from '../../test/support/virtual-world.ts'
import type { Clock } from '../base/clock.ts'
import type { Entry } from '../domain/entry.ts'
import type { EmbeddedScreen, GuardTerms, ScreenFailure, ScreenScores, ScreenText } from '../domain/screening.ts'
import type { Backend, Call, Ending } from '../lifecycle/ports.ts'
import type { Screener } from '../lifecycle/screening-ports.ts'
import type { ScreenScorer } from './scores.ts'
import { SafetyScreener } from './screener.ts'

const GUARD: GuardTerms = { model: 'guard', route: 'chat', greyFrom: 0.3, greyTo: 0.9, timeoutUs: 500_000 }
const BACKEND = { backend: { kind: 'simulated' }, limit: { kind: 'fixed', concurrencyMax: 4 } }

class FixedScores implements ScreenScorer {
  readonly defaults = { injection: 0.7, 'passage-injection': 0.7, toxicity: 0.7 }
  scores: ScreenScores = { injection: 0.5 }
  scoresOf(_ask: unknown, wanted: readonly EmbeddedScreen[]): ScreenScores {
    return Object.fromEntries(wanted.map((screen) => [screen, this.scores[screen] ?? 0]))
  }
}

/** Engines of the model and of its guard, in one. */
class Engines implements Backend {
  readonly calls: Call[] = []
  readonly guard = { takesUs: 20_000, says: 'safe', ending: undefined as Ending | 'hangs' | undefined }
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  probe() {
    return Promise.resolve({ isReady: true, because: 'the test says so' })
  }

  async generate(call: Call): Promise<Ending> {
    this.calls.push(call)
    const { sink, cancellation } = call
    if (call.lease.replica.model !== 'guard') {
      await this.#clock.sleep(1_000)
      await sink.write({ tokens: 1, choices: [{ index: 0, content: 'hi', finishReason: 'stop' }] })
      return { kind: 'finished', usage: { promptTokens: 20, cachedTokens: 0, outputTokens: 1 } }
    }
    const { takesUs, says, ending } = this.guard
    const gone = new Promise<Ending>((resolve) => cancellation.onCancel(() => resolve({ kind: 'cancelled' })))
    if (ending === 'hangs') return gone
    const answered = this.#clock.sleep(takesUs).then(async (): Promise<Ending> => {
      if (cancellation.isCancelled) return { kind: 'cancelled' }
      if (ending !== undefined) return ending
      await sink.write({ tokens: 1, choices: [{ index: 0, content: says, finishReason: 'stop' }] })
      return { kind: 'finished', usage: { promptTokens: 300, cachedTokens: 0, outputTokens: 1 } }
    })
    return Promise.race([answered, gone])
  }

  get guardCalls(): Call[] {
    return this.calls.filter((call) => call.lease.replica.model === 'guard')
  }
}

async function guarded(options: WorldOptions = {}) {
  const scorer = new FixedScores()
  const engines: { made?: Engines } = {}
  const entries: Entry[] = []
  let screener: Screener | undefined
  const world = await VirtualWorld.of(
    (clock) => {
      engines.made ??= new Engines(clock)
      return engines.made
    },
    {
      concurrencyMax: 1_000,
      ...options,
      tree: {
        models: [{ name: MODEL }, { name: 'guard' }],
        pools: [
          { model: MODEL, ...BACKEND },
          { model: 'guard', dedicatedTo: ['spillway'], ...BACKEND },
        ],
        ...options.tree,
      },
      screener: (clock) => {
        screener = new SafetyScreener({ clock, scorer, record: (entry) => void entries.push(entry) })
        return screener
      },
    },
  )
  return { world, scorer, entries, engines: engines.made! }
}

const screeningWith = (
  onFailure: ScreenFailure,
  action: 'observe' | 'flag' | 'block' = 'block',
  texts: readonly ScreenText[] = [{ role: 'user', text: 'is this allowed? hunter2' }],
) =>
  screeningOf(
    { rules: [injectionRule({ onFailure }), injectionRule({ screen: 'guard', onFailure, action })], guard: GUARD },
    { texts },
  )

const answersOf = (entries: readonly Entry[]) =>
  entries.flatMap((entry) => (entry.kind === 'guard-answered' ? [entry.answer] : []))

describe('a guard model', () => {
  it('is asked in the grey zone, through its pool, as the platform in the interactive band', async () => {
    const { world, entries, engines } = await guarded()
    const { done, request } = world.serve({ screening: screeningWith('open') })
    await world.run()
    expect(await done).toMatchObject({ outcome: 'completed' })
    expect((await done).firstTokenAt! - (await done).arrivedAt).toBe(21_000)
    expect(answersOf(entries)).toEqual(['safe'])
    const [call] = engines.guardCalls
    expect(call?.request).toMatchObject({
      id: `${request.id}~guard`,
      tenant: { id: 'spillway' },
      band: 'interactive',
      errand: { kind: 'guard', of: request.id },
    })
    expect(call?.request.screening).toBeUndefined()
    expect(JSON.stringify(call?.request.text?.body)).toContain('is this allowed?')
    expect(JSON.stringify([world.entries, entries])).not.toContain('hunter2')
    expect(world.unrest()).toEqual([])
  })

  it.each([
    ['below it', 0.29, 'completed'],
    ['above it', 0.91, 'blocked'],
  ])('is not asked %s', async (_where, injection, outcome) => {
    const { world, scorer, engines } = await guarded()
    scorer.scores = { injection }
    const { done } = world.serve({ screening: screeningWith('open') })
    await world.run()
    expect(await done).toMatchObject({ outcome })
    expect(engines.guardCalls).toEqual([])
  })

  it('blocks with its categories', async () => {
    const { world, engines } = await guarded()
    engines.guard.says = 'unsafe\nS1, S14'
    const { done, sink } = world.serve({ screening: screeningWith('open') })
    await world.run()
    expect(await done).toMatchObject({ outcome: 'blocked', attempts: 0 })
    expect(sink.refusal?.detail).toEqual({ screen: 'guard', category: 's1, s14' })
    expect(world.unrest()).toEqual([])
  })

  it('that only observes is not waited for, and is heard in the journal', async () => {
    const { world, entries, engines } = await guarded()
    engines.guard.says = 'unsafe'
    const { done } = world.serve({ screening: screeningWith('open', 'observe') })
    await world.run()
    expect((await done).firstTokenAt! - (await done).arrivedAt).toBe(1_000)
    expect(answersOf(entries)).toEqual(['unsafe'])
    expect(world.unrest()).toEqual([])
  })

  it('is not believed when it calls a text safe that it has not seen whole', async () => {
    const { world } = await guarded()
    const long = [{ role: 'user', text: 'x'.repeat(60_000) }] as const
    const { sink } = world.serve({ screening: screeningWith('open', 'block', long) })
    await world.run()
    expect(sink.head?.screened).toEqual({ flagged: [], isPartial: true })
  })

  it('goes on while the server drains, and when somebody wants its room', async () => {
    const { world, engines } = await guarded()
    const { done } = world.serve({ screening: screeningWith('closed') })
    await world.run(world.virtual.now() + 5_000)
    expect(engines.guardCalls).toHaveLength(1)
    const drained = world.platform.drain()
    world.platform.errands.makeRoom(engines.guardCalls[0]!.lease.replica.releaseId)
    await world.run()
    await drained
    expect(await done).toMatchObject({ outcome: 'completed' })
    expect(world.unrest()).toEqual([])
  })
})

const FAILURES = [
  ['hangs', 'hangs', 'late'],
  ['is lost', { kind: 'lost', because: 'gone' }, 'lost'],
] as const

describe.each(FAILURES)('a guard model that %s', (_what, ending, answer) => {
  it.each([
    ['open', 0.8, 'completed', true],
    ['degrade', 0.8, 'blocked', false],
    ['degrade', 0.5, 'completed', true],
    ['closed', 0.5, 'blocked', false],
  ] as const)('fails %s (score %f): %s', async (onFailure, injection, outcome, isPartial) => {
    const { world, scorer, entries, engines } = await guarded()
    scorer.scores = { injection }
    engines.guard.ending = ending
    const { done, sink } = world.serve({ screening: screeningWith(onFailure) })
    await world.run()
    const settled = await done
    expect(settled).toMatchObject({ outcome })
    expect(settled.at - settled.arrivedAt).toBeLessThanOrEqual(GUARD.timeoutUs + 20_000)
    expect(answersOf(entries)).toEqual([answer])
    if (isPartial) expect(sink.head?.screened?.isPartial).toBe(true)
    expect(world.entries.find((entry) => entry.kind === 'screened')).toMatchObject({ skipped: ['guard'] })
    expect(world.unrest()).toEqual([])
  })

  it('is left alone after three times, tried again after a while, and used again when it answers', async () => {
    const { world, entries, engines } = await guarded()
    engines.guard.ending = ending
    const ask = async () => {
      const { done } = world.serve({ screening: screeningWith('open') })
      await world.run()
      return (await done).at - (await done).arrivedAt
    }
    for (let i = 0; i < 3; i++) await ask()
    const calls = engines.guardCalls.length
    // Nobody waits for a guard that is known to be away.
    expect(await ask()).toBe(1_000)
    expect(engines.guardCalls).toHaveLength(calls)
    engines.guard.ending = undefined
    await world.run(world.virtual.now() + 600_000)
    expect(await ask()).toBe(21_000)
    expect(answersOf(entries)).toEqual([answer, answer, answer, 'unasked', 'safe'])
    const changes = entries.flatMap((entry) => (entry.kind === 'breaker-changed' ? [entry.state] : []))
    expect(changes).toEqual(['closed', 'open', 'closed'])
    expect(world.unrest()).toEqual([])
  })
})

describe('an answer that is no verdict', () => {
  it('says nothing', async () => {
    const { world, entries, engines } = await guarded()
    engines.guard.says = 'I would say that this is safe.'
    const { done } = world.serve({ screening: screeningWith('closed') })
    await world.run()
    expect(await done).toMatchObject({ outcome: 'blocked', refusal: { detail: { category: 'unavailable' } } })
    expect(answersOf(entries)).toEqual(['unreadable'])
  })
})

describe('a guard model behind a moderations endpoint', () => {
  it('gets the texts as they are, and its results are read', async () => {
    const { world, entries, engines } = await guarded()
    const screening = screeningWith('open')
    const guard = { ...GUARD, route: 'moderations' } as const
    const { done } = world.serve({ screening: { ...screening, terms: { ...screening.terms, guard } } })
    await world.run()
    expect(await done).toMatchObject({ outcome: 'completed' })
    const [call] = engines.guardCalls
    const body = call!.request.transit!.body.open('upstream-name')
    const pieces: Uint8Array[] = []
    for await (const piece of body.pieces) pieces.push(piece)
    expect(JSON.parse(new TextDecoder().decode(pieces[0]))).toEqual({
      model: 'upstream-name',
      input: ['is this allowed? hunter2'],
    })
    expect(call!.request.transit).toMatchObject({ path: '/moderations', contentType: 'application/json' })
    // This engine wrote "safe", which is no result of a moderations endpoint.
    expect(answersOf(entries)).toEqual(['unreadable'])
  })
})

describe('a key whose requests are blocked again and again', () => {
  const abused = (action: 'observe' | 'block') =>
    screeningOf({ rules: [injectionRule(), injectionRule({ screen: 'abuse', action })] })

  it('has to wait, and the operator is told', async () => {
    const { world, scorer, entries } = await guarded()
    scorer.scores = { injection: 0.95 }
    for (let i = 0; i < 5; i++) world.serve({ screening: abused('block') })
    await world.run()
    scorer.scores = { injection: 0 }
    const { sink, done } = world.serve({ screening: abused('block') })
    await world.run(world.virtual.now())
    expect(await done).toMatchObject({ outcome: 'blocked', refusal: { code: 'key-paused' } })
    expect(sink.refusal?.retryAfterUs).toBe(5_000_000)
    expect(entries).toMatchObject([{ kind: 'abuse-noticed', abuse: 'blocks', response: 'slowed', count: 5 }])
    await world.run(world.virtual.now() + 5_000_000)
    const later = world.serve({ screening: abused('block') })
    await world.run()
    expect(await later.done).toMatchObject({ outcome: 'completed' })
    expect(world.unrest()).toEqual([])
  })

  it('is only told of where the screen observes', async () => {
    const { world, scorer, entries } = await guarded()
    scorer.scores = { injection: 0.95 }
    const all = Array.from({ length: 6 }, () => world.serve({ screening: abused('observe') }))
    await world.run()
    for (const { settled } of all) expect(settled?.refusal?.code).toBe('content-filter')
    expect(entries).toMatchObject([{ response: 'told' }, { response: 'told' }])
  })

  it('is not blamed for a guard that is away', async () => {
    const { world, entries, engines } = await guarded()
    engines.guard.ending = { kind: 'lost', because: 'gone' }
    const { terms } = screeningWith('closed')
    const rules = [...terms.rules, injectionRule({ screen: 'abuse' })]
    for (let i = 0; i < 8; i++) world.serve({ screening: screeningOf({ ...terms, rules }) })
    await world.run()
    expect(entries.filter(({ kind }) => kind === 'abuse-noticed')).toEqual([])
  })

  it('is seen when one prompt comes in many variations', async () => {
    const { world, scorer, entries } = await guarded()
    scorer.scores = { injection: 0 }
    for (let i = 0; i < 60; i++) {
      const text = `Give me the name, the street and the balance of customer number ${i}`
      world.serve({ screening: { ...abused('observe'), texts: [{ role: 'user', text }] } })
    }
    await world.run()
    expect(entries).toMatchObject([{ kind: 'abuse-noticed', abuse: 'sweep', response: 'told' }])
  })
})
