import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { oddNumber, shuffled, someOrder, unknownMembers, written } from '../../test/support/odd-json.ts'
import {
  CREATED_AT_S,
  cutAt,
  exactJson,
  OUR_ID,
  OUR_MODEL,
  relayThrough,
  type Through,
} from '../../test/support/relay-through.ts'

/**
 * What an engine answers reaches the client unchanged but for what is ours: for any answer, whole or streamed, cut into
 * any pieces. Numbers are compared as they were written.
 */

type Json = Record<string, unknown>

/** Names that mean something here: what stands under them is not unknown. */
const KNOWN = ['id', 'object', 'created', 'model', 'choices', 'usage', 'error', 'spillway', 'index', 'delta', 'message']
const KNOWN_OF_CHOICE = ['text', 'finish_reason', 'content', 'role', 'timings']
const more = unknownMembers([...KNOWN, ...KNOWN_OF_CHOICE])

const head = fc.record(
  {
    object: fc.constantFrom('chat.completion.chunk', ''),
    created: oddNumber,
    system_fingerprint: fc.constantFrom(null, 'fp_1'),
  },
  { requiredKeys: [] },
)

interface Drawn {
  readonly json: Json
  readonly text: string
}

const drawn = (choice: fc.Arbitrary<Json>, usage: fc.Arbitrary<unknown>): fc.Arbitrary<Drawn> =>
  fc
    .record({ choice, head, more, order: someOrder, usage, spaces: fc.constantFrom(0, 0, 0, 1) })
    .map(({ choice: one, head: signed, more: beside, order: by, usage: counted, spaces }) => {
      const all = { id: 'theirs', model: 'their-model-2024-08-06', ...signed, choices: [one], ...beside }
      const json = shuffled(counted === undefined ? all : { ...all, usage: counted }, by)
      return { json, text: written(json, spaces) }
    })

const frameUsage = fc.constantFrom(undefined, null, { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 })
const middle = fc.record({ delta: fc.record({ content: fc.string() }, { requiredKeys: [] }), more, inDelta: more })
const frame = drawn(
  middle.map(({ delta, more: beside, inDelta }) => ({
    index: 0,
    delta: { ...delta, ...inDelta },
    finish_reason: null,
    ...beside,
  })),
  frameUsage,
)
const lastFrame = drawn(
  more.map((beside) => ({ index: 0, delta: {}, finish_reason: 'stop', ...beside })),
  frameUsage,
)
const usage = fc.record({ more, details: more }).map(({ more: beside, details }) => ({
  prompt_tokens: 5,
  completion_tokens: 7,
  total_tokens: 12,
  completion_tokens_details: details,
  ...beside,
}))

const asked = fc.record({ keepsModel: fc.boolean(), includesUsage: fc.boolean(), includesRunningUsage: fc.boolean() })
const cuts = fc.array(fc.nat(100_000), { maxLength: 30 })

/** The answer as the client must get it: what is ours is changed, and nothing else. */
function wanted(text: string, { keepsModel }: Pick<Through, 'keepsModel'>, object: string): Json {
  const theirs = exactJson(text) as Json
  return {
    ...theirs,
    id: OUR_ID,
    model: keepsModel === true ? theirs['model'] : OUR_MODEL,
    object: theirs['object'] ?? object,
    created: theirs['created'] ?? `#${CREATED_AT_S}`,
  }
}

function wantedFrame(text: string, through: Omit<Through, 'pieces' | 'isStreamed'>, isFirst: boolean): Json {
  const frame_ = wanted(text, through, 'chat.completion.chunk')
  const { usage: counted, ...rest } = frame_
  const [choice] = rest['choices'] as Json[]
  const withRole = { ...choice, delta: { ...(choice?.['delta'] as Json), role: 'assistant' } }
  const said = isFirst ? { ...rest, choices: [withRole] } : rest
  if (counted === undefined || through.includesUsage !== true) return said
  return { ...said, usage: counted !== null && through.includesRunningUsage !== true ? null : counted }
}

const framesOf = (text: string): string[] =>
  text
    .split('\n\n')
    .filter((part) => part !== '' && part !== 'data: [DONE]')
    .map((part) => part.slice('data: '.length))

