import { isWordUnit, NONE, OPEN } from './characters.ts'
import { KeywordAutomaton } from './keyword-automaton.ts'
import {
  type NamedRule,
  PREFIX_RULES,
  type PrefixRule,
  SECRET_NAMES,
  type SecretAlphabet,
  type SecretName,
} from './secret-rules.ts'

/**
 * Is this run a key to something? Either it starts with what only keys of one service start with, or a name such as
 * `datadog_api_key =` stands before it. Both are found by one automaton of all prefixes and names, which reads the run
 * and, where an operator stands before it, the name: text without keys never meets it.
 */

/** Units of a key at most. A longer one ends here, and its rest is looked at anew. */
const SECRET_UNITS_MAX = 4096
/** Units of a value behind a name at most. */
const VALUE_UNITS_MAX = 160
/** Units before a value that may hold its name, operator and quotes: within what streams keep. */
const NAME_UNITS_MAX = 56
/** Bits per unit from which on a value behind a name in general counts as random (gitleaks has the same). */
const RANDOM_BITS_MIN = 3.5
/** Bits per unit below which even a value with a prefix is an example: `xxxxxxxx`. */
const PREFIXED_BITS_MIN = 2

const ALPHABETS: Readonly<Record<SecretAlphabet, string>> = {
  '9': '0-9',
  h: '0-9a-fA-F',
  a: 'a-zA-Z',
  w: '0-9a-zA-Z',
  u: '0-9A-Z',
  W: '0-9a-zA-Z_\\-',
  d: '0-9a-zA-Z_\\-.=',
  b: '0-9a-zA-Z_\\-+/=',
}
const members = new Map<SecretAlphabet, Uint8Array>()
for (const [name, chars] of Object.entries(ALPHABETS)) {
  const one = new RegExp(`[${chars}]`)
  members.set(
    name as SecretAlphabet,
    Uint8Array.from({ length: 128 }, (_, unit) => (one.test(String.fromCharCode(unit)) ? 1 : 0)),
  )
}
const whole = new Map<SecretAlphabet | 'uuid', RegExp>([
  ...Object.entries(ALPHABETS).map(([name, chars]) => [name as SecretAlphabet, new RegExp(`^[${chars}]+$`)] as const),
  ['uuid', /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i],
])

/** All prefixes, then all names: a word's index says which it is. Several rules may share a prefix. */
const automaton = new KeywordAutomaton([
  ...PREFIX_RULES.map(({ prefix }) => prefix),
  ...SECRET_NAMES.map(({ word }) => word),
])

/** Bits per unit of a text: how far it is from one unit again and again. */
export const bitsPerUnit = (text: string): number => {
  counts.fill(0)
  for (let i = 0; i < text.length; i++) counts[text.charCodeAt(i) & 127]!++
  let bits = 0
  for (const count of counts) if (count > 0) bits -= (count / text.length) * Math.log2(count / text.length)
  return bits
}
const counts = new Uint16Array(128)

export class SecretFinder {
  /** Where the last match, or the undecided place, starts, and what it is. */
  start = 0
  category = ''

  /** End of the key in the run from `s` to `p`. A value behind a name may go on beyond the run. */
  endAt(text: string, { s, p, isWhole }: { s: number; p: number; isWhole: boolean }): number {
    this.start = s
    const prefixed = this.#prefixedEnd(text, { s, p, isWhole })
    return prefixed !== NONE ? prefixed : this.#namedEnd(text, s, isWhole)
  }

  #prefixedEnd(text: string, { s, p, isWhole }: { s: number; p: number; isWhole: boolean }): number {
    for (let found = automaton.start(text, { from: s, to: p }); found >= 0; found = automaton.next()) {
      const rule = PREFIX_RULES[found]
      if (rule === undefined) continue
      const { end } = automaton
      const start = end - rule.prefix.length
      if (start > s && isWordUnit(text.charCodeAt(start - 1))) continue
      if (!text.startsWith(rule.prefix, start)) continue
      const keyEnd = this.#ruleEnd(text, { rule, end, isWhole })
      if (keyEnd === NONE) continue
      this.start = start
      this.category = rule.category
      return keyEnd
    }
    return NONE
  }

  #ruleEnd(text: string, { rule, end, isWhole }: { rule: PrefixRule; end: number; isWhole: boolean }): number {
    const member = members.get(rule.alphabet)!
    let p = end
    while (p - end < SECRET_UNITS_MAX && member[text.charCodeAt(p)] === 1) p++
    if (p === text.length && !isWhole && p - end < SECRET_UNITS_MAX) return OPEN
    while (p > end && !isWordUnit(text.charCodeAt(p - 1)) && text.charCodeAt(p - 1) !== 0x3d) p--
    const units = p - end
    if (units < rule.unitsMin || (rule.isExact && units !== rule.unitsMin)) return NONE
    const value = text.slice(end, p)
    if (rule.shape !== undefined && !rule.shape.test(value)) return NONE
    return bitsPerUnit(value) < PREFIXED_BITS_MIN ? NONE : p
  }

  #namedEnd(text: string, s: number, isWhole: boolean): number {
    const names = namesBefore(text, s)
    if (names.length === 0) return NONE
    const isPassword = names.some(({ kind }) => kind === 'password')
    let p = s
    while (p - s < VALUE_UNITS_MAX && isValueUnit(text.charCodeAt(p), isPassword)) {
      // `=` pads a value; with more behind it, it was the name of another one.
      if (p > s && text.charCodeAt(p - 1) === EQUALS && text.charCodeAt(p) !== EQUALS && !isPassword) break
      p++
    }
    if (p === text.length && !isWhole && p - s < VALUE_UNITS_MAX) return OPEN
    while (p > s && isSentenceMark(text.charCodeAt(p - 1))) p--
    const value = text.slice(s, p)
    this.category = isPassword ? 'password' : 'api-key'
    return names.some((name) => isSecretValue(name, value)) ? p : NONE
  }
}

