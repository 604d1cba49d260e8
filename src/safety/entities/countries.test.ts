import { describe, expect, it } from 'vitest'
import { EntityFinder } from './entity-finder.ts'
import { ibanLengths } from './ibans.ts'
import { phoneCountryCodes } from './phone-countries.ts'

const finder = new EntityFinder({ screens: ['pii'] })
const found = (text: string): string[] =>
  finder.find(text).map(({ category, start, end }) => `${category}:${text.slice(start, end)}`)

const mod97 = (text: string): number => {
  let rest = 0
  for (const char of text)
    for (const digit of String(Number.parseInt(char, 36))) rest = (rest * 10 + Number(digit)) % 97
  return rest
}

describe('IBANs', () => {
  it.each([...ibanLengths()])('of %s', (country, length) => {
    const account = '0123456789ABCDEFGHJKLMNPQRSTUVW'.slice(0, length - 4)
    const iban = country + String(98 - mod97(`${account}${country}00`)).padStart(2, '0') + account
    expect(found(`to ${iban}.`)).toEqual([`iban:${iban}`])
    const spaced = iban.replace(/(.{4})(?=.)/g, '$1 ')
    expect(found(`to ${spaced} now`)).toEqual([`iban:${spaced}`])
    const wrong = iban.slice(0, -1) + (iban.endsWith('0') ? '1' : '0')
    expect(found(`to ${wrong}.`).filter((place) => place.startsWith('iban'))).toEqual([])
  })
})

describe('telephone numbers', () => {
  it.each([...phoneCountryCodes()])('abroad of +%s', (code, { digitsMin, digitsMax }) => {
    for (const count of new Set([digitsMin, digitsMax])) {
      const number = `+${code}${'234567891234567'.slice(0, count)}`
      if (number.length < 8) continue
      expect(found(`at ${number}.`)).toEqual([`phone:${number}`])
    }
  })

  it.each(['+999 123 456', '+1 12', 'C+49', '+5 points', '+0 123 4567890', '00 12'])('is not "%s"', (text) => {
    expect(found(text)).toEqual([])
  })

  it.each([
    ['order 5551234567', 'Call 5551234567'],
    ['id 12 345 678', 'Telefon 12 345 678'],
    ['page 780 6326', 'Phone:\n780 6326'],
  ])('by the word before it: not "%s" but "%s"', (without, withWord) => {
    expect(found(without)).toEqual([])
    expect(found(withWord)).toHaveLength(1)
  })
})