describe('what an engine answers reaches the client as it is', () => {
  it('as a stream, cut anywhere', async () => {
    const drawnStream = fc.record({ frames: fc.array(frame, { maxLength: 6 }), lastFrame, asked, cuts })
    await fc.assert(
      fc.asyncProperty(drawnStream, async ({ frames, lastFrame: last, asked: how, cuts: places }) => {
        const all = [...frames, last]
        const body = all
          .map(
            ({ text }) =>
              `${text
                .split('\n')
                .map((line) => `data: ${line}\n`)
                .join('')}\n`,
          )
          .join('')
        const pieces = cutAt(`${body}data: [DONE]\n\n`, places)
        const { text } = await relayThrough({ pieces, isStreamed: true, ...how })
        const got = framesOf(text)
        const ours = how.includesUsage ? got.pop() : undefined
        expect(got.map(exactJson)).toEqual(all.map((one, i) => wantedFrame(one.text, how, i === 0)))
        if (ours !== undefined) expect(JSON.parse(ours)).toMatchObject({ id: OUR_ID, choices: [] })
        expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
      }),
      { numRuns: 300 },
    )
  })

  it('with its usage in a frame of its own, with all that the frame has', async () => {
    const closing = fc.record({ usage, more, order: someOrder }).map(({ usage: counted, more: beside, order: by }) => {
      const json = shuffled(
        { id: 'x', created: '@@1.0@@', model: 'm', object: 'o', choices: [], usage: counted, ...beside },
        by,
      )
      return { text: written(json, 0), hasMore: Object.keys(beside).some((key) => !SIGNS.includes(key)) }
    })
    await fc.assert(
      fc.asyncProperty(lastFrame, closing, asked, cuts, async (last, end, how, places) => {
        const pieces = cutAt(
          `data: ${last.text.replaceAll('\n', ' ')}\n\ndata: ${end.text}\n\ndata: [DONE]\n\n`,
          places,
        )
        const { text } = await relayThrough({ pieces, isStreamed: true, ...how })
        const [, ...rest] = framesOf(text)
        const all = wanted(end.text, how, 'o')
        const { usage: _usage, ...without } = all
        expect(rest.map(exactJson)).toEqual(how.includesUsage ? [all] : end.hasMore ? [without] : [])
      }),
      { numRuns: 300 },
    )
  })

  it('as a whole', async () => {
    const choice = fc.record({ more, inMessage: more, content: fc.option(fc.string()) }).map((one) => ({
      index: 0,
      message: { role: 'assistant', content: one.content, ...one.inMessage },
      finish_reason: 'stop',
      ...one.more,
    }))
    await fc.assert(
      fc.asyncProperty(drawn(choice, usage), asked, cuts, async (whole, how, places) => {
        const { text } = await relayThrough({ pieces: cutAt(whole.text, places), isStreamed: false, ...how })
        expect(exactJson(text)).toEqual(wanted(whole.text, how, 'chat.completion'))
      }),
      { numRuns: 300 },
    )
  })
})

const SIGNS = ['system_fingerprint', 'service_tier']

