import { describe, expect, it } from 'vitest'
import { Type } from '../base/schema.ts'
import { makeCheck } from './check.ts'
import { readChat, readCompletion } from './read-body.ts'

/** What is said of a body that is wrong: which parameter, and what it should have been. */

const schema = Type.Object({
  name: Type.String(),
  count: Type.Optional(Type.Union([Type.Integer({ minimum: 1 }), Type.Null()])),
  kind: Type.Optional(Type.Union([Type.Literal('a'), Type.Literal('b')])),
  tags: Type.Optional(Type.Array(Type.String(), { minItems: 1, maxItems: 2 })),
  deep: Type.Optional(Type.Object({ list: Type.Array(Type.Object({ id: Type.Number() })) })),
  either: Type.Optional(Type.Union([Type.String(), Type.Array(Type.Object({ text: Type.String() }))])),
})
const check = makeCheck(schema)

it.each<[body: unknown, param: string | null, code: string | null, words: RegExp]>([
  [5, null, null, /must be a JSON object/],
  [[], null, null, /must be a JSON object/],
  [null, null, null, /must be a JSON object/],
  [{}, 'name', 'missing-required-parameter', /Missing required parameter: 'name'/],
  [{ name: 7 }, 'name', 'invalid-type', /must be a string/],
  [{ name: null }, 'name', 'invalid-type', /must be a string/],
  [{ name: 'x', count: 0 }, 'count', 'invalid-value', /count/],
  [{ name: 'x', count: 1.5 }, 'count', 'invalid-type', /must be an integer/],
  [{ name: 'x', count: '1' }, 'count', 'invalid-type', /must be an integer/],
  [{ name: 'x', kind: 'c' }, 'kind', 'invalid-type', /"a" or "b"/],
  [{ name: 'x', tags: [] }, 'tags', 'empty-array', /empty array/],
  [{ name: 'x', tags: ['a', 'b', 'c'] }, 'tags', 'invalid-value', /tags/],
  [{ name: 'x', tags: ['a', 5] }, 'tags[1]', 'invalid-type', /must be a string/],
  [{ name: 'x', deep: {} }, 'deep.list', 'missing-required-parameter', /deep\.list/],
  [{ name: 'x', deep: { list: [{ id: 1 }, { id: 'x' }] } }, 'deep.list[1].id', 'invalid-type', /must be a number/],
  [{ name: 'x', either: 5 }, 'either', 'invalid-type', /a string or an array/],
  [{ name: 'x', either: [{ text: 1 }] }, 'either[0].text', 'invalid-type', /must be a string/],
  [{ name: 'x', either: [{}] }, 'either[0].text', 'missing-required-parameter', /either\[0\]\.text/],
])('%j: %s, %s', (body, param, code, words) => {
  const checked = check(body)
  expect(checked).toMatchObject({
    kind: 'fault',
    fault: { param, code },
  })
  expect(checked.kind === 'fault' && checked.fault.message).toMatch(words)
})

describe('a body without further parameters', () => {
  const strict = makeCheck(
    Type.Object(
      {
        role: Type.Optional(Type.Enum(['auditor', 'member'])),
        terms: Type.Optional(Type.Object({ a: Type.Optional(Type.Number()) }, { additionalProperties: false })),
      },
      { additionalProperties: false },
    ),
  )

  it.each<[body: object, param: string, message: string]>([
    [{ secrets: [] }, 'secrets', "Unknown parameter: 'secrets'."],
    [{ terms: { b: 1 } }, 'terms.b', "Unknown parameter: 'terms.b'."],
    [JSON.parse('{"__proto__":{"role":"member"}}') as object, '__proto__', "Unknown parameter: '__proto__'."],
    [{ role: 'root' }, 'role', "Invalid 'role': it must be one of auditor, member."],
  ])('%j: %s', (body, param, message) => {
    expect(strict(body)).toMatchObject({ kind: 'fault', fault: { param, message, code: 'invalid-value' } })
  })

  it('does not repeat a long name', () => {
    const checked = strict({ ['x'.repeat(100_000)]: 1 })
    expect(checked.kind === 'fault' && checked.fault.message.length).toBeLessThan(300)
  })
})

it('passes what is right as it is, unknown keys and all', () => {
  const body = { name: 'x', count: null, extra: { a: 1 } }
  expect(check(body)).toEqual({ kind: 'ok', value: body })
})

describe('bodies of clients', () => {
  const read = (body: unknown) => readChat(Buffer.from(JSON.stringify(body)))

  it('every mistake is found in whatever order the keys come', () => {
    const messages = [{ role: 'user', content: 'hi' }]
    const wrongs = { temperature: 'hot', n: 0, stop: 5, stream: 'yes', seed: 1.5, tools: 7 }
    for (const [param, value] of Object.entries(wrongs)) {
      for (const body of [
        { model: 'm', messages, [param]: value },
        { [param]: value, messages, model: 'm' },
      ]) {
        expect(read(body)).toMatchObject({ kind: 'fault', fault: { param } })
      }
    }
  })

  it('names no parameter when the text is no JSON', () => {
    expect(readChat(Buffer.from('{'))).toMatchObject({ fault: { param: null, code: 'invalid-json' } })
    expect(readCompletion(Buffer.from([0xff]))).toMatchObject({ fault: { code: 'invalid-encoding' } })
  })

  it('takes every way of giving a prompt', () => {
    for (const prompt of ['text', ['one', 'two'], [1, 2], [[1], [2, 3]]]) {
      expect(readCompletion(Buffer.from(JSON.stringify({ model: 'm', prompt }))).kind).toBe('ok')
    }
  })
})