const isSentenceMark = (unit: number): boolean =>
  unit === 0x2e || unit === 0x3a || unit === 0x25 || unit === 0x2c || unit === 0x21 || unit === 0x3f

/** Passwords have any character but spaces, quotes and brackets in them. */
const isValueUnit = (unit: number, isPassword: boolean): boolean => {
  if (unit < 128 && members.get('b')![unit] === 1) return true
  if (unit === 0x2e || unit === 0x7e || unit === 0x25 || unit === 0x3a) return true
  return isPassword && unit > 0x20 && !'\'"`<>()[]{}\\;,'.includes(String.fromCharCode(unit))
}

const isSecretValue = ({ kind, rules }: SecretName, value: string): boolean => {
  if (kind === 'named') return rules.some((rule) => isOfRule(rule, value))
  return kind === 'password' ? isPasswordValue(value) : isRandomValue(value)
}

const isOfRule = ({ alphabet, unitsMin, unitsMax }: NamedRule, value: string): boolean =>
  value.length >= unitsMin &&
  value.length <= unitsMax &&
  whole.get(alphabet)!.test(value) &&
  /\d/.test(value) &&
  (alphabet === '9' || /[a-z]/i.test(value)) &&
  bitsPerUnit(value) >= PREFIXED_BITS_MIN

/** A password that is more than a word: "password: required" is none. */
const isPasswordValue = (value: string): boolean =>
  value.length >= 6 &&
  value.length <= 64 &&
  /[a-z]/i.test(value) &&
  /[\d!#$%^&*+=?@~]/.test(value) &&
  !isPlainThing(value)

/** Dates, versions, paths and calls: what stands behind `key:` in configuration and is no secret. */
const isPlainThing = (value: string): boolean =>
  /^\d{4}-\d\d|^v?\d+(\.\d+)+|^[a-z]+:\/\/|^[./~]|^\$|^%[a-z]+%$|^(true|false|null|none)$/i.test(value)

/** Changes between letters and digits: words and years in names have two at most. */
const changesOf = (value: string): number => (value.match(/[a-z]\d|\d[a-z]/gi) ?? []).length

const isRandomValue = (value: string): boolean => {
  if (value.length < 10 || value.length > 150 || isPlainThing(value)) return false
  // Paths and names of several words: their longest part decides.
  const part = value.split(/[./:]/).reduce((longest, each) => (each.length > longest.length ? each : longest), '')
  return part.length >= 10 && changesOf(part) >= 3 && bitsPerUnit(part) >= RANDOM_BITS_MIN
}

const EQUALS = 0x3d
const OPERATORS = '=:>,|?'
const isQuoteOrSpace = (unit: number): boolean =>
  unit === 0x20 || unit === 0x09 || unit === 0x0a || unit === 0x0d || unit === 0x22 || unit === 0x27 || unit === 0x60

/** Names of secrets before a value: quotes and spaces, an operator, quotes and spaces, then the name. */
const namesBefore = (text: string, s: number): readonly SecretName[] => {
  const floor = Math.max(0, s - NAME_UNITS_MAX)
  let p = s
  while (p > floor && s - p < 5 && isQuoteOrSpace(text.charCodeAt(p - 1))) p--
  const operatorEnd = p
  while (p > floor && operatorEnd - p < 3 && OPERATORS.includes(text[p - 1]!)) p--
  let isIs = false
  if (p === operatorEnd) {
    // A word instead of an operator: `is`, `Bearer`, `Basic`, `Token`.
    const last = p === s ? 0 : text.charCodeAt(p - 1) | 0x20
    if (last !== 0x73 && last !== 0x72 && last !== 0x63 && last !== 0x6e) return NO_NAMES
    // The letter before it: the `i` of `is` and `Basic`, the `e` of `Bearer` and `Token`.
    const before = text.charCodeAt(p - 2) | 0x20
    if (before !== 0x69 && before !== 0x65) return NO_NAMES
    isIs = last === 0x73 && /\bis$/i.test(text.slice(Math.max(floor, p - 3), p))
    if (!isIs) return isAuthorization(text.slice(Math.max(floor, p - 16), s)) ? BEARER : NO_NAMES
    p -= 2
  }
  for (let k = 0; k < 3 && p > floor && isQuoteOrSpace(text.charCodeAt(p - 1)); k++) p--
  let from = p
  while (from > floor && isNameUnit(text.charCodeAt(from - 1))) from--
  const names: SecretName[] = []
  for (let found = automaton.start(text, { from, to: p }); found >= 0; found = automaton.next()) {
    const name = SECRET_NAMES[found - PREFIX_RULES.length]
    // gitleaks allows twenty units between a name and its operator.
    if (name !== undefined && p - automaton.end <= 20 && (!isIs || name.kind === 'password')) names.push(name)
  }
  return names
}

const isNameUnit = (unit: number): boolean =>
  isWordUnit(unit) || unit === 0x20 || unit === 0x09 || unit === 0x2e || unit === 0x2d

const NO_NAMES: readonly SecretName[] = []
const BEARER: readonly SecretName[] = [{ word: 'bearer', kind: 'generic', rules: [] }]
const isAuthorization = (before: string): boolean => /\b(bearer|basic|token)\s+$/i.test(before)
