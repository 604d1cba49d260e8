import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { elementsOf, membersOf, memberText, spliceJson } from './splice-json.ts'

describe('a JSON text with some members changed', () => {
  it.each([
    ['changes', '{"id":"a","n":1.0}', { id: '"b"' }, '{"id":"b","n":1.0}'],
    ['adds at the end', '{"n":1e2}', { id: '"b"', m: '1' }, '{"n":1e2,"id":"b","m":1}'],
    ['adds to nothing', ' { } ', { id: '"b"' }, ' {"id":"b" } '],
    ['takes away the first', '{ "a" : 1 , "b" : 2 }', { a: null }, '{ "b" : 2 }'],
    ['takes away the last', '{ "a" : 1 , "b" : 2 }', { b: null }, '{ "a" : 1 }'],
    ['takes away the middle', '{"a":1,"b":2,"c":3}', { b: null }, '{"a":1,"c":3}'],
    ['takes away neighbours', '{"a":1,"b":2,"c":3,"d":4}', { a: null, b: null, d: null }, '{"c":3}'],
    ['takes away all and adds', '{"a":1,"b":2}', { a: null, b: null, c: '3' }, '{"c":3}'],
    ['takes away what is not there', '{"a":1}', { b: null }, '{"a":1}'],
    ['takes away the second of one name', '{"a":1,"b":2,"a":3}', { a: '9' }, '{"a":9,"b":2}'],
    ['knows a name however it is written', '{"\\u0069d":1}', { id: '2' }, '{"\\u0069d":2}'],
    ['is not misled by quotes and braces', '{"s":"\\\\\\"}],{","id":1}', { id: '2' }, '{"s":"\\\\\\"}],{","id":2}'],
    ['is not misled by a backslash at the end', '{"s":"\\\\","id":1}', { id: '2' }, '{"s":"\\\\","id":2}'],
    [
      'takes no name of every object for a change',
      '{"constructor":1,"toString":2}',
      { a: '3' },
      '{"constructor":1,"toString":2,"a":3}',
    ],
    ['leaves lists alone', '[{"id":1}]', { id: '2' }, '[{"id":1}]'],
    [
      'leaves what is nested alone',
      '{"a":{"id":1},"b":[{"id":1}]}',
      { id: '2' },
      '{"a":{"id":1},"b":[{"id":1}],"id":2}',
    ],
  ])('%s', (_, json, changes, wanted) => {
    expect(spliceJson(json, changes)).toBe(wanted)
    expect(() => JSON.parse(wanted)).not.toThrow()
  })

  it('is what changing the parsed value gives, for any object and any spacing', () => {
    const name = fc.oneof(fc.constantFrom('id', 'model', 'usage', 'a"b', 'é', '\\', ''), fc.string())
    const object = fc.dictionary(name, fc.jsonValue(), { maxKeys: 8 })
    const changes = fc.dictionary(name, fc.option(fc.jsonValue()), { maxKeys: 5 })
    fc.assert(
      fc.property(object, changes, fc.nat(3), (before, change, spaces) => {
        const texts = Object.fromEntries(
          Object.entries(change).map(([key, value]) => [key, value === null ? null : JSON.stringify(value)]),
        )
        const after = new Map(Object.entries(before))
        for (const [key, value] of Object.entries(change)) {
          if (value === null) after.delete(key)
          else after.set(key, value)
        }
        const json = JSON.stringify(before, undefined, spaces)
        const spliced = JSON.parse(spliceJson(json, texts)) as object
        expect(new Map(Object.entries(spliced))).toEqual(
          new Map(Object.entries(JSON.parse(JSON.stringify(Object.fromEntries(after))))),
        )
      }),
    )
  })
})

describe('parts of a JSON text', () => {
  it('are the texts of members and elements, as they were written', () => {
    expect(memberText('{"a": [1.0, 2] ,"b":null}', 'a')).toBe('[1.0, 2]')
    expect(memberText('{"a":1,"a":2}', 'a')).toBe('2')
    expect(memberText('{"a":1}', 'b')).toBeUndefined()
    expect(elementsOf(' [ 1.0 , "a,]" , {"x":[1]} ] ')).toEqual(['1.0', '"a,]"', '{"x":[1]}'])
    expect(elementsOf('[]')).toEqual([])
    expect(elementsOf('{}')).toBeUndefined()
    expect(membersOf('[]')).toBeUndefined()
  })

  it('put together again are the whole, for any list', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.nat(2), (list, spaces) => {
        const elements = elementsOf(JSON.stringify(list, undefined, spaces))
        expect(elements?.map((element) => JSON.parse(element) as unknown)).toEqual(JSON.parse(JSON.stringify(list)))
      }),
    )
  })
})
