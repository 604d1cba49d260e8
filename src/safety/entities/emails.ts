import { DIGIT, isDigit, isWordUnit, kindOf, LETTER, NONE, OPEN } from './characters.ts'
import { ipv4End } from './ip-addresses.ts'

/** Units before the `@` at most. A stream holds no more of a word back than this. */
export const LOCAL_UNITS_MAX = 48
/** Units of a host name at most (RFC 1035). */
const DOMAIN_UNITS_MAX = 253

const DOT = 0x2e
const DASH = 0x2d

const isLocalUnit = (unit: number): boolean => isWordUnit(unit) || unit === DOT || unit === DASH || isLocalMark(unit)
const isLocalMark = (unit: number): boolean => unit === 0x2b || unit === 0x27 || unit === 0x7e

/** Where the part before an `@` starts, no earlier than `from`; the place of the `@` if there is none. */
export const localStart = (text: string, at: number, from: number): number => {
  const floor = Math.max(from, at - LOCAL_UNITS_MAX)
  let start = at
  while (start > floor && isLocalUnit(text.charCodeAt(start - 1))) start--
  // A mark before the first letter belongs to the sentence: 'write to "me@example.com"'.
  while (start < at && !isWordUnit(text.charCodeAt(start))) start++
  return start
}

/** End of the host name behind the `@` at `at`, if an address ends there. */
export const domainEnd = (text: string, at: number, isWhole: boolean): number => {
  if (text.charCodeAt(at + 1) === 0x5b) return literalEnd(text, at, isWhole)
  let p = at + 1
  while (p - at <= DOMAIN_UNITS_MAX) {
    const unit = text.charCodeAt(p)
    if (!((kindOf(unit) & (DIGIT | LETTER)) !== 0 || unit === DASH || unit === DOT) || Number.isNaN(unit)) break
    p++
  }
  if (p - at > DOMAIN_UNITS_MAX) return NONE
  if (p === text.length && !isWhole) return OPEN
  // Code: `x@w.transpose(…)`.
  if (text.charCodeAt(p) === 0x28) return NONE
  while (p > at + 1 && !isWordUnit(text.charCodeAt(p - 1))) p--
  let dot = p - 1
  while (dot > at && text.charCodeAt(dot) !== DOT) dot--
  if (dot <= at + 1) return NONE
  return isTopLevel(text, dot + 1, p) && isHost(text, at, dot) ? p : NONE
}

const isTopLevel = (text: string, from: number, to: number): boolean => {
  if (to - from < 2 || to - from > 24) return text.startsWith('xn--', from)
  for (let i = from; i < to; i++) if ((kindOf(text.charCodeAt(i)) & LETTER) === 0) return text.startsWith('xn--', from)
  return true
}

/** Pictures for screens of several densities (`logo@2x.png`) and clones of repositories (`git@host:…`) are no persons. */
const isHost = (text: string, at: number, dot: number): boolean => {
  if (isDigit(text.charCodeAt(at + 1)) && text.charCodeAt(at + 2) === 0x78 && dot === at + 3) return false
  return !(text.slice(at - 3, at) === 'git' && !isWordUnit(text.charCodeAt(at - 4)))
}

const literalEnd = (text: string, at: number, isWhole: boolean): number => {
  const end = ipv4End(text, at + 2, isWhole)
  if (end <= NONE) return at + 2 === text.length && !isWhole ? OPEN : end
  if (end === text.length && !isWhole) return OPEN
  return text.charCodeAt(end) === 0x5d ? end + 1 : NONE
}
