import { describe, expect, it } from 'vitest'
import { idProblem, quoted, reasonProblem } from './plain-text.ts'
import { formSecret, keyIdInSecret } from './secret-form.ts'

describe('an id', () => {
  it.each(['a', '7', 'acme', 'acme-prod.eu-1', 'a'.repeat(64)])('may be %s', (id) =>
    expect(idProblem(id)).toBeUndefined(),
  )

  it.each([
    ['', 'empty'],
    ['a'.repeat(65), 'too long'],
    ['Acme', 'upper case'],
    ['acme\n', 'a line feed at the end'],
    ['ac\r\nme', 'a line break'],
    ['аcme', 'a Cyrillic а'],
    ['ａcme', 'a full-width a'],
    ['acme\u200b', 'a zero-width space'],
    ['acmé', 'an accent'],
    ['acme_prod', 'an underscore, which separates the parts of a secret'],
    ['acme/prod', 'a slash'],
    ['acme:prod', 'a colon'],
    ['acme@eu', 'an at sign'],
    ['a..b', 'two marks in a row'],
    ['-a', 'a mark at the beginning'],
    ['a.', 'a mark at the end'],
    ['a b', 'a space'],
    ['spillway', 'the platform’s own name'],
  ])('may not be %j: %s', (id) => expect(idProblem(id)).toBeTypeOf('string'))
})

describe('a reason', () => {
  it.each(['a new team', 'Für München: größerer Anteil', '新しいチーム', 'x'.repeat(500)])('may be %s', (text) =>
    expect(reasonProblem(text)).toBeUndefined(),
  )
  it.each(['', '  ', 'x'.repeat(501), 'a\nb', 'a\rb', 'a\u0000b', 'a\u2028b', 'a\u0085b', 'a\u202eb', 'a\ud800'])(
    'may not be %j',
    (text) => expect(reasonProblem(text)).toBeTypeOf('string'),
  )
})

it('quotes what a caller wrote in plain ASCII, and not all of it', () => {
  expect(quoted('a\r\nb "c" \u202ed')).toBe('"a\\r\\nb \\"c\\" \\u202ed"')
  expect(quoted('x'.repeat(1_000)).length).toBeLessThan(80)
})

describe('a secret', () => {
  it('names its key', () => {
    expect(keyIdInSecret(formSecret('shop-prod.1', 'aB_-9'))).toBe('shop-prod.1')
    expect(keyIdInSecret('sk-sw-abc')).toBeUndefined()
    expect(keyIdInSecret('spw_Shop_abc')).toBeUndefined()
    expect(keyIdInSecret('spw_shop_')).toBeUndefined()
    expect(keyIdInSecret('spw_shop_abc\n')).toBeUndefined()
  })
})
