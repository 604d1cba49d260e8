import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { jsonLeaves, stringAt } from './json-leaves.ts'

const textsOf = (json: string) =>
  jsonLeaves(json).leaves.map(({ kind, start, end, member, above, top }) => ({
    kind,
    text: kind === 'number' ? json.slice(start, end) : stringAt(json, start, end),
    member,
    above,
    top,
  }))

/** Every string of a value: names and texts, in the order of its JSON. */
function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (Array.isArray(value)) return value.flatMap(stringsIn)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, child]) => [name, ...stringsIn(child)])
}

describe('the strings of a JSON text', () => {
  it('are all of them, names included, whatever the value is', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.integer({ min: 0, max: 3 }), (value, spaces) => {
        const json = JSON.stringify(value, null, spaces)
        const strings = textsOf(json).filter(({ kind }) => kind !== 'number')
        expect(strings.map(({ text }) => text)).toEqual(stringsIn(JSON.parse(json)))
      }),
    )
  })

  it('know their places, through lists', () => {
    const json = '{"messages": [{"role":"user","content":[{"type":"text","text":"hi"}]}], "user":"u"}'
    expect(textsOf(json).filter(({ kind }) => kind === 'text')).toEqual([
      { kind: 'text', text: 'user', member: 'role', above: 'messages', top: 'messages' },
      { kind: 'text', text: 'text', member: 'type', above: 'content', top: 'messages' },
      { kind: 'text', text: 'hi', member: 'text', above: 'content', top: 'messages' },
      { kind: 'text', text: 'u', member: 'user', above: '', top: 'user' },
    ])
  })

  it('are found also where a second member of the same name hides them', () => {
    expect(textsOf('{"a":"first","a":"second"}').map(({ text }) => text)).toEqual(['a', 'first', 'a', 'second'])
  })

  it('have long whole numbers beside them, and no others', () => {
    const json =
      '{"a":4111111111111111,"b":0.4111111111111111,"c":[411111111111],"d":41111111111111112222,"e":4111111111111111.0}'
    expect(textsOf(json).filter(({ kind }) => kind === 'number')).toEqual([
      { kind: 'number', text: '4111111111111111', member: 'a', above: '', top: 'a' },
      { kind: 'number', text: '4111111111111111.0', member: 'e', above: '', top: 'e' },
    ])
  })

  it('tell the members with lists of numbers', () => {
    const { numberLists } = jsonLeaves('{"prompt":[1,2],"input":[["a"],[ -3]],"x":{"y":["1"]}}')
    expect([...numberLists]).toEqual(['prompt', 'input'])
  })

  it.each(['"', '{"a', '{"a":"\\', ']]}}', '{"a":"b\\"', '{"a" "b"}'])('come to an end in %j', (broken) => {
    expect(() => jsonLeaves(broken)).not.toThrow()
  })
})
