import { describe, expect, it } from 'vitest'
import { FAKE_PARTS, outputRule, screeningOf } from '../../test/support/fake-screens.ts'
import { ACME, makeRequest } from '../../test/support/requests.ts'
import type { Turnout } from '../../test/support/scripted-backend.ts'
import { RecordingSink, VirtualWorld } from '../../test/support/virtual-world.ts'
import type { ChoiceDelta, Delta } from '../domain/delta.ts'
import type { ScreeningTerms } from '../domain/screening.ts'
import type { Tenant } from '../domain/tenant.ts'
import { habitOf } from '../policy/planning/output-length.ts'
import { AnswerScreens } from '../safety/answer-screen.ts'
import { AnswerRecording } from './answers/answer-recording.ts'
import { AnswerText } from './answers/answer-text.ts'
import type { Ending } from './ports.ts'
import type { Screener } from './screening-ports.ts'

/** The relay with screens, on virtual time: what is counted when it came, what goes out, and how it ends. */
const screens = new AnswerScreens(FAKE_PARTS)
const screener: Screener = {
  judge: () => ({ kind: 'passed', findings: [], skipped: [], because: '' }),
  screenAnswer: (screening) => screens.of(screening),
}

const piece = (content: string, finishReason: string | null = null): ChoiceDelta[] => [
  { index: 0, content, finishReason },
]
const says = (texts: readonly string[], ending?: Turnout['ending']): Turnout => ({
  deltas: 0,
  says: [...texts.map((text) => piece(text)), ...(ending === undefined ? [piece('', 'stop')] : [])],
  ending: ending ?? { kind: 'finished', usage: { promptTokens: 20, cachedTokens: 0, outputTokens: texts.length + 1 } },
})
const LOST: Ending = { kind: 'lost', because: 'gone' }

class TextSink extends RecordingSink {
  readonly deltas: Delta[] = []
  override onWrite = (delta: Delta): Promise<void> | undefined => {
    this.deltas.push(delta)
    return undefined
  }

  get text(): string {
    return this.deltas.flatMap(({ choices = [] }) => choices.map(({ content }) => content ?? '')).join('')
  }

  get finishReasons(): (string | null)[] {
    return this.deltas.flatMap(({ choices = [] }) => choices.flatMap(({ finishReason }) => finishReason ?? []))
  }
}

async function served(
  turnouts: readonly Turnout[],
  terms: Partial<ScreeningTerms> = {},
  more: Parameters<VirtualWorld['serve']>[0] = {},
) {
  const { world, backend } = await VirtualWorld.scripted(turnouts, { replicas: 2, screener })
  const sink = new TextSink()
  const one = world.serve({ screening: screeningOf(terms), ...more }, sink)
  return { world, backend, sink, one }
}

