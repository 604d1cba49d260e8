import { describe, expect, it } from 'vitest'
import { fuzzFastPath } from '../../test/support/fast-path-fuzz.ts'
import { HeadReader, readWholePost } from './http-fast-head.ts'

const HEAD = 'POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
const read = (text: string) => readWholePost(Buffer.from(text, 'latin1'))

describe('a read that is one plain request', () => {
  it('is taken with its address, headers and body', () => {
    const post = read(`${HEAD}X-Own-Name: some value: here\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\n{}`)
    expect(post).toEqual({
      url: '/a?b=c',
      headers: {
        host: 'x',
        'content-type': 'application/json',
        'x-own-name': 'some value: here',
        connection: 'Keep-Alive',
        'content-length': '2',
      },
      body: Buffer.from('{}'),
    })
  })

  it('may have an empty body, or one that looks like the end of a head', () => {
    expect(read(`${HEAD}Content-Length: 0\r\n\r\n`)?.body.toString()).toBe('')
    expect(read(`${HEAD}Content-Length: 4\r\n\r\n\r\n\r\n`)?.body.toString()).toBe('\r\n\r\n')
  })
})

describe('left to node:http is', () => {
  const whole = `${HEAD}Content-Length: 2\r\n`
  const many = Array.from({ length: 100 }, (_, i) => `x-${i}: y\r\n`).join('')
  it.each([
    ['another method', 'PUT /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}'],
    ['another version', 'POST /a HTTP/1.0\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}'],
    ['a whole address', 'POST http://x/a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}'],
    ['an odd character in the address', 'POST /a"b HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}'],
    ['a part of a head', HEAD],
    ['a part of a body', `${whole}\r\n{`],
    ['more than one request', `${whole}\r\n{}${whole}\r\n{}`],
    ['no length', `${HEAD}\r\n`],
    ['two lengths', `${whole}Content-Length: 2\r\n\r\n{}`],
    ['a length with a sign', `${HEAD}Content-Length: +2\r\n\r\n{}`],
    ['a length with a zero in front', `${HEAD}Content-Length: 02\r\n\r\n{}`],
    ['a list of lengths', `${HEAD}Content-Length: 2, 2\r\n\r\n{}`],
    ['no host', 'POST /a HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}'],
    ['two hosts', `${whole}Host: y\r\n\r\n{}`],
    ['an odd host', 'POST /a HTTP/1.1\r\nHost: x/y\r\nContent-Length: 2\r\n\r\n{}'],
    ['a header twice', `${whole}X-A: 1\r\nx-a: 1\r\n\r\n{}`],
    ['a name of Object.prototype', `${whole}constructor: 1\r\n\r\n{}`],
    ['a folded line', `${whole}X-A: 1\r\n 2\r\n\r\n{}`],
    ['a bare LF', `${whole}X-A: 1\nX-B: 2\r\n\r\n{}`],
    ['a bare CR', `${whole}X-A: 1\r2\r\n\r\n{}`],
    ['a NUL', `${whole}X-A: 1\u0000\r\n\r\n{}`],
    ['a byte that is no ASCII', `${whole}X-A: \u00e9\r\n\r\n{}`],
    ['a tab', `${whole}X-A: 1\t2\r\n\r\n{}`],
    ['no space behind the colon', `${whole}X-A:1\r\n\r\n{}`],
    ['two spaces behind the colon', `${whole}X-A:  1\r\n\r\n{}`],
    ['a space in front of the colon', `${whole}X-A : 1\r\n\r\n{}`],
    ['a space at the end of a line', `${whole}X-A: 1 \r\n\r\n{}`],
    ['an empty value', `${whole}X-A: \r\n\r\n{}`],
    ['a line without a colon', `${whole}X-A\r\nX-B: 1\r\n\r\n{}`],
    ['an odd name', `${whole}X_A: 1\r\n\r\n{}`],
    ['Connection: close', `${whole}Connection: close\r\n\r\n{}`],
    ['Connection with two words', `${whole}Connection: keep-alive, upgrade\r\n\r\n{}`],
    ['Transfer-Encoding', `${whole}Transfer-Encoding: chunked\r\n\r\n{}`],
    ['Expect', `${whole}Expect: 100-continue\r\n\r\n{}`],
    ['Upgrade', `${whole}Upgrade: h2c\r\n\r\n{}`],
    ['TE', `${whole}TE: trailers\r\n\r\n{}`],
    ['Trailer', `${whole}Trailer: x\r\n\r\n{}`],
    ['Proxy-Connection', `${whole}Proxy-Connection: close\r\n\r\n{}`],
    ['Set-Cookie, a list in Node', `${whole}Set-Cookie: a=b\r\n\r\n{}`],
    ['more headers than the bound', `${whole}${many}\r\n{}`],
    ['a longer head than the bound', `${whole}X-A: ${'v'.repeat(8_192)}\r\n\r\n{}`],
  ])('%s', (_what, text) => {
    expect(read(text)).toBeUndefined()
  })
})

describe('a head that is sent again', () => {
  const sent = (length: string, body: string, more = ''): Buffer =>
    Buffer.from(`${HEAD}Content-Length: ${length}\r\nX-A: b\r\n${more}\r\n${body}`)

  it('is taken with its own length and body', () => {
    const heads = new HeadReader()
    const first = heads.read(sent('2', '{}'))
    const same = heads.read(sent('2', '[]'))
    const longer = heads.read(sent('12', '{"content":1}'.slice(1)))
    expect(same).toEqual({ ...first, body: Buffer.from('[]') })
    expect(longer).toEqual(readWholePost(sent('12', '{"content":1}'.slice(1))))
    // The first ones are not changed by what came later.
    expect(first?.headers['content-length']).toBe('2')
  })

  it.each([
    ['a length with a zero in front', sent('02', '{}')],
    ['no length', sent('', '')],
    ['a length that is no number', sent('2x', '{}')],
    ['nine digits', sent('000000002', '{}')],
    ['a body that is too short', sent('3', '{}')],
    ['a body that is too long', sent('2', '{} ')],
    ['another line behind it', sent('2', '{}', 'Transfer-Encoding: chunked\r\n')],
    ['a part of it', sent('2', '').subarray(0, 30)],
  ])('is left to node:http with %s', (_what, bytes) => {
    const heads = new HeadReader()
    expect(heads.read(sent('2', '{}'))).toBeDefined()
    expect(heads.read(bytes)).toBeUndefined()
    expect(heads.read(sent('2', '{}'))).toBeDefined()
  })

  it('is read as ever when heads differ all the time', () => {
    const heads = new HeadReader()
    for (let i = 0; i < 100; i++) {
      const bytes = sent('2', '{}', `traceparent: ${i}\r\n`)
      expect(heads.read(bytes)).toEqual(readWholePost(bytes))
    }
  })
})

describe('the fast path against llhttp', () => {
  it('agrees on all it takes of some thousand mutated requests', async () => {
    const { taken, differences } = await fuzzFastPath(1, 10_000)
    expect(differences).toEqual([])
    expect(taken).toBeGreaterThan(2_000)
  })
})
