import { describe, expect, it } from 'vitest'
import { EntityFinder } from './entity-finder.ts'
import { EntityHold } from './entity-hold.ts'

/** Units of the long texts: what one request may bring. */
const UNITS = 131_072

const finder = new EntityFinder({ screens: ['pii', 'secrets'] })

const repeated = (part: string): string => part.repeat(Math.ceil(UNITS / part.length)).slice(0, UNITS)

const ATTACKS: readonly (readonly [string, string])[] = [
  ['addresses that never end', 'a@'],
  ['hosts that never end', 'a@b.'],
  ['one address', `${'a'.repeat(1000)}@${'b'.repeat(1000)}.`],
  ['dots', 'a.'],
  ['digits', '1'],
  ['cards that are none', '4111111111111112 '],
  ['single digits', '1 '],
  ['groups of digits', '12-34 '],
  ['pluses', '+'],
  ['brackets', '('],
  ['brackets and digits', '(1) '],
  ['colons', 'a:'],
  ['gaps', '::'],
  ['groups of hex', 'ab:cd:'],
  ['dashes', '-'],
  ['first lines', '-----BEGIN '],
  ['private keys', '-----BEGIN PRIVATE KEY-----\n'],
  ['beginnings of IBANs', 'DE89 3704 '],
  ['one IBAN', 'DE89370400440532013'],
  ['prefixes of keys', 'ghp_'],
  ['tokens', 'eyJ'],
  ['names of keys', 'api_key = '],
  ['operators', 'key=key='],
  ['base64 of text', 'aGVsbG8g'],
  ['base64 of nothing', 'QUFBQUFB/'],
  ['words for telephones', 'call '],
  ['capitals', 'AbCdEfGhIjKlM'],
  ['zero-width characters', '1\u200b'],
  ['full-width digits', '４'],
]

describe('time of the rules', () => {
  it.each(ATTACKS)('bounds how far it looks around each place: %s', (_name, part) => {
    const text = repeated(part)
    let reads = 0
    // Each recogniser reads units by `charCodeAt` and stretches by `slice`: their sum is the work.
    const charCodeAt = Reflect.get(String.prototype, 'charCodeAt') as (this: string, at: number) => number
    const slice = Reflect.get(String.prototype, 'slice') as (this: string, from?: number, to?: number) => string
    String.prototype.charCodeAt = function charCode(this: string, at: number) {
      reads++
      return charCodeAt.call(this, at)
    }
    String.prototype.slice = function cut(this: string, from?: number, to?: number) {
      const piece = slice.call(this, from, to)
      // Long slices share their memory with the text.
      reads += Math.min(64, piece.length)
      return piece
    }
    try {
      finder.find(text)
    } finally {
      String.prototype.charCodeAt = charCodeAt
      String.prototype.slice = slice
    }
    expect(reads / text.length).toBeLessThan(200)
  })

  it.each(ATTACKS)('holds a bounded stretch back: %s', (name, part) => {
    const hold = new EntityHold(finder, () => '')
    const text = repeated(part).slice(0, 20_000)
    let most = 0
    for (let i = 0; i < text.length; i += 7) {
      hold.push(text.slice(i, i + 7))
      most = Math.max(most, hold.heldLength)
    }
    // Base64 of text and keys are held as a whole, 4,096 units at most; all else is short.
    expect(most).toBeLessThanOrEqual(/base64 of text|tokens|prefixes/.test(name) ? 4200 : 320)
  })
})
