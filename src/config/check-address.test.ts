import { describe, expect, it } from 'vitest'
import {
  addressProblem,
  controlCharacterProblem,
  headerNameProblem,
  headerValueProblem,
  hostProblem,
} from './check-address.ts'

describe('an address', () => {
  it.each([
    'http://127.0.0.1:8000/v1',
    'http://localhost:8000',
    'https://gpu-1.example.com/v1',
    'http://10.0.0.7',
    'http://169.253.0.1',
    'http://[::1]:8000',
    'http://[2001:db8::1]',
    'http://[fec0::1]',
    'http://me:secret@gpu-1/v1',
    'http://metadata.example.com',
  ])('%s is fit', (url) => expect(addressProblem(url, [])).toBeUndefined())

  it.each([
    'http://169.254.169.254/latest/meta-data',
    'http://169.254.0.1',
    // The same, written otherwise.
    'http://2852039166/',
    'http://0xa9fea9fe/',
    'http://0251.0376.0251.0376/',
    'http://169.254.43518/',
    'http://[::ffff:169.254.169.254]/',
    'http://[::ffff:a9fe:a9fe]/',
    'http://[::169.254.169.254]/',
    'http://[64:ff9b::a9fe:a9fe]/',
    'http://[2002:a9fe:a9fe::1]/',
    'http://[fe80::1]/',
    'http://[febf::1]/',
    'http://user@169.254.169.254/',
    'http://169.254.169.254./',
  ])('%s is link-local', (url) => expect(addressProblem(url, [])).toMatch(/link-local.*upstreams\.hostsAllowed/))

  it.each([
    'http://metadata.google.internal/computeMetadata/v1',
    'http://METADATA.google.internal./',
    'http://100.100.100.200',
    'http://[fd00:ec2::254]/',
    'http://[0:0:0:0:0:ffff:a83f:8110]/',
    'http://instance-data',
  ])('%s is a metadata service', (url) => expect(addressProblem(url, [])).toMatch(/metadata service/))

  it.each([
    ['file:///etc/passwd', /begins with "file:"/],
    ['ftp://gpu-1', /begins with "ftp:"/],
    ['gopher://gpu-1', /http: or https:/],
    ['http://', /no address/],
    ['http://[', /no address/],
    ['gpu-1:8000', /begins with "gpu-1:"/],
    ['http://gpu-1/v1\r\nx: y', /line break/],
    ['http://gpu-1/\u0000', /control character/],
  ])('%s is none', (url, problem) => expect(addressProblem(url, [])).toMatch(problem))

  it('is allowed by name, however it is written', () => {
    expect(addressProblem('http://0xa9fe0701:9000', ['169.254.7.1'])).toBeUndefined()
    expect(addressProblem('http://[fe80::1]', ['fe80:0:0::1'])).toBeUndefined()
    expect(addressProblem('http://169.254.7.2', ['169.254.7.1'])).toMatch(/link-local/)
  })

  it('is checked without its scheme too', () => {
    expect(hostProblem('10.0.0.10:53', [])).toBeUndefined()
    expect(hostProblem('169.254.169.253', [])).toMatch(/link-local/)
    expect(hostProblem('fe80::1', [])).toMatch(/link-local/)
    expect(hostProblem('a b', [])).toMatch(/no host/)
  })
})

describe('a header', () => {
  it.each(['x-team', 'Authorization', 'x_y.z'])('may be called %s', (name) =>
    expect(headerNameProblem(name)).toBeUndefined(),
  )
  it.each(['', 'x team', 'x:y', 'x\r\ny', 'é'])('may not be called %j', (name) =>
    expect(headerNameProblem(name)).toMatch(/no name/),
  )
  it.each(['Content-Length', 'transfer-encoding', 'connection'])('may not frame the message: %s', (name) =>
    expect(headerNameProblem(name)).toMatch(/the connection itself/),
  )
  it.each(['', 'plain', 'tab\tinside', 'caf\u00e9'])('may have the value %j', (value) =>
    expect(headerValueProblem(value)).toBeUndefined(),
  )
  it.each(['a\r\nb: c', 'a\n', '\u0000', '\u007f', '\u0085', '\u4f60'])('may not have the value %j', (value) => {
    const problem = headerValueProblem(value)
    expect(problem).toMatch(/line break/)
  })
})

it('a text with a control character is found, and the text is not quoted', () => {
  expect(controlCharacterProblem('plain – text')).toBeUndefined()
  for (const text of ['secret\n', 'secret\u001b[2J', 'secret\u0000']) {
    expect(controlCharacterProblem(text)).toMatch(/control character/)
    expect(controlCharacterProblem(text)).not.toContain('secret')
  }
})
