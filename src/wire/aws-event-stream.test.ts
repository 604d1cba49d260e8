import { describe, expect, it } from 'vitest'
import { awsFrame } from '../../test/support/fake-sagemaker.ts'
import { AWS_FRAME_BYTES_MAX, AwsEventStream } from './aws-event-stream.ts'

const TEXTS = ['data: {"a":1}\n\n', 'wäter 🌊', '', 'x'.repeat(70_000)]
const WHOLE = Buffer.concat(TEXTS.map((text) => awsFrame(text, { ':content-type': 'application/octet-stream' })))

function readIn(bytes: Buffer, size: number): { readonly texts: string[]; readonly isBetween: boolean } {
  const stream = new AwsEventStream()
  const texts: string[] = []
  // One buffer for all pieces, as connections have it.
  const shared = Buffer.alloc(size)
  for (let at = 0; at < bytes.length; at += size) {
    const count = bytes.copy(shared, 0, at, at + size)
    stream.read(shared.subarray(0, count), ({ headers, payload }) => {
      expect(headers.get(':event-type')).toBe('PayloadPart')
      texts.push(payload.toString('utf8'))
    })
  }
  return { texts, isBetween: stream.isBetween }
}

describe('AWS’s frames', () => {
  it.each([1, 2, 3, 5, 7, 11, 12, 13, 64, 1_000, 65_536, WHOLE.length])('are read in pieces of %i bytes', (size) => {
    expect(readIn(WHOLE, size)).toEqual({ texts: TEXTS, isBetween: true })
  })

  it('that are cut off leave something over, wherever that is', () => {
    const frame = awsFrame('weir')
    for (let end = 1; end < frame.length; end++) {
      expect(readIn(frame.subarray(0, end), 4)).toEqual({ texts: [], isBetween: false })
    }
  })

  it('with any one bit changed are never taken for another message', () => {
    const frame = awsFrame('weir')
    for (let bit = 0; bit < frame.length * 8; bit++) {
      const bad = Buffer.from(frame)
      bad[bit >> 3]! ^= 1 << (bit & 7)
      expect(() => readIn(bad, bad.length)).toThrow('CORRUPT_FRAME')
    }
  })

  it('that would be too long are refused by their first bytes', () => {
    const long = awsFrame(Buffer.alloc(AWS_FRAME_BYTES_MAX))
    expect(() => readIn(long.subarray(0, 12), 12)).toThrow('FRAME_TOO_LONG')
  })

  it('may have headers that are no texts', async () => {
    const { EventStreamCodec } = await import('@smithy/core/event-streams')
    const codec = new EventStreamCodec(
      (bytes) => Buffer.from(bytes as Uint8Array).toString(),
      (text) => Buffer.from(text),
    )
    const headers = {
      yes: { type: 'boolean', value: true },
      byte: { type: 'byte', value: 1 },
      short: { type: 'short', value: 2 },
      integer: { type: 'integer', value: 3 },
      binary: { type: 'binary', value: Buffer.from('abc') },
      at: { type: 'timestamp', value: new Date(0) },
      id: { type: 'uuid', value: '00000000-0000-0000-0000-000000000000' },
      text: { type: 'string', value: 'wört' },
    } as const
    const stream = new AwsEventStream()
    const said: Array<ReadonlyMap<string, string>> = []
    stream.read(Buffer.from(codec.encode({ headers, body: Buffer.from('') })), (message) => said.push(message.headers))
    expect(said).toEqual([new Map([['text', 'wört']])])
  })
})
