import { BASE64, isWordUnit, kindOf, NONE, OPEN } from './characters.ts'

/**
 * Private keys in PEM and OpenPGP armour, from the first line to the end line. What stands between is never let out,
 * however long it is: a key without its end line goes on to the end of the text.
 */

const HEAD = '-----BEGIN'
/** Units of the first line at most, from the first dash to the last. */
const HEAD_UNITS_MAX = 80
/** Units of key behind the first line that tell a key from a sentence about keys. */
const BODY_UNITS_MIN = 16
const END_LINE = /-----END[ A-Z0-9_-]{0,60}KEY(?: BLOCK)?-----/i
/** Units of an end line at most. */
export const END_LINE_UNITS_MAX = 84

/** The unit behind the first line of the private key that starts here. */
const headEnd = (text: string, at: number, isWhole: boolean): number => {
  const available = text.slice(at, at + HEAD.length).toUpperCase()
  if (!HEAD.startsWith(available)) return NONE
  if (available.length < HEAD.length) return isWhole ? NONE : OPEN
  const line = text.slice(at, at + HEAD_UNITS_MAX)
  const close = line.indexOf('-----', HEAD.length)
  const label = line.slice(HEAD.length, close < 0 ? undefined : close)
  if (/[^ A-Z0-9_-]/i.test(label)) return NONE
  if (close < 0) return isWhole || line.length === HEAD_UNITS_MAX ? NONE : OPEN
  return /PRIVATE KEY( BLOCK)?$/i.test(label) ? at + close + 5 : NONE
}

/** Where the body of the private key that starts here begins, once it is certain that a key follows. */
export const keyBodyStart = (text: string, at: number, isWhole: boolean): number => {
  const end = headEnd(text, at, isWhole)
  if (end <= NONE) return end
  let p = end
  // Line ends, also as `\n` or `\r\n` inside of a string.
  while (p < end + 8 && (/\s/.test(text.charAt(p)) || /^\\[nr]/.test(text.slice(p, p + 2))))
    p += text.charCodeAt(p) === 0x5c ? 2 : 1
  if (p >= text.length) return isWhole ? NONE : OPEN
  if (text.charCodeAt(p) === 0x5c && p + 1 === text.length && !isWhole) return OPEN
  // `Proc-Type: …` and `Version: …` stand in some keys before the key itself.
  if (p > end && /^[A-Z][a-z]+(-[A-Z][a-zA-Z]+)*: /.test(text.slice(p, p + 24))) return p
  const from = p
  while (p - from < BODY_UNITS_MIN && (kindOf(text.charCodeAt(p)) & BASE64) !== 0 && p < text.length) p++
  if (p - from >= BODY_UNITS_MIN) return from
  if (p === text.length && !isWhole) return OPEN
  // A header may be cut: `Proc-Ty`.
  const isHeader = /^[A-Z][a-z]+(-[A-Z][a-zA-Z]+)*:?$/.test(text.slice(from)) && !isWhole
  return isHeader && !isWordUnit(text.charCodeAt(p)) ? OPEN : NONE
}

/** The unit behind the end line, or −1. */
export const keyEnd = (text: string, from: number): number => {
  const dashes = text.indexOf('-----END', from)
  const any = dashes >= 0 ? dashes : text.toUpperCase().indexOf('-----END', from)
  if (any < 0) return -1
  const match = END_LINE.exec(text.slice(any))
  return match === null ? -1 : any + match.index + match[0].length
}