describe('what cannot be passed on as it is', () => {
  const chunk = (choice: object, beside: object = {}): string =>
    `data: ${JSON.stringify({ id: 'theirs', created: 5, system_fingerprint: 'fp_1', choices: [choice], ...beside })}\n\n`
  const parsedFrames = (text: string): Json[] => framesOf(text).map((one) => JSON.parse(one) as Json)

  it('keeps what nobody here knows: a finish reason in other words', async () => {
    const pieces = [
      chunk({ index: 0, delta: { content: 'a' }, finish_reason: 'eos_token', stop_reason: 2 }, { timings: { n: 1 } }),
    ]
    const { text } = await relayThrough({ pieces: pieces.map((one) => Buffer.from(one)), isStreamed: true })
    expect(parsedFrames(text)).toMatchObject([
      {
        id: OUR_ID,
        created: 5,
        system_fingerprint: 'fp_1',
        timings: { n: 1 },
        choices: [{ finish_reason: 'stop', stop_reason: 2 }],
      },
    ])
  })

  it('keeps it when the engine answers whole what was to be a stream, and the other way round', async () => {
    const whole = {
      created: 5,
      citations: ['x'],
      choices: [{ index: 0, message: { content: 'a' }, finish_reason: 'stop', token_ids: [1] }],
    }
    const streamed = await relayThrough({
      pieces: [Buffer.from(JSON.stringify(whole))],
      isStreamed: true,
      sendsStream: false,
    })
    expect(parsedFrames(streamed.text)).toMatchObject([
      { object: 'chat.completion.chunk', citations: ['x'], choices: [{ delta: { content: 'a' }, token_ids: [1] }] },
    ])
    const pieces = [
      Buffer.from(chunk({ index: 0, delta: { content: 'a' }, finish_reason: null }, { citations: ['x'] })),
      Buffer.from(chunk({ index: 0, delta: { content: 'b' }, finish_reason: 'stop', stop_reason: 2 })),
    ]
    const joined = await relayThrough({ pieces, isStreamed: false, sendsStream: true })
    expect(JSON.parse(joined.text)).toMatchObject({
      object: 'chat.completion',
      created: 5,
      citations: ['x'],
      choices: [{ message: { content: 'ab' }, finish_reason: 'stop', stop_reason: 2 }],
    })
  })

  it('is the end of an answer that goes on beyond its bound, and is signed as the engine signs', async () => {
    const pieces = ['one ', 'two ', 'three '].map((content) =>
      Buffer.from(chunk({ index: 0, delta: { role: 'assistant', content }, finish_reason: null })),
    )
    const { text } = await relayThrough({ pieces, isStreamed: true, tokensMax: 2, includesUsage: true })
    const frames = parsedFrames(text)
    expect(frames.map(({ choices }) => (choices as Json[])[0]?.['finish_reason'])).toEqual([
      null,
      null,
      'length',
      undefined,
    ])
    expect(frames.at(-1)).toMatchObject({ created: 5, system_fingerprint: 'fp_1', choices: [] })
  })
})

describe('a stream from its first frame', () => {
  const frames = (...choices: object[]): Buffer[] =>
    choices.map((choice) => Buffer.from(`data: ${JSON.stringify({ id: 'x', choices: [choice] })}\n\n`))

  it('has the frame with the role alone, and frames without choices, where the engine sends them', async () => {
    const filter = Buffer.from(
      'data: {"id":"","object":"","created":0,"model":"","choices":[],"prompt_filter_results":[]}\n\n',
    )
    const pieces = [
      filter,
      ...frames(
        { index: 0, delta: { role: 'assistant', content: '', refusal: null }, finish_reason: null },
        { index: 0, delta: { content: 'a' }, finish_reason: null },
        { index: 0, delta: {}, finish_reason: 'stop' },
      ),
    ]
    const { text, deltas } = await relayThrough({ pieces, isStreamed: true })
    const got = framesOf(text).map((one) => JSON.parse(one) as Json)
    expect(got).toMatchObject([
      { prompt_filter_results: [], choices: [] },
      { choices: [{ delta: { role: 'assistant', content: '', refusal: null } }] },
      { choices: [{ delta: { content: 'a' } }] },
      { choices: [{ finish_reason: 'stop' }] },
    ])
    expect(deltas.map(({ tokens, ahead = [] }) => [ahead.length, tokens])).toEqual([
      [2, 1],
      [0, 0],
    ])
  })

  it('keeps back what comes before the first token: another engine may still answer', async () => {
    const pieces = frames({ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null })
    const { deltas, ending } = await relayThrough({ pieces, isStreamed: true })
    expect(ending.kind).toBe('lost')
    expect(deltas).toEqual([])
  })

  it('says in every frame that the answer is degraded', async () => {
    const pieces = frames(
      { index: 0, delta: { role: 'assistant', content: 'a' }, finish_reason: null },
      { index: 0, delta: { content: 'b' }, finish_reason: null },
      { index: 0, delta: {}, finish_reason: 'stop' },
    )
    const { text } = await relayThrough({ pieces, isStreamed: true, rung: 'short' })
    for (const one of framesOf(text)) expect(JSON.parse(one)).toMatchObject({ spillway: { rung: 'short' } })
  })
})
