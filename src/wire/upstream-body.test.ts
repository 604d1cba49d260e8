import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { oddNumber, shuffled, someOrder, unknownMembers, written } from '../../test/support/odd-json.ts'
import { exactJson } from '../../test/support/relay-through.ts'
import { makeRequest } from '../../test/support/requests.ts'
import type { Plan } from '../domain/plan.ts'
import type { Request } from '../domain/request.ts'
import { embeddingBody, type UpstreamStyle, upstreamBody } from './upstream-body.ts'

type Json = Record<string, unknown>

const KNOWN = [
  'model',
  'messages',
  'stream',
  'stream_options',
  'max_tokens',
  'max_completion_tokens',
  'spillway',
  'priority',
]
const more = unknownMembers(KNOWN)
const plan = (over: Partial<Plan> = {}): Plan =>
  ({ keptSegments: [0, 1], outputTokensMax: 8_000, ...over }) as unknown as Plan

/** A request as it arrives: its text, and what was parsed from it. */
const requestOf = (raw: string, over: Partial<Request> = {}): Request => {
  const body = JSON.parse(raw) as Json
  return makeRequest({ text: { body, raw }, isStreamed: body['stream'] === true, ...over })
}

const sent = (body: Json, over: Partial<Plan> = {}, style: UpstreamStyle = {}, request: Partial<Request> = {}): Json =>
  JSON.parse(upstreamBody(requestOf(JSON.stringify(body), request), plan(over), 'theirs', style)) as Json

const message = more.map((beside) => ({ role: 'user', content: 'hi', ...beside }))
const asked = fc
  .record({
    more,
    messages: fc.tuple(message, message),
    temperature: oddNumber,
    stream: fc.boolean(),
    spillway: fc.option(more, { nil: undefined }),
    streamOptions: fc.option(more, { nil: undefined }),
    order: someOrder,
    spaces: fc.constantFrom(0, 2),
  })
  .map(({ more: beside, messages, temperature, stream, spillway, streamOptions, order, spaces }) => {
    const all = { model: 'ours', messages, temperature, stream, ...beside }
    const ours = spillway === undefined ? {} : { spillway, priority: 3 }
    const options = streamOptions === undefined ? {} : { stream_options: streamOptions }
    return { raw: written(shuffled({ ...all, ...ours, ...options }, order), spaces) }
  })

describe('what an engine is asked is what the client asked', () => {
  it('for any body: as it was written, but for what is ours', () => {
    fc.assert(
      fc.property(asked, fc.boolean(), ({ raw }, isTrimmed) => {
        const kept = isTrimmed ? [1] : [0, 1]
        const got = exactJson(upstreamBody(requestOf(raw), plan({ keptSegments: kept }), 'theirs')) as Json
        const { spillway: _ours, priority: _bid, ...theirs } = exactJson(raw) as Json
        const messages = theirs['messages'] as unknown[]
        const wanted: Json = { ...theirs, model: 'theirs', messages: kept.map((index) => messages[index]) }
        if (theirs['stream'] === true) {
          wanted['stream_options'] = { ...(theirs['stream_options'] as Json | undefined), include_usage: true }
        }
        expect(got).toEqual(wanted)
      }),
      { numRuns: 300 },
    )
  })

  it('also of texts to embed', () => {
    const raw = '{"input":["a"], "model":"ours","dimensions":64.0,"encoding_format":"base64","spillway":{},"x":1e2}'
    expect(embeddingBody(requestOf(raw), 'theirs')).toBe(
      '{"input":["a"], "model":"theirs","dimensions":64.0,"encoding_format":"base64","x":1e2}',
    )
  })

  it('but for a body with two members of one name: engines could take the other one', () => {
    const raw = '{"model":"ours","messages":[{"role":"user","content":"checked"}],"n":1,"n":2}'
    expect(upstreamBody(requestOf(raw), plan({ keptSegments: [0] }), 'theirs')).toBe(
      '{"model":"theirs","messages":[{"role":"user","content":"checked"}],"n":2}',
    )
  })
})

describe('the bound of the answer', () => {
  const chat = { model: 'ours', messages: [] }
  it.each<[string, Json, Partial<Plan>, UpstreamStyle, Json]>([
    ['none', {}, {}, {}, {}],
    ['a null', { max_tokens: null }, {}, {}, { max_tokens: null }],
    ['the client’s', { max_tokens: 9 }, { sentTokensMax: 9 }, {}, { max_tokens: 9 }],
    ['of no tokens', { max_tokens: 0 }, { outputTokensMax: 1, sentTokensMax: 0 }, {}, { max_tokens: 0 }],
    [
      'both of the client’s',
      { max_tokens: 9, max_completion_tokens: 8 },
      {},
      {},
      { max_tokens: 9, max_completion_tokens: 8 },
    ],
    ['the ladder’s', {}, { outputTokensMax: 384, sentTokensMax: 384 }, {}, { max_tokens: 384 }],
    [
      'the ladder’s, below the client’s',
      { max_completion_tokens: 999 },
      { outputTokensMax: 384 },
      {},
      { max_completion_tokens: 384 },
    ],
    ['renamed', { max_tokens: 9 }, {}, { outputBound: 'max_completion_tokens' }, { max_completion_tokens: 9 }],
    ['renamed, though nothing is set', { max_tokens: null }, {}, { outputBound: 'max_completion_tokens' }, {}],
    [
      'one of two',
      { max_tokens: 9, max_completion_tokens: 8 },
      {},
      { outputBound: 'max_completion_tokens' },
      { max_completion_tokens: 8 },
    ],
  ])('%s', (_, bound, over, style, wanted) => {
    expect(sent({ ...chat, ...bound }, { keptSegments: [], ...over }, style)).toEqual({
      model: 'theirs',
      messages: [],
      ...wanted,
    })
  })

  it('of a text completion keeps its name: there is no other', () => {
    const body = { model: 'ours', prompt: 'a', max_tokens: 9 }
    const style = { outputBound: 'max_completion_tokens' as const }
    expect(sent(body, {}, style, { kind: 'completion' })).toEqual({ ...body, model: 'theirs' })
  })
})
