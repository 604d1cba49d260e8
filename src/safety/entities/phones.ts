import { isAsciiLetter, isDigit } from './characters.ts'
import { passesIsbn10 } from './checksums.ts'
import { isPlaceBehind, mayBecomePlace, PLACE_BEHIND_UNITS_MAX } from './context.ts'
import type { NumberChain } from './number-chain.ts'
import { isInternationalNumber } from './phone-countries.ts'

/**
 * Is this chain of digits a telephone number?
 *
 * Three kinds of evidence: a country code with a number of a length that the country has; a form that nothing else has
 * (`(555) 123-4567`, a trunk 0 and at least nine digits in groups); or any plausible form next to a word such as
 * "call" or "fax". Words such as "order" or "version" take numbers without a country code back.
 */

const BRACKET_OPEN = 0x28
const DASH = 0x2d
const SPACE = 0x20
const DOT = 0x2e
const SLASH = 0x2f
const ZERO = 0x30
const ONE = 0x31
const THREE = 0x33
const EIGHT = 0x38

/** What stands behind a number: an extension that belongs to it, or a word that says what it is. */
export interface Behind {
  /** End of the extension, or of the digits. */
  readonly end: number
  readonly isPlace: boolean
}

const EXTENSIONS = new Set(['x', 'ext', 'extn', 'extension', 'durchwahl', 'poste', 'interno', 'anexo', 'ramal'])
const EXTENSION_UNITS_MAX = 9

/** Reads what stands behind a number. Undefined: more text may change it. */
export const readBehind = (text: string, end: number, isWhole: boolean): Behind | undefined => {
  let p = end
  while (p < end + 3 && isBridge(text.charCodeAt(p))) p++
  const isHash = text.charCodeAt(p) === 0x23
  const from = p
  if (isHash) p++
  else while (p - from <= PLACE_BEHIND_UNITS_MAX && isAsciiLetter(text.charCodeAt(p))) p++
  // No word is there: nearly always.
  if (p === from && (p < text.length || isWhole)) return { end, isPlace: false }
  const word = text.slice(from, p).toLowerCase()
  if (p === text.length && !isWhole && mayBecomeBehind(word)) return undefined
  if (!isHash && !EXTENSIONS.has(word)) return { end, isPlace: isPlaceBehind(word) }
  while (p < from + EXTENSION_UNITS_MAX + 3 && isExtensionMark(text.charCodeAt(p))) p++
  const digitsFrom = p
  while (p - digitsFrom <= 6 && isDigit(text.charCodeAt(p))) p++
  if (p === text.length && !isWhole && p - digitsFrom <= 6) return undefined
  const count = p - digitsFrom
  return { end: count > 0 && count <= 6 ? p : end, isPlace: false }
}

/** Whether more letters may make an extension or a place of this word: all others may go. */
const mayBecomeBehind = (word: string): boolean => {
  for (const extension of EXTENSIONS) if (extension.startsWith(word)) return true
  return mayBecomePlace(word)
}

const isBridge = (unit: number): boolean =>
  unit === SPACE || unit === DASH || unit === 0x2c || unit === 0x3b || unit === BRACKET_OPEN
const isExtensionMark = (unit: number): boolean => unit === DOT || unit === SPACE || unit === 0x3a

const FREEPHONE_SIZES = new Set([13322, 1334, 1343])

/** Forms that are telephone numbers without any word near them. */
const isPlainForm = (chain: NumberChain, last: number): boolean => {
  const sizes = chain.sizes(last)
  const count = chain.digitCount(last)
  const mark = chain.marks[1]
  const first = chain.digitAt(0)
  const second = chain.digitAt(1)
  if (first === ZERO && chain.marks[0] !== BRACKET_OPEN) return second !== ZERO && isTrunkForm(chain, last)
  if (chain.marks[0] === BRACKET_OPEN) {
    // `Nature (2020) 123-145` is a citation.
    const code = chain.size(0)
    if (code === 4 && /^(19|20)/.test(chain.digits(0))) return false
    return last > 0 && code >= 2 && code <= 5 && count >= 8 && count <= 12
  }
  // North America: 3-3-4, with or without the 1 before it.
  if (sizes === 334 || (sizes === 1334 && first === ONE)) {
    const area = count === 11 ? second : first
    return chain.isEven(last, sizes === 1334) && mark !== SLASH && (mark !== SPACE || area > ONE)
  }
  // Mobile numbers of China in one piece or as people write them.
  if (count === 11 && first === ONE && second >= THREE) return sizes === 344 || last === 0
  // Russia and freephone: 8 800 555 35 35.
  return FREEPHONE_SIZES.has(sizes) && (first === EIGHT || first === ONE) && chain.isEven(last, true)
}

