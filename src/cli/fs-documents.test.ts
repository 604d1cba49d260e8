import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { documentsIn } from './fs-documents.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-documents-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const put = (name: string, content: string | Buffer): string => {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

it('one document for a text, one for each line of JSON Lines, none for what is empty', () => {
  mkdirSync(join(folder, 'good'))
  put('good/a.md', '# Title\ntext')
  put('good/empty.txt', ' \n')
  put('good/picture.png', Buffer.from([0x89, 0x50]))
  put('good/b.jsonl', '{"text":"one","title":"first","attributes":{"year":2020}}\n\n{"content":"two"}\n')
  expect([...documentsIn(join(folder, 'good'))]).toEqual([
    { name: 'a.md', text: '# Title\ntext' },
    { name: 'first', text: 'one', attributes: { year: 2020 } },
    { name: 'b.jsonl:3', text: 'two' },
  ])
})

it.each([
  ['a broken line', 'x.jsonl', '{"text":"one"}\n{"text":"tw', 'x.jsonl:2 is not JSON.'],
  ['a line that is no object', 'y.jsonl', '{"text":"one"}\nnull\n', 'y.jsonl:2 is not a JSON object.'],
  ['a line without text', 'z.jsonl', '{"text":""}', 'z.jsonl:1 has no "text".'],
  ['bytes that are no text', 'b.txt', Buffer.from([0x66, 0xff, 0xfe, 0x00]), 'b.txt is not text in UTF-8'],
])('%s is told with its place', (_, name, content, problem) => {
  const path = put(name, content)
  expect(() => [...documentsIn(path)]).toThrow(problem)
})

it('a path that leads nowhere is told', () => {
  expect(() => [...documentsIn(join(folder, 'nowhere'))]).toThrow('does not exist')
})
