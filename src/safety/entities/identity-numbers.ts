import { passesLuhn, passesVerhoeff, weightedSum } from './checksums.ts'
import type { NumberChain } from './number-chain.ts'

/**
 * Is this chain of digits a number that a state gives to a person? By form and sum where the form is rare; numbers that
 * are nine or eleven digits and a sum need a word near them ("SSN", "BSN"), since one number in eleven passes any sum.
 */

const DASH = 0x2d
const DOT = 0x2e

const isDay = (day: number, month: number): boolean => day >= 1 && day <= 31 && month >= 1 && month <= 12

/** United States: area never 000, 666 or 9xx (which are taxpayers' numbers), no part all zeros. */
const isUsSocial = (digits: string): boolean => {
  const area = Number(digits.slice(0, 3))
  const group = Number(digits.slice(3, 5))
  if (area === 0 || area === 666 || group === 0 || digits.endsWith('0000')) return false
  return area < 900 || (group >= 50 && group <= 99 && group !== 89 && group !== 93 && (group <= 65 || group >= 70))
}

const isBrazilCpf = (digits: string): boolean => {
  const check = (count: number): number => {
    let sum = 0
    for (let i = 0; i < count; i++) sum += (digits.charCodeAt(i) - 48) * (count + 1 - i)
    return ((sum * 10) % 11) % 10
  }
  return check(9) === Number(digits[9]) && check(10) === Number(digits[10]) && !/^(\d)\1+$/.test(digits)
}

const isPolishPesel = (digits: string): boolean => {
  const month = Number(digits.slice(2, 4)) % 20
  return isDay(Number(digits.slice(4, 6)), month) && weightedSum(digits, [1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]) % 10 === 0
}

const isDutchBsn = (digits: string): boolean => weightedSum(digits, [9, 8, 7, 6, 5, 4, 3, 2, -1]) % 11 === 0

const isNorwegian = (digits: string): boolean =>
  isDay(Number(digits.slice(0, 2)) % 40, Number(digits.slice(2, 4)) % 40) &&
  weightedSum(digits, [3, 7, 6, 1, 8, 9, 4, 5, 2, 1]) % 11 === 0 &&
  weightedSum(digits, [5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1]) % 11 === 0

const isBelgian = (digits: string): boolean => {
  if (Number(digits.slice(2, 4)) > 12) return false
  const body = Number(digits.slice(0, 9))
  const check = Number(digits.slice(9))
  return 97 - (body % 97) === check || 97 - ((2_000_000_000 + body) % 97) === check
}

const isFrenchNir = (digits: string): boolean =>
  /^[12]\d{2}(0[1-9]|1[0-2]|[2-9]\d)/.test(digits) &&
  Number(BigInt(digits.slice(0, 13)) % 97n) + Number(digits.slice(13)) === 97

const isSwedish = (digits: string): boolean =>
  isDay(Number(digits.slice(4, 6)) % 60, Number(digits.slice(2, 4))) && passesLuhn(digits)

const isKorean = (digits: string): boolean =>
  isDay(Number(digits.slice(4, 6)), Number(digits.slice(2, 4))) &&
  (11 - (weightedSum(digits, [2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5]) % 11)) % 10 === Number(digits[12])

const isAustralianTfn = (digits: string): boolean => weightedSum(digits, [1, 4, 3, 7, 5, 8, 6, 9, 10]) % 11 === 0

interface NumberForm {
  readonly category: string
  /** Sizes of groups as a chain says them; a single piece is 9. */
  readonly sizes: readonly number[]
  readonly count: number
  readonly passes: (digits: string) => boolean
  /** The mark before the last group; absent: any even marks, or a single piece. */
  readonly lastMark?: number
  readonly needsWord: boolean
}

const FORMS: readonly NumberForm[] = [
  { category: 'ssn', sizes: [324], count: 9, passes: isUsSocial, lastMark: DASH, needsWord: false },
  { category: 'ssn', sizes: [324, 9], count: 9, passes: isUsSocial, needsWord: true },
  { category: 'national-id', sizes: [3332], count: 11, passes: isBrazilCpf, lastMark: DASH, needsWord: false },
  { category: 'national-id', sizes: [9], count: 11, passes: isBrazilCpf, needsWord: true },
  { category: 'national-id', sizes: [9], count: 11, passes: isPolishPesel, needsWord: true },
  { category: 'national-id', sizes: [9, 333, 2223, 423], count: 9, passes: isDutchBsn, needsWord: true },
  { category: 'national-id', sizes: [9, 65], count: 11, passes: isNorwegian, needsWord: true },
  { category: 'national-id', sizes: [22232], count: 11, passes: isBelgian, lastMark: DOT, needsWord: false },
  { category: 'national-id', sizes: [9, 22232, 632], count: 11, passes: isBelgian, needsWord: true },
  { category: 'national-id', sizes: [9, 1222332, 122233, 92], count: 15, passes: isFrenchNir, needsWord: false },
  { category: 'national-id', sizes: [64], count: 10, passes: isSwedish, lastMark: DASH, needsWord: false },
  { category: 'national-id', sizes: [9, 64], count: 10, passes: isSwedish, needsWord: true },
  { category: 'national-id', sizes: [67], count: 13, passes: isKorean, lastMark: DASH, needsWord: false },
  { category: 'national-id', sizes: [444], count: 12, passes: passesVerhoeff, needsWord: false },
  { category: 'national-id', sizes: [9], count: 12, passes: passesVerhoeff, needsWord: true },
  // Canada's and Australia's look like numbers of everything else.
  { category: 'national-id', sizes: [333, 9], count: 9, passes: passesLuhn, needsWord: true },
  { category: 'national-id', sizes: [333, 9], count: 9, passes: isAustralianTfn, needsWord: true },
  // The word alone decides on forms whose sum only the state knows: Denmark's, Germany's, the United Kingdom's NHS.
  { category: 'national-id', sizes: [64, 9, 2333, 334], count: 10, passes: () => true, needsWord: true },
  { category: 'national-id', sizes: [2333, 9], count: 11, passes: (digits) => digits[0] !== '0', needsWord: true },
]

const formsByCount = Array.from({ length: 16 }, (_, count) => FORMS.filter((form) => form.count === count))

/** The category of the person's number that the groups up to `last` are, or undefined. */
export const identityCategory = (chain: NumberChain, last: number): string | undefined => {
  const count = chain.digitCount(last)
  if (count < 9 || count > 15) return undefined
  const sizes = chain.sizes(last)
  let digits: string | undefined
  let hasWord: boolean | undefined
  for (const form of formsByCount[count]!) {
    if (!form.sizes.includes(sizes)) continue
    if (form.lastMark !== undefined && chain.marks[last] !== form.lastMark) continue
    digits ??= chain.digits(last)
    if (!form.passes(digits)) continue
    if (form.needsWord) hasWord ??= chain.context === 'person-number'
    if (!form.needsWord || hasWord === true) return form.category
  }
  return undefined
}
