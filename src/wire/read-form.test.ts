import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { FORM_PARTS_MAX, readForm } from './read-form.ts'

/** A form as Node's own client encodes it. */
async function encoded(form: FormData): Promise<[bytes: Buffer, contentType: string]> {
  const response = new Response(form)
  return [Buffer.from(await response.arrayBuffer()), response.headers.get('content-type') ?? '']
}

const partsOf = (bytes: Buffer, contentType: string) => {
  const read = readForm(bytes, contentType)
  expect(read).toMatchObject({ kind: 'ok' })
  return read.kind === 'ok' ? read.parts : []
}

describe('a form', () => {
  it('that Node’s client encodes is read back, whatever is in it', async () => {
    const text = fc.string({ unit: fc.constantFrom('a', '"', '\\', '\r\n', '-', '--', 'é', ' ', ';', '%') })
    const name = fc.string({ unit: fc.constantFrom('a', '"', 'é', ' ', ';', '=', '-'), minLength: 1 })
    const fields = fc.array(fc.tuple(name, text, fc.option(name)), { maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(fields, async (given) => {
        const form = new FormData()
        for (const [field, content, fileName] of given) {
          if (fileName === null) form.append(field, content)
          else form.append(field, new File([content], fileName))
        }
        const parts = partsOf(...(await encoded(form)))
        expect(parts.map(({ content }) => content.toString())).toEqual(
          // Line ends of plain fields are encoded as CRLF, which they are here already.
          given.map(([, content]) => content),
        )
        expect(parts.map(({ name: field, fileName }) => [field, fileName])).toEqual(
          given.map(([field, , fileName]) => [field, fileName ?? undefined]),
        )
      }),
    )
  })

  it('of curl and of older clients is read too', () => {
    const body = [
      'a preamble',
      '--xyz ',
      'Content-Disposition: form-data; name="file"; filename="a \\"b\\".md"',
      'Content-Type: text/plain',
      '',
      'one',
      'two',
      '--xyz',
      'content-disposition: form-data; name=purpose',
      '',
      '',
      '--xyz--',
      'an epilogue',
    ].join('\r\n')
    for (const type of ['multipart/form-data; boundary=xyz', 'multipart/form-data; charset=utf-8; boundary="xyz"']) {
      expect(partsOf(Buffer.from(body), type)).toEqual([
        { name: 'file', fileName: 'a "b".md', content: Buffer.from('one\r\ntwo') },
        { name: 'purpose', fileName: undefined, content: Buffer.from('') },
      ])
    }
  })

  it('is not copied', () => {
    const bytes = Buffer.from('--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nhello\r\n--x--\r\n')
    expect(partsOf(bytes, 'multipart/form-data; boundary=x')[0]?.content.buffer).toBe(bytes.buffer)
  })

  const part = '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n'
  it.each([
    ['without a boundary', 'multipart/form-data', '--x--'],
    ['with another boundary', 'multipart/form-data; boundary=y', '--x--'],
    ['that ends too early', 'multipart/form-data; boundary=x', part],
    ['with a part without headers', 'multipart/form-data; boundary=x', '--x\r\n\r\n--x--'],
    ['with a part without a name', 'multipart/form-data; boundary=x', '--x\r\nA: b\r\n\r\n\r\n--x--'],
    ['with endless headers', 'multipart/form-data; boundary=x', `--x\r\nA: ${'b'.repeat(9_000)}\r\n\r\n\r\n--x--`],
    ['without a line end', 'multipart/form-data; boundary=x', '--xy--x--'],
    ['of too many parts', 'multipart/form-data; boundary=x', `${part.repeat(FORM_PARTS_MAX + 1)}--x--`],
  ])('%s is refused', (_what, type, body) => {
    expect(readForm(Buffer.from(body), type)).toMatchObject({ kind: 'fault', fault: { code: 'invalid-file' } })
  })

  it('of 500,000 empty parts is read as far as one of a few: what follows is not looked at', () => {
    const few = readForm(Buffer.from(`${part.repeat(FORM_PARTS_MAX + 1)}--x--`), 'multipart/form-data; boundary=x')
    const bytes = Buffer.from(part.repeat(500_000))
    const searches = vi.spyOn(bytes, 'indexOf')
    expect(readForm(bytes, 'multipart/form-data; boundary=x')).toEqual(few)
    expect(searches.mock.calls.length).toBeGreaterThan(0)
    expect(searches.mock.calls.length).toBeLessThan(20 * FORM_PARTS_MAX)
  })
})
