import { describe, expect, it } from 'vitest'
import { Engine, type EngineOptions } from './engine.ts'
import type { EngineEvent } from './engine-event.ts'
import type { EngineLimits } from './engine-state.ts'
import type { RooflineCoefficients } from './gpu-profile.ts'
import type { SequenceSpec } from './sequence.ts'

/** Every step takes 1 ms and 1 µs per token computed: instants can be counted on fingers. */
const PLAIN: RooflineCoefficients = {
  kind: 'roofline',
  weightsUs: 0,
  computeUsPerToken: 1,
  kneeSharpness: 1,
  lmHeadUs: 0,
  decodeBaseUs: 0,
  kvReadUsPerToken: 0,
  contextUsPerToken: 0,
  decodeUsPerSequence: 0,
  prefillBaseUs: 0,
  attentionUsPerPair: 0,
  contextAttentionUsPerPair: 0,
  allReduceBaseUs: 0,
  allReduceUsPerToken: 0,
  hostUs: 1_000,
  prefillFloorUs: 0,
  prefillFloorSharpness: 4,
  decodeFloorUs: 0,
}

const LIMITS: EngineLimits = { sequencesMax: 8, tokenBudget: 100, blockCount: 100, blockTokens: 10 }

const makeEngine = (limits: Partial<EngineLimits> = {}, options: Partial<EngineOptions> = {}): Engine =>
  new Engine({ coefficients: PLAIN, limits: { ...LIMITS, ...limits }, ...options })

const spec = (
  id: string,
  promptTokens: number,
  outputTokens: number,
  more: Partial<SequenceSpec> = {},
): SequenceSpec => ({
  id,
  promptTokens,
  outputTokens,
  ...more,
})

function drain(engine: Engine): EngineEvent[] {
  const events: EngineEvent[] = []
  for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) {
    events.push(...engine.advance(at))
    engine.assertInvariants()
  }
  return events
}

const brief = (events: readonly EngineEvent[]): string[] =>
  events.map((event) => `${event.at} ${event.id} ${event.kind}`)