describe('an answer that is screened', () => {
  it('goes out without what was found; what is held is counted when it came', async () => {
    const { world, sink, one } = await served([says(['Write ', 'to ada', '@x', '.org', ' now', '.'])])
    await world.run()
    const settled = await one.done
    expect(sink.text).toBe('Write to <EMAIL> now.')
    expect(sink.finishReasons).toEqual(['stop'])
    expect(sink).toMatchObject({ tokens: 7, isWellFormed: true })
    expect(settled).toMatchObject({ outcome: 'completed', usage: { outputTokens: 7 } })
    expect(settled.firstTokenAt! - settled.arrivedAt).toBe(1_000)
    expect(settled.gaps).toMatchObject({ sumUs: 6_000, maxUs: 1_000 })
    expect(world.entries.find(({ kind }) => kind === 'answer-screened')).toMatchObject({
      verdict: 'passed',
      findings: [{ screen: 'pii', category: 'email', action: 'redact', count: 1 }],
      policy: 'test',
    })
    expect(world.unrest()).toEqual([])
  })

  it('goes out when the engine ends it without a finish reason', async () => {
    const { world, sink, one } = await served([
      { ...says(['to ada', '@x.org']), says: [piece('to ada'), piece('@x.org')] },
    ])
    await world.run()
    expect((await one.done).outcome).toBe('completed')
    expect(sink.text).toBe('to <EMAIL>')
  })

  it('is made elsewhere when its engine is lost while all of it is held', async () => {
    const { world, sink, one, backend } = await served([says(['The first', ' half'], LOST), says(['Anew.'])], {
      hold: { kind: 'whole' },
    })
    await world.run()
    const settled = await one.done
    expect(settled).toMatchObject({ outcome: 'completed', attempts: 2, usage: { outputTokens: 2 } })
    expect(backend.replicaIds[0]).not.toBe(backend.replicaIds[1])
    expect(sink.text).toBe('Anew.')
    expect(settled.firstTokenAt!).toBeGreaterThan(settled.grantedAt!)
    expect(world.unrest()).toEqual([])
  })

  it('breaks off where its screen had got to when its engine is lost later', async () => {
    const { world, sink, one } = await served([says(['Write to ', 'ada'], LOST)])
    await world.run()
    expect(await one.done).toMatchObject({ outcome: 'failed', attempts: 1 })
    expect(sink.text).toBe('Write to ')
    expect(sink.refusal).toMatchObject({ code: 'replica-lost' })
    expect(world.unrest()).toEqual([])
  })

  it('is dropped when its client leaves in the middle of what is held', async () => {
    const { world, sink, one, backend } = await served([says(['Write to ', 'ada', '@x', '.org'], 'hangs')])
    world.after(2_500, () => one.cancellation.cancel('client-gone'))
    await world.run()
    expect(await one.done).toMatchObject({ outcome: 'cancelled', usage: { outputTokens: 2 } })
    expect(sink.text).toBe('Write to ')
    expect(backend.openCount).toBe(0)
    expect(world.unrest()).toEqual([])
  })

  it('makes its engine wait for a slow reader', async () => {
    const { world, sink, one } = await served([says(['a ', 'b ', 'c '])])
    const { onWrite } = sink
    sink.onWrite = (delta) => {
      void onWrite(delta)
      return world.clock.sleep(10_000)
    }
    await world.run()
    const settled = await one.done
    expect(settled.at - settled.arrivedAt).toBe(5_000 + 4 * 10_000)
    expect(sink.text).toBe('a b c ')
  })
})

describe('an answer that a screen ends', () => {
  const block = { rules: [outputRule({ action: 'block' })] } as const

  it('says so, is blocked, is paid as far as it was made, and its engine stops', async () => {
    const { world, sink, one, backend } = await served(
      [says(['Write ', 'to ada', '@x', '.org', ' now', 'never'])],
      block,
    )
    await world.run()
    const settled = await one.done
    expect(sink.text).toBe('Write to ')
    expect(sink.finishReasons).toEqual(['content_filter'])
    expect(sink.calls.at(-1)).toBe('finish')
    expect(settled).toMatchObject({
      outcome: 'blocked',
      refusal: { code: 'content-filter', detail: { screen: 'pii', category: 'email' } },
      because: 'The answer was blocked by pii: email.',
      usage: { outputTokens: 5 },
    })
    expect(settled.cost).toBeGreaterThan(0)
    expect(backend.openCount).toBe(0)
    expect(world.unrest()).toEqual([])
  })

  it('ends every choice that has not ended by itself', async () => {
    const { world, sink, one } = await served(
      [
        {
          ...says([]),
          says: [
            [{ index: 1, content: 'ok.', finishReason: 'stop' }],
            [{ index: 0, content: 'ada@x.org ', finishReason: null }],
          ],
        },
      ],
      block,
      { choiceCount: 3 },
    )
    await world.run()
    expect((await one.done).outcome).toBe('blocked')
    const ends = sink.deltas.flatMap(({ choices = [] }) =>
      choices.flatMap(({ index, finishReason }) => (finishReason === null ? [] : [`${index} ${finishReason}`])),
    )
    expect(ends).toEqual(['1 stop', '0 content_filter', '2 content_filter'])
  })

  it('at its very end is blocked too, with the usage of its engine', async () => {
    const { world, sink, one } = await served([{ ...says(['to ada@x.org']), says: [piece('to ada@x.org')] }], block)
    await world.run()
    expect(await one.done).toMatchObject({ outcome: 'blocked', usage: { outputTokens: 2 } })
    expect(sink.finishReasons).toEqual(['content_filter'])
    expect(sink.text).toBe('to ')
    expect(sink.calls.at(-1)).toBe('finish')
    expect(world.unrest()).toEqual([])
  })

  it('is refused where it has no place for a finish reason', async () => {
    const { world } = await VirtualWorld.scripted([says([])], { screener })
    const backend = world.platform.world.backends.of(world.platform.pools[0]!.replicas[0]!)
    backend.generate = (call) => {
      void call.sink.write({ tokens: 0, result: { kind: 'tensors', document: { outputs: ['ada@x.org'] } } })
      return Promise.resolve({ kind: 'cancelled' })
    }
    const { sink, done } = world.serve({ screening: screeningOf(block), kind: 'tensors' })
    await world.run()
    expect((await done).outcome).toBe('blocked')
    expect(sink.calls).toEqual(['fail'])
    expect(sink.refusal).toMatchObject({ code: 'content-filter', detail: { category: 'email' } })
    expect(world.unrest()).toEqual([])
  })
})

