import { describe, expect, it } from 'vitest'
import { EntityFinder } from './entity-finder.ts'
import { PREFIX_RULES, SECRET_NAMES } from './secret-rules.ts'

const finder = new EntityFinder({ screens: ['secrets'] })
const found = (text: string): string[] => finder.find(text).map(({ start, end }) => text.slice(start, end))

/** Characters that look random, of an alphabet, from a fixed step through it. */
const random = (alphabet: string, count: number): string => {
  const units =
    {
      '9': '0123456789',
      h: '0123456789abcdef',
      a: 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJ',
      u: 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567',
    }[alphabet] ?? 'abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ'
  return Array.from({ length: count }, (_, i) => units[(i * 7 + 3 + (i % 5) * 11) % units.length]).join('')
}

const shaped: Readonly<Record<string, string>> = {
  pat: `${random('w', 14)}.${random('h', 64)}`,
  'pat.': `${random('w', 22)}.${random('w', 24)}.${random('w', 20)}`,
  'sat.': `${random('w', 22)}.${random('w', 24)}.${random('w', 20)}`,
  eyJ: `${random('w', 30)}.eyJ${random('w', 40)}.${random('w', 43)}`,
  'hooks.slack.com': `/services/${random('w', 44)}`,
  'webhook.office.com': `/webhookb2/${random('w', 60)}`,
}

describe('keys of known services', () => {
  it.each(PREFIX_RULES.map((rule) => [rule.prefix, rule] as const))('%s', (prefix, rule) => {
    const isAuthress = ['sc_', 'ext_', 'scauth_', 'authress_'].includes(prefix)
    const body = isAuthress
      ? `${random('w', 10)}.${random('w', 5)}.acc_${random('w', 20)}.${random('w', 40)}`
      : shaped[prefix]
    const key = prefix + (body ?? random(rule.alphabet, rule.unitsMin))
    expect(found(`Use ${key}, please`)).toEqual([key])
    expect(found(`Use ${prefix}, please`)).toEqual([])
  })

  it.each(SECRET_NAMES.flatMap(({ word, rules }) => rules.map((rule) => [word, rule] as const)))(
    '%s %o',
    (word, rule) => {
      const value =
        rule.alphabet === 'uuid' ? '123e4567-e89b-12d3-a456-426614174000' : random(rule.alphabet, rule.unitsMin)
      expect(found(`${word.toUpperCase()}_X = "${value}"`)).toEqual([value])
      expect(found(`the ${word} thing has ${value} in it`)).toEqual([])
    },
  )

  it.each([
    ['API_TOKEN=8f7d9a6c5b4e3f2a1d0c', '8f7d9a6c5b4e3f2a1d0c'],
    ['"client_secret": "q7Zx-91kLm_3vBn8Tt2"', 'q7Zx-91kLm_3vBn8Tt2'],
    ['Authorization: Bearer k3y9Zq81mmX02b7vTe5', 'k3y9Zq81mmX02b7vTe5'],
    ['password: hunter2!', 'hunter2'],
    ['My password is Tr0ub4dor&3.', 'Tr0ub4dor&3'],
    ["passwd='s3cr3t#1'", 's3cr3t#1'],
  ])('%s', (text, value) => {
    expect(found(text)).toEqual([value])
  })

  it.each([
    'token: OAuth2PasswordBearer, key: users/12345/profile.json, api: v1.25.0-alpha.3',
    'password: required. The password must contain 8 characters.',
    'secret=2024-01-15T10:00:00 key=true auth: null access: https://x.example/a1b2c3d4e5f6',
    'commit 3f786850e387550fdab836ed7e6dc881de23001b sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    'the tokens per second: 1234567890, key2value, a_b_c_1_2_3, AKIA, ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
    'ASIAN food; SKILLS0123; s.substring(12); sk-learn; v1.0-beta; api-docs/v2; pat.test; SG.1',
  ])('finds nothing in "%s"', (text) => {
    expect(found(text)).toEqual([])
  })
})

describe('base64', () => {
  const both = new EntityFinder({ screens: ['pii', 'secrets'] })
  const encode = (text: string): string => btoa(text)

  it.each(['jane@example.com', 'card 4111111111111111 of mine', 'call 555-123-4567', '{"ssn":"078-05-1121","a":1}'])(
    'marks the whole run that hides "%s"',
    (hidden) => {
      const run = encode(hidden)
      const text = `data: ${run}.`
      const places = both.find(text)
      expect(places.map(({ start, end }) => text.slice(start, end))).toEqual([run])
    },
  )

  it('leaves base64 of other texts, of bytes, and words alone', () => {
    for (const text of [
      encode('hello world, how are you?'),
      encode('\x00\xff\x80jane@example.com'),
      'internationalization',
      encode(encode('jane@example.com')),
    ])
      expect(both.find(text)).toEqual([])
  })
})
