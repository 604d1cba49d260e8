/** Which kind of character is this? One table look-up per character, because every character of every text is asked. */

export const DIGIT = 1
export const LETTER = 2
/** Marks inside of e-mail addresses, keys and host names: `. _ - + ' ~` */
export const JOINER = 4
/** Digits 0–9 and letters a–f, in both cases. */
export const HEX = 8
/** The alphabet of base64 and its variant for addresses, padding left out. */
export const BASE64 = 16
/** Marks between the digits of one number: space `- . / ( )`. */
export const SEPARATOR = 32

/** Marks that end a word and start nothing. */
export const PLAIN = 64
/** Capitals A–Z. */
export const CAPITAL = 128

/** One entry for every unit there is: a look-up without a question. */
export const UNIT_KINDS = new Uint8Array(0x10000).fill(PLAIN)
UNIT_KINDS.fill(0, 0, 128)
const mark = (chars: string, kind: number): void => {
  for (const char of chars) UNIT_KINDS[char.charCodeAt(0)]! |= kind
}
mark('0123456789', DIGIT | HEX | BASE64)
mark('abcdefghijklmnopqrstuvwxyz', LETTER | BASE64)
mark('ABCDEFGHIJKLMNOPQRSTUVWXYZ', LETTER | BASE64 | CAPITAL)
mark('abcdefABCDEF', HEX)
mark("._-+'~", JOINER)
mark('+/-_', BASE64)
mark(' -./()', SEPARATOR)
for (let unit = 0; unit < 128; unit++)
  if (UNIT_KINDS[unit] === 0 && !'@:=%'.includes(String.fromCharCode(unit))) UNIT_KINDS[unit] = PLAIN
UNIT_KINDS[0x20] = PLAIN | SEPARATOR
UNIT_KINDS[0x29] = PLAIN | SEPARATOR

/**
 * Letters beyond ASCII, as far as addresses are written in them: Latin, Greek, Cyrillic, Armenian, Hebrew, Arabic. Scripts
 * without spaces are not among them, or a stream would hold whole sentences back; nor are pictures and marks.
 */
const isOtherLetter = (unit: number): boolean =>
  (unit >= 0xc0 && unit < 0x700 && unit !== 0xd7 && unit !== 0xf7) || (unit >= 0x1e00 && unit < 0x2000)
for (let unit = 0xc0; unit < 0x2000; unit++) if (isOtherLetter(unit)) UNIT_KINDS[unit] = LETTER

/** All kinds of a unit; 0 for NaN, the unit beyond the end of a text. */
export const kindOf = (unit: number): number => (unit < 0x10000 ? UNIT_KINDS[unit]! : 0)

export const isDigit = (unit: number): boolean => unit >= 0x30 && unit <= 0x39
export const isWordUnit = (unit: number): boolean => (kindOf(unit) & (DIGIT | LETTER)) !== 0 || unit === 0x5f
export const isAsciiLetter = (unit: number): boolean => unit < 128 && (UNIT_KINDS[unit]! & LETTER) !== 0

/**
 * What a recogniser says: the end of the entity that starts here, `NONE`, or `OPEN`: more text may decide. A recogniser
 * that was told that the text is whole never says `OPEN`.
 */
export const NONE = 0
export const OPEN = -1