/** Sizes of groups with a trunk 0 in Europe, Australia, South Africa, Japan, Korea, Israel, Turkey and others. */
const TRUNK_SIZES = new Set([22222, 344, 434, 433, 533, 4222, 2322, 3322, 4322, 244, 234, 334, 2332])

/** A trunk 0, then the number. */
const isTrunkForm = (chain: NumberChain, last: number): boolean => {
  const count = chain.digitCount(last)
  // More numbers before or behind: a row of a table.
  if (last < chain.count - 1 || isInRow(chain)) return false
  // In one piece only mobile numbers, and those of eleven digits.
  if (last === 0) {
    const digits = chain.digits(0)
    return (count === 11 || (count === 10 && /^0[45679]/.test(digits))) && !passesIsbn10(digits)
  }
  const mark = chain.marks[1]
  const sizes = chain.sizes(last)
  if (last === 1) {
    const code = chain.size(0)
    const rest = chain.size(1)
    if (mark === DOT || count > 12) return false
    return (code >= 3 && code <= 5 && rest >= 6 && rest <= 8 && count >= 10) || (code === 2 && rest === 8)
  }
  return chain.isEven(last, true) && (TRUNK_SIZES.has(sizes) || (sizes === 3222 && mark === DASH))
}

const isInRow = ({ text, start }: NumberChain): boolean =>
  text.charCodeAt(start - 1) === SPACE && isDigit(text.charCodeAt(start - 2))

/** Forms that need a word: seven to thirteen digits, in one piece or in groups that a person would write. */
const isPossibleForm = (chain: NumberChain, last: number): boolean => {
  const count = chain.digitCount(last)
  if (count < 7 || count > 13) return false
  if (last === 0) return count <= 12
  if (!chain.isEven(last, true)) return false
  for (let i = 1; i <= last; i++) if (chain.size(i) < 2) return false
  return last <= 5
}

/** Digits that country code and number consist of, where a country code is written. */
const internationalDigits = (chain: NumberChain, last: number): string | undefined => {
  const all = chain.digits(last)
  if (chain.hasPlus) return all
  // In one piece and short, or with a point, it is a number with zeros before it.
  if (all.startsWith('00')) return (last === 0 && all.length < 12) || chain.marks[1] === DOT ? undefined : all.slice(2)
  return all.startsWith('011') && chain.size(0) === 3 ? all.slice(3) : undefined
}

/**
 * The last group of the telephone number that a chain starts with, or −1. Groups behind `last` are out of the question;
 * `isPlace`: a word such as "fax" stands behind it.
 */
export const lastPhoneGroup = (chain: NumberChain, last: number, isPlace: boolean): number => {
  if (chain.hasPlus || chain.text.charCodeAt(chain.starts[0]!) === ZERO) {
    for (const isRough of [false, true])
      for (let i = last; i >= 0; i--) {
        const digits = internationalDigits(chain, i)
        if (digits === undefined) break
        if (digits.length <= 15 && isInternationalNumber(digits, isRough && chain.hasPlus)) return i
      }
  }
  // `#1234567` is a ticket, `&#128530;` a picture.
  if (chain.text.charCodeAt(chain.start - 1) === 0x23) return -1
  for (let i = last; i >= 0; i--) {
    const count = chain.digitCount(i)
    if (count < 7) break
    if (count > 13 || chain.isTied(i)) continue
    const isPlain = isPlainForm(chain, i)
    if (!isPlain && !isPossibleForm(chain, i)) continue
    const { context } = chain
    const isPhone = context === 'phone' || (isPlace && i === last)
    // Numbers in one piece may be anything: a word against them counts.
    if (isPhone || (isPlain && context !== 'version' && !(context === 'other' && i === 0))) return i
  }
  return -1
}
