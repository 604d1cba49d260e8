import { BASE64, isWordUnit, kindOf, NONE, OPEN } from './characters.ts'

/** Which text is written here in base64? One layer of it, because that is what people hide values with. */

/** Units of base64 that are looked at: from nine bytes on, which is the shortest number of anybody. */
const UNITS_MIN = 12
/** Units that show whether bytes may be text. */
const SURE_UNITS = 24
/** Units that are decoded as one at most; a longer run is looked at in stretches. */
const UNITS_MAX = 4096
/** The same behind a mark that belongs to base64, too: each part of a path may be a start, so each is short. */
const PART_UNITS_MAX = 64

const VALUES = new Int8Array(128).fill(-1)
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
for (let i = 0; i < ALPHABET.length; i++) VALUES[ALPHABET.charCodeAt(i)] = i
VALUES[0x2d] = 62
VALUES[0x5f] = 63

const decode = (text: string, from: number, to: number): Uint8Array => {
  const bytes = new Uint8Array(Math.floor(((to - from) * 3) / 4))
  let bits = 0
  let held = 0
  let size = 0
  for (let p = from; p < to; p++) {
    held = ((held << 6) | VALUES[text.charCodeAt(p)]!) & 0xfffff
    bits += 6
    if (bits >= 8) {
      bits -= 8
      bytes[size++] = (held >> bits) & 0xff
    }
  }
  return bytes.subarray(0, size)
}

const isTextByte = (byte: number): boolean =>
  byte >= 0x20 ? byte !== 0x7f : byte === 0x0a || byte === 0x0d || byte === 0x09

const isPlain = (bytes: Uint8Array): boolean => bytes.every((byte) => byte < 0x80 && isTextByte(byte))

const utf8 = new TextDecoder('utf-8', { fatal: true })
const decodedText = (bytes: Uint8Array): string | undefined => {
  if (!bytes.every(isTextByte)) return undefined
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** Whether the first three bytes are plain text: no for nineteen words of twenty, without any memory. */
const startsPlain = (text: string, s: number): boolean => {
  let bytes = 0
  for (let i = 0; i < 4; i++) {
    const unit = text.charCodeAt(s + i)
    const value = unit < 128 ? VALUES[unit]! : -1
    if (value < 0) return false
    bytes = (bytes << 6) | value
  }
  const isByte = (byte: number): boolean => byte < 0x80 && isTextByte(byte)
  return isByte(bytes >> 16) && isByte((bytes >> 8) & 0xff) && isByte(bytes & 0xff)
}

/** Base64 that starts at a place, if it is text: where it ends, and the text. */
export interface HiddenText {
  readonly end: number
  readonly text: string
}

/** The text that is hidden in the run that starts at `s`; `OPEN` if more units may belong to it. */
export const hiddenText = (text: string, s: number, isWhole: boolean): HiddenText | typeof OPEN | typeof NONE => {
  if (s + 4 <= text.length && !startsPlain(text, s)) return NONE
  const unitsMax = s > 0 && (kindOf(text.charCodeAt(s - 1)) & BASE64) !== 0 ? PART_UNITS_MAX : UNITS_MAX
  let p = s
  while (p - s < unitsMax && p < text.length && text.charCodeAt(p) < 128 && (kindOf(text.charCodeAt(p)) & BASE64) !== 0)
    p++
  const end = p
  const isOpen = p === text.length && !isWhole && p - s < unitsMax
  // The first bytes decide cheaply on nearly every word.
  if (end - s >= SURE_UNITS) {
    if (!isPlain(decode(text, s, s + 8)) || !decode(text, s, s + SURE_UNITS).every(isTextByte)) return NONE
  }
  if (isOpen) return OPEN
  if (end - s < UNITS_MIN || !isPlain(decode(text, s, s + 8))) return NONE
  while (p < end + 2 && text.charCodeAt(p) === 0x3d) p++
  if (p === text.length && !isWhole && end - s < unitsMax) return OPEN
  if (isWordUnit(text.charCodeAt(p)) && end - s < unitsMax) return NONE
  const hidden = decodedText(decode(text, s, end))
  return hidden === undefined ? NONE : { end: p, text: hidden }
}
