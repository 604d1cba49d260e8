import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ResponseFault, ResponseParser } from './response-parser.ts'

interface Seen {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  body: string
  isWhole: boolean
}

/** Feeds bytes in pieces of these lengths, the last one over and over; every piece in the same buffer. */
function parse(text: string, cuts: readonly number[] = [text.length], closes = false): Seen & { mayReuse: boolean } {
  let seen: Seen | undefined
  const parser = new ResponseParser({
    onHead: (status, headers) => {
      seen = { status, headers, body: '', isWhole: false }
    },
    onData: (bytes) => {
      seen!.body += bytes.toString('latin1')
    },
    onEnd: () => {
      seen!.isWhole = true
    },
  })
  parser.begin()
  const all = Buffer.from(text, 'latin1')
  const shared = Buffer.alloc(all.length)
  let at = 0
  for (let i = 0; at < all.length; i++) {
    const size = Math.min(Math.max(1, cuts[Math.min(i, cuts.length - 1)] ?? 1), all.length - at)
    all.copy(shared, 0, at, at + size)
    parser.read(shared.subarray(0, size))
    shared.fill(0, 0, size)
    at += size
  }
  if (closes) parser.close()
  return { ...seen!, mayReuse: parser.mayReuse }
}

const chunked = (chunks: readonly string[], extension = '', trailers = ''): string =>
  `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n` +
  `${chunks.map((chunk) => `${chunk.length.toString(16)}${extension}\r\n${chunk}\r\n`).join('')}0\r\n${trailers}\r\n`

const sized = (body: string, more = ''): string =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n${more}content-length: ${body.length}\r\n\r\n${body}`

describe('ResponseParser', () => {
  const body = fc.string({ minLength: 1, maxLength: 40 }).map((text) => text.replaceAll(/[^\x20-\x7e]/g, '.'))
  const cuts = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 8 })

  it('finds the same answer in any split of its bytes', () => {
    fc.assert(
      fc.property(fc.array(body, { maxLength: 5 }), cuts, fc.boolean(), (chunks, sizes, isChunked) => {
        const text = isChunked ? chunked(chunks, ';a=b', 'x-t: 1\r\n') : sized(chunks.join(''))
        expect(parse(text, sizes)).toMatchObject({
          status: 200,
          body: chunks.join(''),
          isWhole: true,
          mayReuse: true,
        })
      }),
    )
  })

  it('passes over interim answers', () => {
    expect(parse(`HTTP/1.1 100 Continue\r\n\r\n${sized('yes')}`, [7])).toMatchObject({ body: 'yes', isWhole: true })
  })

  it('has no body where the status says so, or the length', () => {
    expect(parse('HTTP/1.1 204 No Content\r\n\r\n')).toMatchObject({ status: 204, isWhole: true, mayReuse: true })
    expect(parse(sized(''))).toMatchObject({ body: '', isWhole: true })
  })

  it('reads on until the connection closes when nothing else tells the end', () => {
    const text = 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nall of it'
    expect(parse(text, [9])).toMatchObject({ body: 'all of it', isWhole: false, mayReuse: false })
    expect(parse(text, [9], true)).toMatchObject({ body: 'all of it', isWhole: true })
  })

  it('knows an answer that breaks off', () => {
    for (const text of [sized('whole').slice(0, -1), chunked(['ab', 'cd']).slice(0, -3)]) {
      expect(parse(text, [5], true)).toMatchObject({ isWhole: false, mayReuse: false })
    }
  })

  it('uses a connection again only when both sides keep it', () => {
    expect(parse(sized('x', 'Connection: close\r\n')).mayReuse).toBe(false)
    expect(parse(sized('x').replace('1.1', '1.0')).mayReuse).toBe(false)
    expect(parse(sized('x', 'connection: Keep-Alive\r\n').replace('1.1', '1.0')).mayReuse).toBe(true)
  })

  const UNCLEAR: Readonly<Record<string, string>> = {
    'bytes after its end': `${sized('x')}HTTP/1.1 200 OK\r\n`,
    'two lengths': sized('x', 'content-length: 2\r\n'),
    'a length and an encoding': chunked(['x']).replace('Content-Type', 'content-length: 4\r\nContent-Type'),
    'another encoding': chunked(['x']).replace('chunked', 'gzip, chunked'),
    'a length that is no number': sized('x').replace('length: 1', 'length: +1'),
    'a folded header': sized('x', 'x-a: b\r\n c\r\n'),
    'a blank before the colon': sized('x', 'x-a : b\r\n'),
    'a bare line feed in a head': sized('x', 'x-a: b\nx-b: c\r\n'),
    'a bare line feed in a size': chunked(['ab']).replace('2\r\nab', '2\nab'),
    'a chunk longer than it says': chunked(['ab']).replace('2\r\nab', '1\r\nab'),
    'a size that is no number': chunked(['ab']).replace('2\r\nab', '0x2\r\nab'),
    'no size': chunked(['ab']).replace('2\r\nab', '\r\nab'),
    'another protocol': 'HTTP/1.1 101 Switching Protocols\r\n\r\n',
    'no HTTP': 'SSH-2.0-x\r\n\r\n',
    'a head without end': `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(70_000)}`,
    'trailers without end': chunked(['x'], '', `${'x-t: yyyyyyyy\r\n'.repeat(1_000)}`),
    'a size without end': chunked(['x'], `;${'y'.repeat(10_000)}`),
  }

  it.each(Object.keys(UNCLEAR))('refuses %s, however it is split', (name) => {
    const text = UNCLEAR[name] as string
    // The parser copies a head that is not whole with every piece: what is far under its limit comes in one.
    const first = text.length > 60_000 ? [60_000] : []
    for (const size of [1, 7, 100_000]) expect(() => parse(text, [...first, size])).toThrow(ResponseFault)
    expect(() => parse(text)).toThrow(ResponseFault)
  })
})
