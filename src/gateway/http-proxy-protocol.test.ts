import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readProxyHeader } from './http-proxy-protocol.ts'

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const binary = (versionAndCommand: number, familyAndProtocol: number, rest: Buffer): Buffer => {
  const head = Buffer.from([versionAndCommand, familyAndProtocol, rest.length >> 8, rest.length & 255])
  return Buffer.concat([SIGNATURE, head, rest])
}
const ports = Buffer.from([0x1f, 0x90, 0x01, 0xbb])
const four = Buffer.concat([Buffer.from([203, 0, 113, 7, 10, 0, 0, 1]), ports])
const six = Buffer.concat([Buffer.from('20010db8000000000000000000000001', 'hex'), Buffer.alloc(16), ports])
const mapped = Buffer.concat([Buffer.from('00000000000000000000ffffcb007107', 'hex'), Buffer.alloc(16), ports])

const good: ReadonlyArray<readonly [string, Buffer, string | undefined]> = [
  ['TCP4', Buffer.from('PROXY TCP4 203.0.113.7 10.0.0.1 56324 443\r\n'), '203.0.113.7'],
  ['TCP6', Buffer.from('PROXY TCP6 2001:db8::1 ::1 56324 443\r\n'), '2001:db8::1'],
  ['UNKNOWN', Buffer.from('PROXY UNKNOWN\r\n'), undefined],
  ['UNKNOWN with addresses', Buffer.from('PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n'), undefined],
  ['version 2, IPv4', binary(0x21, 0x11, four), '203.0.113.7'],
  ['version 2, IPv4 with additions', binary(0x21, 0x11, Buffer.concat([four, Buffer.alloc(300)])), '203.0.113.7'],
  ['version 2, IPv6', binary(0x21, 0x21, six), '2001:db8::1'],
  ['version 2, IPv4 inside IPv6', binary(0x21, 0x21, mapped), '::ffff:203.0.113.7'],
  ['version 2, of the proxy itself', binary(0x20, 0x00, Buffer.alloc(0)), undefined],
  ['version 2, a Unix socket', binary(0x21, 0x31, Buffer.alloc(216)), undefined],
]

it.each(good)('%s: the address, and where the client begins', (_, header, address) => {
  expect(readProxyHeader(header)).toEqual({ kind: 'ok', length: header.length, address })
  expect(readProxyHeader(Buffer.concat([header, Buffer.from('GET / HTTP/1.1')]))).toMatchObject({
    length: header.length,
  })
})

it.each(good)('%s: every part of it is waited for', (_, header) => {
  for (let length = 0; length < header.length; length++)
    expect(readProxyHeader(header.subarray(0, length))).toEqual({ kind: 'incomplete' })
})

it.each([
  ['a request', Buffer.from('GET / HTTP/1.1\r\n')],
  ['another word', Buffer.from('PROXX TCP4 1.2.3.4 1.2.3.4 1 1\r\n')],
  ['no address', Buffer.from('PROXY TCP4 one two 1 1\r\n')],
  ['the other family', Buffer.from('PROXY TCP4 ::1 ::1 1 1\r\n')],
  ['a port too high', Buffer.from('PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n')],
  ['no ports', Buffer.from('PROXY TCP4 1.2.3.4 1.2.3.4\r\n')],
  ['no end', Buffer.from(`PROXY TCP4 ${'1'.repeat(120)}`)],
  ['version 3', binary(0x31, 0x11, four)],
  ['an unknown command', binary(0x22, 0x11, four)],
  ['an unknown family', binary(0x21, 0x51, four)],
  ['too short for its family', binary(0x21, 0x11, four.subarray(0, 8))],
  ['too long', binary(0x21, 0x11, Buffer.alloc(5_000))],
])('%s is refused', (_, header) => {
  expect(readProxyHeader(header)).toEqual({ kind: 'invalid' })
})

it('no bytes make it throw, and what it waits for is bounded', () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array)),
    fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.concat([SIGNATURE, Buffer.from(array)])),
    fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.concat([Buffer.from('PROXY '), Buffer.from(array)])),
  )
  const waitsTooLong = fc.check(
    fc.property(bytes, (some) => readProxyHeader(some).kind !== 'incomplete' || some.length < 4_096),
  )
  expect(waitsTooLong).toMatchObject({ failed: false })
})
