import { describe, expect, it } from 'vitest'
import { AWS_TEST_REGION, isSigned } from '../../test/support/fake-sagemaker.ts'
import { type SignedCall, sha256Hex, signedHeaders } from './signature.ts'

/** Examples of S3's documentation, with the signatures that the documentation gives. */
const EMPTY = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
const sign = (call: Pick<SignedCall, 'method' | 'bodyHash' | 'headers'> & { readonly at: string }) =>
  signedHeaders({
    url: new URL(`https://examplebucket.s3.amazonaws.com/${call.at}`),
    region: 'us-east-1',
    accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
    secretKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
    now: new Date('2013-05-24T00:00:00Z'),
    ...call,
  })

describe('calls are signed as the documentation signs them', () => {
  it('a PUT with a body', () => {
    const { authorization, ...headers } = sign({
      method: 'PUT',
      at: 'test$file.text',
      bodyHash: sha256Hex('Welcome to Amazon S3.'),
      headers: { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' },
    })
    expect(headers['x-amz-content-sha256']).toBe('44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072')
    expect(authorization).toBe(
      'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,' +
        'SignedHeaders=date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class,' +
        'Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
    )
  })

  it.each([
    [
      'a part of an object',
      { at: 'test.txt', headers: { range: 'bytes=0-9' } },
      'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
    ],
    [
      'a word without a value',
      { at: '?lifecycle' },
      'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
    ],
    ['two words', { at: '?prefix=J&max-keys=2' }, '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7'],
  ])('a GET of %s', (_, call, signature) => {
    const { authorization } = sign({ method: 'GET', bodyHash: EMPTY, ...call })
    expect(authorization).toMatch(new RegExp(`,Signature=${signature}$`))
  })
})

/** What botocore 1.43 signs for the same call. */
it.each([
  ['without a session', {}, '4893198348e5de5e582661605b56e2514f23f5e3b7a33555d6d856a0b7a40428'],
  [
    'with a session',
    { 'x-amz-security-token': 'a-session-token' },
    'ec9ff5131270dae0ea5964ed17c6325a5e6fa08e1f3eaa45c75f7c8ff8e0e7b6',
  ],
])('a call of another service %s is signed as its own client signs it', (_, more, signature) => {
  const { authorization } = signedHeaders({
    method: 'POST',
    url: new URL('https://api.sagemaker.eu-central-1.amazonaws.com/'),
    region: 'eu-central-1',
    service: 'sagemaker',
    accessKeyId: 'AKIDEXAMPLE',
    secretKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
    now: new Date('2026-11-16T12:00:00Z'),
    bodyHash: sha256Hex('{"ModelPackageGroupName":"llama","MaxResults":100}'),
    headers: {
      'content-type': 'application/x-amz-json-1.1',
      'x-amz-target': 'SageMaker.ListModelPackages',
      ...more,
    },
  })
  expect(authorization).toContain('AKIDEXAMPLE/20261116/eu-central-1/sagemaker/aws4_request')
  expect(authorization).toMatch(new RegExp(`,Signature=${signature}$`))
})

it.each(['/', '/endpoints/llama-8b/invocations', '/a%20b/%C3%A4*(c)/d+e', '/x?b=2&a=1%202'])(
  'calls of other services are signed as AWS’s own package signs them: %s',
  async (path) => {
    const body = '{"text":"wäter"}'
    const headers = signedHeaders({
      method: 'POST',
      url: new URL(path, 'https://runtime.example'),
      region: AWS_TEST_REGION,
      service: 'sagemaker',
      accessKeyId: 'ASIA',
      secretKey: 'secret',
      sessionToken: 'session',
      now: new Date(),
      bodyHash: sha256Hex(body),
    })
    const req = { method: 'POST', url: path, headers } as unknown as Parameters<typeof isSigned>[0]
    const keys = { accessKeyId: 'ASIA', secretAccessKey: 'secret', sessionToken: 'session' }
    expect(await isSigned(req, body, keys)).toBe(true)
    expect(await isSigned(req, body, { ...keys, sessionToken: 'another' })).toBe(false)
  },
)
