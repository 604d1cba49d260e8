import { expect, it } from 'vitest'
import { LineSplitter } from './split-lines.ts'

const TEXT = '{"a":1}\n\n  {"b":"ü"}\r\n\t \n{"c":3}'

function split(
  text: string,
  pieceBytes: number,
  lineBytesMax = 1_000,
): { no: number; at: number; length: number; text: string }[] {
  const bytes = Buffer.from(text)
  const splitter = new LineSplitter(lineBytesMax)
  const lines = []
  for (let at = 0; at < bytes.length; at += pieceBytes)
    for (const line of splitter.take(bytes.subarray(at, at + pieceBytes))) if (line !== undefined) lines.push(line)
  const last = splitter.end()
  if (last !== undefined) lines.push(last)
  return lines.map(({ bytes: part, ...place }) => ({ ...place, text: Buffer.from(part).toString() }))
}

it.each([1, 2, 3, 7, 1_000])('finds the same lines in pieces of %i bytes, and says where they stand', (pieceBytes) => {
  const lines = split(TEXT, pieceBytes)
  expect(lines.map(({ text }) => text)).toEqual(['{"a":1}', '{"b":"ü"}', '{"c":3}'])
  const bytes = Buffer.from(TEXT)
  for (const { at, length, text } of lines) expect(bytes.subarray(at, at + length).toString()).toBe(text)
  expect(lines.map(({ no }) => no)).toEqual([0, 1, 2])
})

it('cuts a line that is too long, and keeps its true length', () => {
  const [long, next] = split(`${'x'.repeat(5_000)}\n{}`, 100, 50)
  expect(long).toMatchObject({ length: 5_000 })
  expect(long?.text.length).toBe(51)
  expect(next).toMatchObject({ at: 5_001, length: 2, text: '{}' })
})

it('finds nothing in nothing', () => expect(split('\n \r\n\n', 2)).toEqual([]))

it('gives blank lines out, one by one', () => {
  const splitter = new LineSplitter(1_000)
  expect([...splitter.take(Buffer.from('\n \r\n\n{}\n'))].map((line) => line?.no)).toEqual([
    undefined,
    undefined,
    undefined,
    0,
  ])
})
