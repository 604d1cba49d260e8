import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { AnswerIdentity, StreamWriter, WholeWriter } from './dialect.ts'
import { NativeMessages } from './messages-native.ts'
import { NativeStream, NativeWhole } from './native-stream.ts'
import { NativeResponses } from './responses-native.ts'

/** What reaches the client differs from what the engine sent only in the members that are ours. */
const IDENTITY: AnswerIdentity = { kind: 'chat', id: 'ours', createdAtS: 1, model: 'alias', includesUsage: false }
const USAGE = { promptTokens: 11, cachedTokens: 4, outputTokens: 3 }
const TOLD = {
  responses: { input_tokens: 11, input_tokens_details: { cached_tokens: 4 }, output_tokens: 3, x: 1 },
  messages: { input_tokens: 7, cache_read_input_tokens: 4, output_tokens: 3, x: 1 },
}
const END = { responses: 'response.completed', messages: 'message_delta' }
const untold = {} as StreamWriter & WholeWriter

const wordsOf = { responses: () => new NativeResponses(), messages: () => new NativeMessages() }
const dataOf = (text: string): unknown[] =>
  text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [JSON.parse(line.slice(6)) as unknown] : []))

const member = fc.string().filter((name) => name !== '__proto__')
const anything = fc.dictionary(member, fc.jsonValue(), { noNullPrototype: true })

it.each(['responses', 'messages'] as const)('events of %s are passed on whatever they have', (dialect) => {
  const object = dialect === 'responses' ? 'response' : 'message'
  const event = fc.tuple(fc.boolean(), anything, anything)
  fc.assert(
    fc.property(fc.array(event), fc.boolean(), (drawn, keepsModel) => {
      const writer = new NativeStream(untold, wordsOf[dialect](), IDENTITY)
      const said = drawn.map(([isObject, more, inner]) => ({
        ...more,
        type: 'some.event',
        ...(isObject ? { [object]: { ...inner, id: 'theirs', model: 'their-model' } } : { [object]: 1 }),
      }))
      const ended = { [object]: { id: 'theirs', model: 'their-model', usage: TOLD[dialect] }, usage: TOLD[dialect] }
      const all = [...said, { ...ended, type: END[dialect] }]
      const got = all.map((one) => writer.relay({ json: JSON.stringify(one), keepsModel, dialect })).join('')
      const expected = all.map((one) => {
        const theirs = (one as Record<string, unknown>)[object]
        if (typeof theirs !== 'object') return one
        return { ...one, [object]: { ...theirs, id: 'ours', ...(!keepsModel && { model: 'alias' }) } }
      })
      expect(dataOf(got + writer.end(USAGE))).toEqual(JSON.parse(JSON.stringify(expected)))
    }),
    { numRuns: 60, seed: 14 },
  )
})

it.each(['responses', 'messages'] as const)('a document of %s keeps all but id, model and usage', (dialect) => {
  fc.assert(
    fc.property(anything, (more) => {
      const document = { ...more, id: 'theirs', model: 'their-model', usage: TOLD[dialect] }
      const writer = new NativeWhole(untold, wordsOf[dialect](), IDENTITY)
      writer.relay({ json: JSON.stringify(document), keepsModel: false, dialect })
      const same = writer.encode(USAGE)
      expect(JSON.parse(same)).toEqual(JSON.parse(JSON.stringify({ ...document, id: 'ours', model: 'alias' })))
      const counted = JSON.parse(writer.encode({ ...USAGE, outputTokens: 2 })) as { usage: object }
      expect(counted.usage).toMatchObject({ output_tokens: 2, x: 1 })
    }),
    { numRuns: 60, seed: 14 },
  )
})

it('an answer in several lines stays one event', () => {
  const writer = new NativeStream(untold, new NativeMessages(), IDENTITY)
  const json = '{\n"type":"ping"\n}'
  expect(writer.relay({ json, keepsModel: true, dialect: 'messages' })).toBe('event: ping\ndata: { "type":"ping" }\n\n')
})
