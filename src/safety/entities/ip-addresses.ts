import { HEX, isDigit, isWordUnit, kindOf, NONE, OPEN } from './characters.ts'

const COLON = 0x3a
const DOT = 0x2e
/** Units of a zone behind an IPv6 address at most, as in `%eth0`. */
const ZONE_UNITS_MAX = 16

const isHex = (unit: number): boolean => (kindOf(unit) & HEX) !== 0 && unit < 128

/** Words right before four numbers that make them a version or a heading. */
const VERSION_BEFORE =
  /(^|[^a-z0-9])(v|ver|version|versions|release|build|section|sec|chapter|clause|§|rev|revision|firmware|oid)[\s.:=\-"'(]{0,3}$/i
/** Names of programs with a slash, as in `Chrome/91.0.4472.124`. */
const PROGRAM_BEFORE = /[a-z0-9]\/$/i

/** End of the dotted quad that starts here. */
const quadEnd = (text: string, at: number, isWhole: boolean): number => {
  let p = at
  for (let i = 0; i < 4; i++) {
    const from = p
    let value = 0
    while (p - from < 4 && isDigit(text.charCodeAt(p))) value = value * 10 + text.charCodeAt(p++) - 0x30
    if (p === text.length && !isWhole) return OPEN
    const count = p - from
    if (count === 0 || count > 3 || value > 255) return NONE
    if (count > 1 && text.charCodeAt(from) === 0x30) return NONE
    if (i === 3) break
    if (text.charCodeAt(p) !== DOT) return NONE
    p++
  }
  if (isWordUnit(text.charCodeAt(p))) return NONE
  if (text.charCodeAt(p) !== DOT) return p
  if (p + 1 === text.length && !isWhole) return OPEN
  return isDigit(text.charCodeAt(p + 1)) ? NONE : p
}

/** Addresses that are the same on every machine are nobody's: loopback, unspecified, masks. */
const isNobodys = (address: string): boolean => /^(127\.0\.0\.1$|0\.0\.0\.0$|255\.255\.)/.test(address)

/** IPv4, but no versions, headings and programs. */
export const ipv4End = (text: string, at: number, isWhole: boolean): number => {
  const end = quadEnd(text, at, isWhole)
  if (end <= NONE) return end
  const before = text.slice(Math.max(0, at - 14), at)
  if (VERSION_BEFORE.test(before) || PROGRAM_BEFORE.test(before)) return NONE
  return isNobodys(text.slice(at, end)) ? NONE : end
}

/** IPv6 with all its short forms, an IPv4 tail and a zone. Times, hardware addresses and `a::b` of code are none. */
export const ipv6End = (text: string, at: number, isWhole: boolean): number => {
  let p = at
  let groups = 0
  let hasGap = false
  let hasDigit = false
  if (text.charCodeAt(p) === COLON) {
    if (p + 1 === text.length && !isWhole) return OPEN
    if (text.charCodeAt(p + 1) !== COLON) return NONE
    hasGap = true
    p += 2
  }
  for (;;) {
    const from = p
    while (p - from < 5 && isHex(text.charCodeAt(p))) hasDigit = isDigit(text.charCodeAt(p++)) || hasDigit
    if (p === text.length && !isWhole) return OPEN
    if (p === from) break
    if (p - from > 4) return NONE
    if (text.charCodeAt(p) === DOT && (groups === 6 || hasGap)) {
      const end = quadEnd(text, from, isWhole)
      if (end === OPEN) return OPEN
      if (end > NONE) {
        p = end
        groups += 2
        break
      }
    }
    groups++
    if (text.charCodeAt(p) !== COLON) break
    if (p + 1 === text.length && !isWhole) return OPEN
    if (text.charCodeAt(p + 1) === COLON) {
      if (hasGap) return NONE
      hasGap = true
      p += 2
    } else {
      if (groups === 8 || !isHex(text.charCodeAt(p + 1))) break
      p++
    }
  }
  const isAddress = hasGap ? groups >= 1 && groups <= 7 && (hasDigit || groups > 2) : groups === 8
  if (!isAddress || isWordUnit(text.charCodeAt(p)) || text.slice(at, p) === '::1') return NONE
  return zoneEnd(text, p, isWhole)
}

const zoneEnd = (text: string, at: number, isWhole: boolean): number => {
  if (text.charCodeAt(at) !== 0x25) return at
  let p = at + 1
  while (p - at <= ZONE_UNITS_MAX && isWordUnit(text.charCodeAt(p))) p++
  if (p === text.length && !isWhole && p - at <= ZONE_UNITS_MAX) return OPEN
  return p > at + 1 ? p : at
}