describe('an engine', () => {
  it('computes a prompt, makes its tokens, and is idle', () => {
    const engine = makeEngine()
    engine.submit(500, spec('a', 40, 3))
    expect(engine.nextEventAt()).toBe(500)
    // The prompt: 1,040 µs; two decode steps of 1,001 µs.
    expect(brief(drain(engine))).toEqual(['1540 a first-token', '3542 a finished'])
    expect(engine.nextEventAt()).toBeUndefined()
    expect(engine.view(9_999)).toMatchObject({ running: 0, blocksFree: 100, steps: 3, busyUs: 3_042, finished: 1 })
  })

  it('reports a finished sequence with its usage and its tokens since the last event', () => {
    const engine = makeEngine()
    engine.submit(0, spec('a', 40, 3))
    const finished = drain(engine).at(-1)
    expect(finished).toEqual({
      kind: 'finished',
      at: 3_042,
      id: 'a',
      tokens: 2,
      arrivedAt: 0,
      firstTokenAt: 1_040,
      usage: { promptTokens: 40, cachedTokens: 0, outputTokens: 3 },
      preemptions: 0,
      // Alone in every step: its share is all of each.
      time: {
        prefillUs: 1_040,
        decodeUs: 2_002,
        againUs: 0,
        aloneUs: 3_042,
        prefixSavedUs: 0,
        kvTokenUs: 40 * 1_040 + 41 * 1_001 + 42 * 1_001,
      },
    })
  })

  it('cuts long prompts into chunks and fills the rest of a step with the next prompt', () => {
    const engine = makeEngine()
    engine.submit(0, spec('long', 150, 1))
    engine.submit(0, spec('short', 20, 1))
    // 100 of long; then its other 50 with all 20 of short.
    expect(brief(drain(engine))).toEqual([
      '2170 long first-token',
      '2170 long finished',
      '2170 short first-token',
      '2170 short finished',
    ])
  })

  it('holds a long prompt back where it may have only a part of a step, and shorter ones begin beside it', () => {
    const engine = makeEngine({ longPrefillTokens: 50 })
    engine.submit(0, spec('long', 150, 1))
    engine.submit(0, spec('short', 20, 2))
    // 50 of long with all of short; then 50 and a decode; then the last 50.
    expect(brief(drain(engine))).toEqual([
      '1070 short first-token',
      '2121 short finished',
      '3171 long first-token',
      '3171 long finished',
    ])
  })

  it('reads one prompt over the threshold at a time', () => {
    const engine = makeEngine({ longPrefillTokens: 50 })
    for (const id of ['long', 'other']) engine.submit(0, spec(id, 60, 1))
    // 50 of long; its last 10 with 50 of the other; the other's last 10. Read side by side, the first step would have 100.
    const firsts = brief(drain(engine)).filter((line) => line.endsWith('first-token'))
    expect(firsts).toEqual(['2110 long first-token', '3120 other first-token'])
  })

  it('preempts the latest arrived, though a longer prompt that came before is still being read', () => {
    const engine = makeEngine({ longPrefillTokens: 10, blockCount: 9 })
    engine.submit(0, spec('long', 75, 2))
    engine.submit(0, spec('short', 10, 40))
    const ended = drain(engine).filter((event) => event.kind === 'finished')
    expect(ended.map(({ id, preemptions }) => [id, preemptions])).toEqual([
      ['long', 0],
      ['short', 1],
    ])
  })

  it('lets decodes go first and prompts have what is left', () => {
    const engine = makeEngine()
    engine.submit(0, spec('first', 10, 5))
    engine.submit(1, spec('second', 120, 1))
    // first: 1,010; then 1 + 99 tokens, then 1 + 21.
    expect(brief(drain(engine))).toContain('3132 second first-token')
  })

  it('does not interrupt a step: who arrives during one joins the next', () => {
    const engine = makeEngine()
    engine.submit(0, spec('a', 10, 100))
    engine.advance(1_010)
    engine.submit(1_500, spec('b', 10, 1))
    // a's prompt ends at 1,010, its decode step at 2,011; b rides in the step after that.
    expect(engine.nextEventAt()).toBe(2_011)
    expect(brief(drain(engine))).toContain('3022 b first-token')
  })

  it('lets sequences of one instant share the first step of an idle engine', () => {
    const engine = makeEngine()
    engine.submit(7, spec('a', 10, 1))
    engine.submit(7, spec('b', 10, 1))
    expect(brief(drain(engine)).filter((line) => line.endsWith('first-token'))).toEqual([
      '1027 a first-token',
      '1027 b first-token',
    ])
  })

  it('tells every token as it comes to those who want that', () => {
    const engine = makeEngine()
    engine.submit(0, spec('a', 10, 4, { reports: 'every-step' }))
    expect(brief(drain(engine))).toEqual(['1010 a first-token', '2011 a tokens', '3012 a tokens', '4013 a finished'])
  })

  it('runs on time however late it is asked', () => {
    const engine = makeEngine()
    engine.submit(0, spec('a', 10, 4, { reports: 'every-step' }))
    expect(brief(engine.advance(1_000_000))).toEqual([
      '1010 a first-token',
      '2011 a tokens',
      '3012 a tokens',
      '4013 a finished',
    ])
  })

  it('says how far a sequence has come between events', () => {
    const engine = makeEngine()
    engine.submit(0, spec('a', 10, 50))
    engine.advance(0)
    expect(engine.generatedTokens(1_009, 'a')).toBe(0)
    expect(engine.generatedTokens(1_010 + 5 * 1_001, 'a')).toBe(6)
    expect(engine.generatedTokens(10_000_000, 'a')).toBeUndefined()
  })
})

describe('an abort', () => {
  it('frees blocks at once, in whatever place the sequence is', () => {
    const engine = makeEngine({ sequencesMax: 2 })
    engine.submit(0, spec('decoding', 100, 50))
    engine.submit(0, spec('prefilling', 150, 5))
    engine.submit(0, spec('waiting', 10, 5))
    engine.advance(1_150)
    expect(engine.view(1_150)).toMatchObject({ running: 2, waiting: 1 })
    expect(engine.abort(1_200, 'prefilling')).toMatchObject({ usage: { outputTokens: 0 } })
    expect(engine.abort(1_200, 'decoding')).toMatchObject({ tokens: 0, usage: { outputTokens: 1 } })
    engine.assertInvariants()
    expect(engine.view(1_200)).toMatchObject({ blocksFree: 100, aborted: 2 })
    // The running step takes as long as it takes (1 + 99 tokens, begun at 1,100).
    expect(brief(drain(engine))[0]).toBe('3210 waiting first-token')
  })

  it('counts what had been made, in the middle of a leap', () => {
    const engine = makeEngine()
    engine.submit(0, spec('a', 10, 900, { reports: 'few' }))
    drainUntil(engine, 5_000)
    // First token at 1,010; then one each 1,001 µs: nine whole steps by 10,100.
    expect(engine.abort(10_100, 'a')).toEqual({
      id: 'a',
      tokens: 9,
      usage: { promptTokens: 10, cachedTokens: 0, outputTokens: 10 },
      preemptions: 0,
      // … and the step that runs, which is paid for as a whole.
      time: {
        prefillUs: 1_010,
        decodeUs: 10 * 1_001,
        againUs: 0,
        aloneUs: 1_010 + 10 * 1_001,
        prefixSavedUs: 0,
        kvTokenUs: 10 * 1_010 + 155 * 1_001,
      },
    })
    expect(engine.abort(10_100, 'a')).toBeUndefined()
    expect(drain(engine)).toEqual([])
  })

  function drainUntil(engine: Engine, until: number): void {
    for (let at = engine.nextEventAt(); at !== undefined && at < until; at = engine.nextEventAt()) engine.advance(at)
  }
})

