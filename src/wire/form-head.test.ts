import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { FormHead } from './form-head.ts'
import { FORM_PARTS_MAX } from './read-form.ts'

const TYPE = 'multipart/form-data; boundary=xyz'
const field = (name: string, value: string): string =>
  `--xyz\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
const file = (name: string, content: string): string =>
  `--xyz\r\ncontent-disposition: form-data; name="${name}"; filename="a.wav"\r\n\r\n${content}\r\n`
const END = '--xyz--\r\n'

function read(text: string, pieces: readonly number[] = [text.length], type = TYPE): FormHead {
  const head = new FormHead(type)
  const bytes = Buffer.from(text)
  let at = 0
  for (const size of [...pieces, bytes.length]) {
    if (at >= bytes.length) break
    head.take(bytes.subarray(at, at + size))
    at += size
  }
  return head
}

const valuesOf = ({ fields }: FormHead): Record<string, string> =>
  Object.fromEntries(Array.from(fields, ([name, { value }]) => [name, value]))

describe('the head of a form', () => {
  it('has the plain fields that have come, and where they stand', () => {
    const text = field('model', 'whisper') + file('file', 'la la') + field('n', '2')
    const head = read(text)
    expect(valuesOf(head)).toEqual({ model: 'whisper' })
    const { from, to } = head.fields.get('model')!
    expect(head.bytes.toString('utf8', from, to)).toBe('whisper')
    expect(head.isWhole).toBe(false)
    expect(valuesOf(read(text + END))).toEqual({ model: 'whisper', n: '2' })
    expect(read(text + END).isWhole).toBe(true)
  })

  it('is the same however the bytes are cut', () => {
    const text = `preamble\r\n${field('model', 'whïsper')}${file('file', '\r\n--xy\r\n--x la')}${field('', '')}${END}`
    const whole = read(text)
    expect(valuesOf(whole)).toEqual({ model: 'whïsper', '': '' })
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 60 }), (pieces) => {
        const cut = read(text, pieces)
        expect(valuesOf(cut)).toEqual(valuesOf(whole))
        expect(cut.isWhole).toBe(true)
        expect(cut.firstAt).toBe(whole.firstAt)
        expect(cut.bytes.equals(Buffer.from(text))).toBe(true)
      }),
    )
  })

  it('keeps everything that comes, whatever it is', () => {
    const bit = fc.constantFrom('--xyz', '\r\n', '--', '"', 'content-disposition: form-data; name=a', 'x')
    fc.assert(
      fc.property(fc.array(bit), (bits) => {
        expect(read(bits.join('')).bytes.toString()).toBe(bits.join(''))
      }),
    )
  })

  it('passes over the content of files, and over long fields', () => {
    const head = read(file('model', 'not a name') + field('prompt', 'x'.repeat(2_000)) + field('model', 'flux') + END)
    expect(valuesOf(head)).toEqual({ model: 'flux' })
  })

  it('takes the first of two fields with one name', () => {
    expect(valuesOf(read(field('model', 'a') + field('model', 'b') + END))).toEqual({ model: 'a' })
  })

  it.each([
    ['no boundary', 'x', 'multipart/form-data'],
    ['a boundary that does not come', 'x'.repeat(2_000), TYPE],
    ['a part without a name', '--xyz\r\nx: y\r\n\r\nz\r\n', TYPE],
    ['text behind a boundary', '--xyzzy\r\n\r\n', TYPE],
    ['headers without end', `--xyz\r\n${'x'.repeat(9_000)}`, TYPE],
    ['too many parts', field('a', '1').repeat(FORM_PARTS_MAX + 2), TYPE],
  ])('finds %s', (_what, text, type) => {
    expect(read(text, [7, 100], type).problem).toBeTypeOf('string')
  })

  it('looks at each byte about once, also when they come one by one', () => {
    const search = vi.spyOn(Buffer.prototype, 'indexOf')
    const head = new FormHead(TYPE)
    head.take(Buffer.from(file('file', '').slice(0, -2)))
    const one = Buffer.from('x')
    for (let i = 0; i < 20_000; i++) head.take(one)
    const searched = search.mock.calls.reduce((sum, [, from], i) => {
      const { length } = search.mock.contexts[i] as unknown as Buffer
      return sum + length - Number(from ?? 0)
    }, 0)
    search.mockRestore()
    expect(head.problem).toBeUndefined()
    expect(head.bytes.length).toBeGreaterThan(20_000)
    // A view of the bytes has the length that it had then: each search begins at most one boundary before their end.
    expect(searched).toBeLessThan(20_000 * 12)
  })
})
