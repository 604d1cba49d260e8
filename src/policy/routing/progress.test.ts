import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PROGRESS_DEFAULTS, Progress, type WatchedWork, type WorkTerms } from './progress.ts'

const S = 1_000_000
const R = 'r0'
const STEP_US = 12_000
const { silenceUsMin, answerUsMin } = PROGRESS_DEFAULTS
const SHORT: WorkTerms = { promptTokens: 1_000, readUs: 40_000, pieceTokens: 0 }

/** A replica that has answered once already, so that its silence counts. */
function makeKnown(stepUs = STEP_US, tookUs = 40_000): Progress {
  const progress = new Progress(() => stepUs)
  const first = progress.begin(0, R, SHORT)
  progress.moved(tookUs, first, 1)
  progress.end(first, true)
  return progress
}

/** Looks whenever a look is due, as its caller does, until `to`; returns what was said, and when. */
function lookUntil(progress: Progress, to: number, onAsk?: (now: number) => void): Array<[number, string]> {
  const said: Array<[number, string]> = []
  for (let at = progress.lookAt(R); at !== undefined && at <= to; at = progress.lookAt(R)) {
    const verdict = progress.look(at, R)
    if (verdict === 'ask') onAsk?.(at)
    if (verdict !== undefined) said.push([at, verdict])
  }
  return said
}

function streaming(progress: Progress, now: number, terms = SHORT): WatchedWork {
  const work = progress.begin(now, R, terms)
  progress.moved(now, work, 1)
  return work
}

describe('a replica that stands still', () => {
  it('is asked, and stalled within 2 s of the last token', () => {
    const progress = makeKnown()
    streaming(progress, 10 * S)
    expect(lookUntil(progress, 13 * S)).toEqual([
      [10 * S + silenceUsMin, 'ask'],
      [10 * S + silenceUsMin + answerUsMin, 'stalled'],
    ])
  })

  it('is stalled within 3 s where only its counter tells, which is read once a second', () => {
    const progress = makeKnown()
    progress.begin(10 * S, R, { ...SHORT, pieceTokens: 4_000 })
    progress.counted(10 * S, R, 1)
    // It freezes right after 10 s; the count that is read at 11 s has changed by then.
    progress.counted(11 * S, R, 2)
    const stalledAt = lookUntil(progress, 20 * S).find(([, verdict]) => verdict === 'stalled')?.[0]
    expect(stalledAt).toBeLessThanOrEqual(13 * S)
  })

  it('gets no reprieve from requests that come to it meanwhile, nor from refusals of its front end', () => {
    const progress = makeKnown()
    streaming(progress, 10 * S)
    for (let i = 1; i < 8; i++) {
      const work = progress.begin(10 * S + i * 200_000, R, SHORT)
      if (i % 2 === 0) progress.end(work, false)
    }
    expect(lookUntil(progress, 13 * S).at(-1)).toEqual([10 * S + silenceUsMin + answerUsMin, 'stalled'])
  })

  it('is back with any progress: an answer to a question, a token, a count', () => {
    for (const move of ['answer', 'token', 'count'] as const) {
      const progress = makeKnown()
      const work = streaming(progress, 10 * S)
      progress.counted(10 * S, R, 7)
      lookUntil(progress, 13 * S)
      expect(progress.isStalled(R)).toBe(true)
      expect(progress.counted(14 * S, R, 7)).toBe(false)
      const isBack =
        move === 'answer'
          ? progress.answered(15 * S, R)
          : move === 'token'
            ? progress.moved(15 * S, work, 1)
            : progress.counted(15 * S, R, 8)
      expect([move, isBack, progress.isStalled(R)]).toEqual([move, true, false])
    }
  })

  it('ends later work too, whose client had been too slow to read until then', () => {
    const progress = makeKnown()
    const slow = streaming(progress, 10 * S)
    const frozen = streaming(progress, 10 * S)
    progress.blocked(10 * S, slow, true)
    lookUntil(progress, 12 * S)
    progress.end(frozen, false)
    progress.blocked(20 * S, slow, false)
    expect(lookUntil(progress, 23 * S)).toContainEqual([20 * S + silenceUsMin, 'stalled'])
  })
})