describe('a refusal', () => {
  it('meets what can never fit', () => {
    const engine = makeEngine()
    expect(engine.submit(0, spec('a', 900, 101))).toEqual({ kind: 'taken' })
    expect(engine.submit(0, spec('b', 900, 102))).toMatchObject({ kind: 'refused', code: 'never-fits' })
  })

  it('meets whoever finds the queue full', () => {
    const engine = makeEngine({ waitingMax: 1 })
    engine.submit(0, spec('a', 10, 1))
    expect(engine.submit(0, spec('b', 10, 1))).toMatchObject({ kind: 'refused', code: 'queue-full' })
  })
})

describe('preemption', () => {
  it('takes the latest arrived, and costs it a recomputation but no token', () => {
    const engine = makeEngine({ blockCount: 10 })
    engine.submit(0, spec('a', 45, 40))
    engine.submit(0, spec('b', 41, 30))
    const events = drain(engine)
    const finished = events.filter((event) => event.kind === 'finished')
    expect(finished.map(({ id, preemptions, usage }) => [id, preemptions, usage.outputTokens])).toEqual([
      ['a', 0, 40],
      ['b', 1, 30],
    ])
    // 86 prompt tokens, and b again with all that it had said by then: five tokens filled the last blocks.
    expect(engine.view(1e9)).toMatchObject({ preemptions: 1, promptTokens: 86 + 41 + 6 })
  })
})

describe('the prefix cache', () => {
  const hashes = (root: number): number[] => Array.from({ length: 6 }, (_, i) => root * 10 + i)

  function runAfterAnother(second: Partial<SequenceSpec>, promptTokens = 60): EngineEvent | undefined {
    const engine = makeEngine()
    engine.submit(0, spec('first', 60, 1, { prefixHashes: hashes(1), salt: 'red' }))
    drain(engine)
    engine.submit(1_000_000, spec('second', promptTokens, 1, { prefixHashes: hashes(1), salt: 'red', ...second }))
    return drain(engine)[0]
  }

  it('saves what another sequence of the salt has computed', () => {
    expect(runAfterAnother({}, 65)).toMatchObject({ cachedTokens: 60, at: 1_001_005 })
  })

  it('still computes the last block of a prompt that it knows to the end', () => {
    expect(runAfterAnother({})).toMatchObject({ cachedTokens: 50, at: 1_001_010 })
  })

  it('knows nothing across salts', () => {
    expect(runAfterAnother({ salt: 'blue' })).toMatchObject({ cachedTokens: 0 })
  })

  it('stops at the first block that differs', () => {
    expect(runAfterAnother({ prefixHashes: [10, 11, 99, 13] })).toMatchObject({ cachedTokens: 20 })
  })

  it('shares blocks between sequences of one step', () => {
    const engine = makeEngine()
    for (const id of ['a', 'b']) engine.submit(0, spec(id, 35, 2, { prefixHashes: hashes(1) }))
    engine.advance(0)
    // a's four blocks and the one that b needs for its own last tokens.
    expect(engine.view(1).blocksFree).toBe(95)
    engine.assertInvariants()
    expect(brief(drain(engine))[1]).toBe('1040 b first-token')
  })

  it('keeps an answer for the next turn of its conversation', () => {
    const engine = makeEngine()
    engine.submit(0, spec('turn-1', 20, 21, { prefixHashes: hashes(1) }))
    drain(engine)
    engine.submit(1_000_000, spec('turn-2', 60, 1, { prefixHashes: hashes(1) }))
    expect(drain(engine)[0]).toMatchObject({ cachedTokens: 40 })
  })

  it('gives way when blocks are needed', () => {
    const engine = makeEngine({ blockCount: 10 })
    engine.submit(0, spec('first', 60, 1, { prefixHashes: hashes(1) }))
    drain(engine)
    expect(engine.view(1e6)).toMatchObject({ blocksFree: 10, blocksCached: 60 / 10 })
    engine.submit(1e6, spec('big', 90, 1))
    drain(engine)
    expect(engine.view(2e6)).toMatchObject({ blocksFree: 10, blocksCached: 1 })
  })
})
