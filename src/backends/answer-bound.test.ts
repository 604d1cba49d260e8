import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../../test/support/eventually.ts'
import { type Behaviour, drained, FakeUpstream, fails, sends } from '../../test/support/fake-upstream.ts'
import { type CallSaid, callOpenAi, frame, word } from '../../test/support/openai-call.ts'
import { makeRequest } from '../../test/support/requests.ts'
import type { ChoiceDelta } from '../domain/delta.ts'
import type { Plan } from '../domain/plan.ts'
import { TokenLength } from '../wire/token-length.ts'
import { AnswerBound } from './answer-bound.ts'

let upstream: FakeUpstream
beforeEach(async () => {
  upstream = await FakeUpstream.start()
})
afterEach(() => upstream.close())

const check = (...[behaviour, ...more]: Parameters<typeof callOpenAi> extends [unknown, ...infer R] ? R : never) =>
  callOpenAi(upstream, behaviour, ...more)

describe('an engine that ignores its bound (50 tokens)', () => {
  /** Writes until the connection is gone, or 64 MiB. */
  const floods =
    (piece: string): Behaviour =>
    async ({ res, isGone }) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      for (let bytes = 0; bytes < 64 << 20 && !isGone(); bytes += piece.length) {
        if (!res.write(piece)) await drained(res)
      }
      res.end()
    }
  const textOf = ({ deltas }: CallSaid): string =>
    deltas.flatMap((delta) => delta.choices?.map(({ content }) => content ?? '') ?? []).join('')
  const tokensOf = ({ deltas }: CallSaid): number => deltas.reduce((sum, { tokens }) => sum + tokens, 0)
  const lastReason = ({ deltas }: CallSaid) => deltas.at(-1)?.choices?.map(({ finishReason }) => finishReason)

  it('is cut there, as if it had stopped by itself, and its connection is dropped', async () => {
    const said = await check(floods(word('word ')))
    expect(said.ending).toEqual({ kind: 'finished', usage: undefined })
    expect(textOf(said)).toBe('word '.repeat(50))
    expect(tokensOf(said)).toBe(50)
    expect(lastReason(said)).toEqual(['length'])
    await eventually('the engine is told to stop', () => upstream.openAnswers === 0)
  })

  it('is cut for each choice alone', async () => {
    const one = frame({ choices: [{ index: 1, delta: { content: 'one ' } }] })
    const said = await check(floods(word('zero ') + one + one), {}, { choiceCount: 2 })
    expect(said.ending.kind).toBe('finished')
    const textOfChoice = (index: number) =>
      said.deltas
        .flatMap(({ choices = [] }) => choices.filter((choice) => choice.index === index))
        .map((c) => c.content)
    expect(textOfChoice(0).join('')).toBe('zero '.repeat(50))
    expect(textOfChoice(1).join('')).toBe('one '.repeat(50))
  })

  it.each([
    ['tool calls', frame({ choices: [{ index: 0, delta: { tool_calls: [{ function: { arguments: '{}' } }] } }] })],
    ['reasoning', frame({ choices: [{ index: 0, delta: { reasoning_content: 'hm' } }] })],
    ['text in large pieces', word('x'.repeat(100_000))],
    ['text and then nothing', word('x') + frame({ choices: [] }).repeat(100)],
    ['text and comments', `${word('x')}: ${'.'.repeat(10_000)}\n\n`],
  ])('is cut in %s too', async (_what, piece) => {
    const said = await check(floods(piece))
    expect(said.ending.kind).toBe('finished')
    expect(JSON.stringify(said.deltas).length).toBeLessThan(1 << 20)
    await eventually('the engine is told to stop', () => upstream.openAnswers === 0)
  })

  it('is lost when it floods before it says anything', async () => {
    expect((await check(floods(`: ${'.'.repeat(10_000)}\n\n`))).ending).toMatchObject({ kind: 'lost' })
  })

  const whole = (content: string, usage?: object): Behaviour =>
    fails(200, { choices: [{ index: 0, message: { content }, finish_reason: 'stop' }], usage })

  it('is cut in a whole answer: by its own count, else by its characters', async () => {
    const counted = await check(whole('word '.repeat(500), { completion_tokens: 500 }), {}, { isStreamed: false })
    expect(textOf(counted)).toBe('word '.repeat(50))
    expect(lastReason(counted)).toEqual(['length'])
    expect(tokensOf(counted)).toBe(50)
    const uncounted = await check(whole('word '.repeat(5_000)), {}, { isStreamed: false })
    expect(textOf(uncounted)).toHaveLength(64 * 50)
    const huge = await check(whole('x'.repeat(2 << 20)), {}, { isStreamed: false })
    expect(huge.ending).toMatchObject({ kind: 'lost', because: 'the engine sent an answer that is too long' })
  })

  it('is none that only counts otherwise, cuts its tokens up, or echoes a long prompt', async () => {
    const near = 'word '.repeat(50)
    const counted = await check(whole(near, { completion_tokens: 75 }), {}, { isStreamed: false })
    expect([textOf(counted), lastReason(counted)]).toEqual([near, ['stop']])
    const letters = Array.from('word '.repeat(49))
      .map((letter) => word(letter))
      .join('')
    const cutUp = await check(sends(letters, word('', 'stop'), 'data: [DONE]\n\n'))
    expect([textOf(cutUp), lastReason(cutUp)]).toEqual(['word '.repeat(49), ['stop']])
    const long = 'Once upon a time '.repeat(300)
    const echoed = await check(whole(long), {}, { isStreamed: false, kind: 'completion' }, { prompt: 'x', echo: true })
    expect(textOf(echoed)).toBe(long)
  })

  it.each([1e300, -5, 3.7, 'many', null])('is not believed when it reports %j tokens', async (completion_tokens) => {
    const said = await check(whole('word', { completion_tokens }), {}, { isStreamed: false })
    expect(tokensOf(said)).toBeLessThanOrEqual(50)
    expect(tokensOf(said)).toBeGreaterThanOrEqual(0)
  })
})

describe('frames of several tokens', () => {
  const many = (text: string): ChoiceDelta => ({ index: 0, content: text, finishReason: null })
  const known = new TokenLength()
  known.observe({ bytes: 800, frames: 25, tokens: 200 })
  const boundOf = (outputTokensMax: number, tokenLength?: TokenLength) =>
    AnswerBound.of(makeRequest({}), { outputTokensMax } as Plan, tokenLength)
  const passedOf = (bound: AnswerBound, piece: string): number => {
    let passed = 0
    while (passed < 1_000 && bound.ofFrame([many(piece)])[0]?.finishReason === null) passed++
    return passed
  }

  it('are cut at four times the usual length of tokens, where the answer is long', () => {
    const frame = 'x'.repeat(128)
    expect(passedOf(boundOf(100), frame)).toBe(50)
    expect(passedOf(boundOf(100, known), frame)).toBe(12)
    expect(passedOf(boundOf(20, known), frame)).toBe(10)
  })

  it('are cut where the engine itself reports more than twice the bound', () => {
    const bound = boundOf(100)
    bound.noteReported(200)
    expect(bound.ofFrame([many('words')])).toEqual([many('words')])
    bound.noteReported(201)
    expect(bound.ofFrame([many('words')])).toEqual([{ index: 0, content: '', finishReason: 'length' }])
    expect(bound.hasCut).toBe(true)
  })
})