describe('a replica that works', () => {
  it('is left alone while it is idle, and while it streams however slowly', () => {
    const progress = makeKnown()
    expect(progress.lookAt(R)).toBeUndefined()
    const slow = makeKnown(400_000)
    const work = streaming(slow, 10 * S)
    for (let now = 10 * S; now < 100 * S; now += 4 * S) {
      expect(lookUntil(slow, now)).toEqual([])
      slow.moved(now, work, 1)
    }
  })

  it('may read a prompt of 30,000 tokens for twice as long as expected', () => {
    const progress = makeKnown()
    const readUs = 6 * S
    progress.begin(10 * S, R, { promptTokens: 30_000, readUs, pieceTokens: 0 })
    expect(lookUntil(progress, 10 * S + 2 * readUs - 1)).toEqual([])
    expect(lookUntil(progress, 10 * S + 2 * readUs)).toEqual([[10 * S + 2 * readUs, 'ask']])
  })

  it('may take as long for each token of a long prompt as it took for a short one, whatever was expected', () => {
    // 100 times as slow as expected: 4 s for 1,000 tokens.
    const progress = makeKnown(STEP_US, 4 * S)
    progress.begin(10 * S, R, { promptTokens: 30_000, readUs: 1.2 * S, pieceTokens: 0 })
    expect(lookUntil(progress, 10 * S + 120 * S)).toEqual([])
  })

  it('may be silent for as long as it likes before its first answer, and again after a restart', () => {
    const progress = new Progress(() => STEP_US)
    const first = streaming(progress, 0)
    expect(lookUntil(progress, 1_000 * S)).toEqual([])
    progress.end(first, true)
    progress.restarted(1_000 * S, R)
    progress.begin(1_001 * S, R, SHORT)
    expect(lookUntil(progress, 2_000 * S)).toEqual([])
  })

  it('may write a whole answer in silence, where nothing else shows how far it is', () => {
    const progress = makeKnown(20_000)
    progress.begin(10 * S, R, { ...SHORT, pieceTokens: 500 })
    expect(lookUntil(progress, 10 * S + 500 * 20_000)).toEqual([])
    // Another engine's pace, learned of its last whole answer: 50 ms a token in place of 20 ms.
    const other = makeKnown(20_000)
    const whole = other.begin(10 * S, R, { ...SHORT, pieceTokens: 500 })
    other.moved(10 * S + 5 * S + 40_000, whole, 100)
    other.end(whole, true)
    other.begin(20 * S, R, { ...SHORT, pieceTokens: 500 })
    expect(lookUntil(other, 20 * S + 500 * 50_000)).toEqual([])
  })

  it('is not judged by a client that does not read', () => {
    const progress = makeKnown()
    const work = streaming(progress, 10 * S)
    progress.blocked(10 * S, work, true)
    expect(progress.lookAt(R)).toBeUndefined()
    progress.blocked(60 * S, work, false)
    expect(lookUntil(progress, 61 * S)).toEqual([])
  })

  it('is not judged by a process that was held up itself', () => {
    const progress = makeKnown()
    streaming(progress, 10 * S)
    expect(progress.look(15 * S, R)).toBeUndefined()
    expect(lookUntil(progress, 15 * S + silenceUsMin - 1)).toEqual([])
  })

  it('is asked half as often each time that it answers us while its answers are silent', () => {
    const progress = makeKnown()
    streaming(progress, 10 * S)
    const said = lookUntil(progress, 70 * S, (now) => void progress.answered(now + 20_000, R))
    expect(said.every(([, verdict]) => verdict === 'ask')).toBe(true)
    expect(said.length).toBeLessThanOrEqual(6)
  })

  it('is never stalled while some part of an answer comes at least once a second', () => {
    const event = fc.record({
      pauseUs: fc.integer({ min: 1, max: S }),
      what: fc.constantFrom('token', 'count', 'begin', 'end'),
    })
    fc.assert(
      fc.property(fc.array(event, { maxLength: 100 }), (events) => {
        const progress = makeKnown()
        const works = [streaming(progress, 10 * S)]
        let [now, count] = [10 * S, 0]
        progress.counted(now, R, count)
        for (const { pauseUs, what } of events) {
          now += pauseUs
          expect(lookUntil(progress, now)).toEqual([])
          if (what === 'begin') works.push(progress.begin(now, R, SHORT))
          if (what === 'end' && works.length > 1) progress.end(works.pop()!, true)
          progress.counted(now, R, ++count)
          if (what === 'token') progress.moved(now, works[0]!, 1)
        }
      }),
      { numRuns: 200 },
    )
  })
})
