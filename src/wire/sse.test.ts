import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SSE_DONE, SSE_FRAME_BYTES_MAX, SSE_KEEP_ALIVE, SseOverflow, SseReader } from './sse.ts'

/** Reads these pieces one after the other. */
function read(...pieces: Array<string | Buffer>): string[] {
  const reader = new SseReader()
  const seen: string[] = []
  for (const piece of pieces) reader.read(Buffer.from(piece as string), (data) => seen.push(data))
  return seen
}

/** Cuts bytes at these places, wherever they are: in the middle of a character or of a CRLF too. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [0, ...places.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]
  return at.slice(1).map((end, i) => bytes.subarray(at[i], end))
}

const lineEnd = fc.constantFrom('\n', '\r\n', '\r')
/** One line of data: any text at all, except what ends a line. */
const line = fc.string({ unit: 'binary', maxLength: 30 }).map((text) => text.replaceAll(/[\r\n]/g, '·').toWellFormed())
const noise = fc.constantFrom(
  ': a comment',
  ':',
  'event: message',
  'id: 7',
  'retry: 10',
  'database: no',
  'dat',
  'unknown',
)

interface Piece {
  readonly lines: readonly string[]
  readonly noise: readonly string[]
  readonly hasSpace: boolean
  readonly end: string
}

const piece: fc.Arbitrary<Piece> = fc.record({
  lines: fc.array(line, { minLength: 1, maxLength: 3 }),
  noise: fc.array(noise, { maxLength: 2 }),
  hasSpace: fc.boolean(),
  end: lineEnd,
})

/** A first space after the colon belongs to the format, so data that begins with one needs another. */
function encode({ lines, noise, hasSpace, end }: Piece): string {
  const data = lines.map((text) => `data:${hasSpace || text.startsWith(' ') ? ' ' : ''}${text}`)
  return [...noise, ...data, ''].map((text) => text + end).join('')
}

describe('any split of bytes gives the same frames', () => {
  it('for any text, line ends, comments, other fields and several lines of data', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 6 }), fc.array(fc.nat(2_000), { maxLength: 12 }), (pieces, places) => {
        const bytes = Buffer.from(pieces.map(encode).join(''))
        expect(read(...cut(bytes, places))).toEqual(pieces.map(({ lines }) => lines.join('\n')))
      }),
      { numRuns: 1_000 },
    )
  })

  it('byte by byte', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 4 }), (pieces) => {
        const bytes = Buffer.from(pieces.map(encode).join(''))
        const single = Array.from(bytes, (byte) => Buffer.from([byte]))
        expect(read(...single)).toEqual(pieces.map(({ lines }) => lines.join('\n')))
      }),
      { numRuns: 200 },
    )
  })

  it('for any bytes whatsoever', () => {
    const anything = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes))
    fc.assert(
      fc.property(anything, fc.array(fc.nat(200), { maxLength: 8 }), (bytes, places) => {
        expect(read(...cut(bytes, places))).toEqual(read(bytes))
      }),
      { numRuns: 1_000 },
    )
  })

  it('when the caller uses its buffer again', () => {
    const reader = new SseReader()
    const seen: string[] = []
    const buffer = Buffer.from('data: fir')
    reader.read(buffer, (data) => seen.push(data))
    buffer.fill('x')
    reader.read(Buffer.from('st\n\n'), (data) => seen.push(data))
    expect(seen).toEqual(['first'])
  })
})

describe('the format', () => {
  it.each([
    ['one frame', 'data: a\n\n', ['a']],
    ['without a space', 'data:a\n\n', ['a']],
    ['only one space goes', 'data:  a\n\n', [' a']],
    ['an empty value', 'data:\n\n', ['']],
    ['a field without a colon', 'data\n\n', ['']],
    ['two lines', 'data: a\ndata: b\n\n', ['a\nb']],
    ['a frame without data is none', ': hi\n\nevent: x\n\n', []],
    ['what has not ended is not there', 'data: a\n\ndata: b\n', ['a']],
    ['other fields', 'id: 1\ndata: a\nevent: x\n\n', ['a']],
    ['a byte order mark at the start', '\uFEFFdata: a\n\n', ['a']],
    ['and only there', 'data: a\n\n\uFEFFdata: b\n\n', ['a']],
    ['mixed line ends', 'data: a\r\rdata: b\n\r\ndata: c\r\n\n', ['a', 'b', 'c']],
    ['our own marks', `${SSE_KEEP_ALIVE}${SSE_DONE}`, ['[DONE]']],
  ])('%s', (_what, text, frames) => {
    expect(read(text)).toEqual(frames)
    expect(read(...text.split(''))).toEqual(frames)
  })
})

describe('memory', () => {
  it('is bounded for a line that never ends', () => {
    const reader = new SseReader()
    const piece = Buffer.alloc(64 << 10, 'x')
    let taken = 0
    const flood = (): void => {
      for (; taken < 4 * SSE_FRAME_BYTES_MAX; taken += piece.length) reader.read(piece, () => {})
    }
    expect(flood).toThrow(SseOverflow)
    expect(taken).toBeLessThanOrEqual(SSE_FRAME_BYTES_MAX + piece.length)
  })

  it('is bounded for a frame that never ends', () => {
    const reader = new SseReader()
    const piece = Buffer.from('data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n'.repeat(1_000))
    let taken = 0
    const flood = (): void => {
      for (; taken < 4 * SSE_FRAME_BYTES_MAX; taken += piece.length) reader.read(piece, () => {})
    }
    expect(flood).toThrow(SseOverflow)
    expect(taken).toBeLessThanOrEqual(2 * SSE_FRAME_BYTES_MAX)
  })

  it('has room for a frame just under the bound', () => {
    const text = 'x'.repeat(SSE_FRAME_BYTES_MAX - 10)
    expect(read('data: ', text, '\n\n')).toEqual([text])
  })
})
