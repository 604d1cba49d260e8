import { describe, expect, it } from 'vitest'
import { readCloudCredential, secretsOf } from './cloud-credential.ts'

const NOW = 1_000_000
const read = (said: unknown) => readCloudCredential(typeof said === 'string' ? said : JSON.stringify(said), NOW)

describe('what clouds say of a credential', () => {
  it.each([
    ['a bare token', ' ya29.abc\n', { token: 'ya29.abc', endsAtMs: undefined }],
    ['OAuth, Google', { access_token: 'a', expires_in: 60, token_type: 'Bearer' }, { token: 'a', endsAtMs: 1_060_000 }],
    ['Azure, whose numbers are texts', { access_token: 'a', expires_on: '2000' }, { token: 'a', endsAtMs: 2_000_000 }],
    [
      'az, whose date has no zone',
      { accessToken: 'a', expiresOn: '2030-01-01 00:00:00.000000', expires_on: 3_000 },
      { token: 'a', endsAtMs: 3_000_000 },
    ],
    ['a token that says nothing of its end', { token: 'a' }, { token: 'a', endsAtMs: undefined }],
  ])('%s', (_, said, wanted) => {
    expect(read(said)).toEqual({ kind: 'token', ...wanted })
  })

  it.each(['SessionToken', 'Token'])('keys of AWS with %s', (name) => {
    const said = { AccessKeyId: 'AKIA', SecretAccessKey: 's', [name]: 't', Expiration: '1970-01-01T01:00:00Z' }
    const keys = read(said)!
    expect(keys).toEqual({ kind: 'keys', accessKeyId: 'AKIA', secretKey: 's', sessionToken: 't', endsAtMs: 3_600_000 })
    expect(secretsOf(keys)).toEqual(['s', 't'])
  })

  it.each(['', 'two words', 'a\nb', '{', '{}', { access_token: 'a b' }, { access_token: 1 }, 'x'.repeat(16_385)])(
    'neither: %j',
    (said) => {
      expect(read(said)).toBeUndefined()
    },
  )
})
