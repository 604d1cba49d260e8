import { describe, expect, it } from 'vitest'
import { FormStream } from './form-stream.ts'

const TYPE = 'multipart/form-data; boundary=b0'
const part = (name: string, content: string, file = ''): string =>
  `--b0\r\ncontent-disposition: form-data; name="${name}"${file === '' ? '' : `; filename="${file}"`}\r\n\r\n${content}\r\n`
const FORM = `${part('purpose', 'batch')}${part('file', 'one\r\n--b1\r\ntwo\r\n-', 'a.jsonl')}${part('empty', '')}--b0--\r\n`

function read(form: string, pieceBytes: number) {
  const stream = new FormStream(TYPE)
  const parts: { name: string; fileName: string | undefined; text: string }[] = []
  const bytes = Buffer.from(form)
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    for (const event of stream.take(bytes.subarray(at, at + pieceBytes))) {
      if (event.kind === 'part') parts.push({ name: event.name, fileName: event.fileName, text: '' })
      else parts.at(-1)!.text += event.bytes.toString()
    }
  }
  return { parts, problem: stream.problem, isWhole: stream.isWhole }
}

describe('a form that is read as it comes', () => {
  it.each([1, 2, 3, 5, 17, 10_000])('has the same parts in pieces of %i bytes', (pieceBytes) => {
    expect(read(FORM, pieceBytes)).toEqual({
      parts: [
        { name: 'purpose', fileName: undefined, text: 'batch' },
        { name: 'file', fileName: 'a.jsonl', text: 'one\r\n--b1\r\ntwo\r\n-' },
        { name: 'empty', fileName: undefined, text: '' },
      ],
      problem: undefined,
      isWhole: true,
    })
  })

  it('takes an empty part whose line end is that of its headers', () => {
    const form = '--b0\r\ncontent-disposition: form-data; name="a"\r\n\r\n--b0--'
    expect(read(form, 4)).toMatchObject({ parts: [{ name: 'a', text: '' }], isWhole: true })
  })

  it('says what is wrong', () => {
    expect(new FormStream('multipart/form-data').problem).toContain('no boundary')
    expect(read('x'.repeat(2_000), 500).problem).toContain('not at the beginning')
    expect(read('--b0\r\nx: y\r\n\r\n', 100).problem).toContain('no name')
    expect(read(`--b0\r\n${'h'.repeat(9_000)}`, 1_000).problem).toContain('longer than')
    expect(read(part('f', 'x').repeat(70), 1_000).problem).toContain('more than 64 parts')
    expect(read(part('f', 'x'), 100)).toMatchObject({ isWhole: false, problem: undefined })
  })
})