describe('what keeps or compares answers', () => {
  const VALUES = { '<EMAIL_3f>': 'own@x.org' }
  const said = [says(['You are ', '<EMAIL', '_3f>', ', not ada', '@x.org.'])]

  it('sees placeholders, where the client gets its values', async () => {
    const { world } = await VirtualWorld.scripted(said, { screener })
    const sink = new TextSink()
    const { done } = world.serve({ screening: screeningOf({}, VALUES) }, sink)
    const reader = new AnswerText()
    await world.run()
    await done
    expect(sink.text).toBe('You are own@x.org, not <EMAIL>.')
    for (const delta of sink.deltas) reader.write(delta)
    expect(reader.text).toBe('You are <EMAIL_3f>, not <EMAIL>.')
    const recording = new AnswerRecording({} as ConstructorParameters<typeof AnswerRecording>[0])
    for (const delta of sink.deltas) recording.note(delta)
    expect(recording.content).toBe('You are <EMAIL_3f>, not <EMAIL>.')
    expect(recording.isWhole).toBe(true)
  })

  it('a copy for another release is screened, is not judged again and counts no findings', async () => {
    const { world } = await VirtualWorld.scripted(said, { screener })
    const release = world.platform.policies.releases.keys().next().value!
    const sink = new TextSink()
    const errand = { kind: 'shadow', releaseId: release, of: 'req_0' } as const
    const rules = [outputRule(), outputRule({ screen: 'injection', direction: 'input', action: 'block' })]
    const { done } = world.serve({ screening: screeningOf({ rules }), errand }, sink)
    await world.run()
    await done
    expect(sink.text).toContain('not <EMAIL>.')
    expect(world.entries.filter(({ kind }) => /screened/.test(kind))).toEqual([])
  })
})

describe('the head of an answer', () => {
  it('names the screens that flag, what was left out and what nobody looked into, as far as it is known', async () => {
    const rules = [outputRule({ action: 'flag' })]
    const { world, sink, one } = await served([says(['to ada@x.org '])], { rules })
    await world.run()
    await one.done
    expect(sink.head?.screened).toEqual({ flagged: ['pii'], isPartial: false })
    expect(sink.flagged).toEqual([])
  })

  it('cannot name what a stream says later: its end does', async () => {
    const rules = [outputRule({ action: 'flag' })]
    const { world, sink, one } = await served([says(['Write ', 'to ada', '@x.org ', 'now.'])], { rules })
    await world.run()
    await one.done
    expect(sink.head?.screened).toEqual({ flagged: [], isPartial: false })
    expect(sink.flagged).toEqual(['pii'])
  })
})

describe('a budget that runs empty', () => {
  it('ends an answer with all that its screen may let go', async () => {
    const { world } = await VirtualWorld.scripted(
      [{ ...says([]), says: Array.from({ length: 60 }, (_, i) => piece(i % 2 === 0 ? 'ada@' : 'x.org ')) }],
      { screener },
    )
    const habit = habitOf(makeRequest())
    for (let i = 0; i < 50; i++) world.platform.policies.outputs.observe(habit, { tokens: 5, isCut: false })
    const budgets = [{ period: 'month', tokensMax: 60, isHard: true, marks: [] }] as const
    const tenant: Tenant = { ...ACME, allowance: { budgets } }
    const sink = new TextSink()
    const { done } = world.serve({ tenant, screening: screeningOf() }, sink)
    await world.run()
    expect(await done).toMatchObject({ outcome: 'completed', because: 'budget-empty', usage: { outputTokens: 41 } })
    expect(sink.finishReasons).toEqual(['length'])
    expect(sink.text).toBe(`${'<EMAIL> '.repeat(20)}ada@`)
    expect(sink.tokens).toBe(41)
    expect(world.unrest()).toEqual([])
  })
})
