/**
 * How does a text read to somebody who looks at it?
 *
 * Zero-width characters, full-width digits, letters of other scripts that look Latin and the many spaces and hyphens of
 * Unicode hide a value from a rule, not from a reader. Each code point is folded by itself, without its neighbours:
 * the folded text of a stream is then the same whatever the cut. A map leads back to the text as it was given. Folded
 * text is for looking only; no client ever gets it.
 *
 * Escapes of quoted text (`\u0040`, `\n`, behind any number of backslashes) are what they stand for: answers in JSON, code
 * and logs are full of them, and the `n` of a line end is no letter of the value behind it.
 *
 * Plain ASCII is its own folded text, and costs one native search.
 */

/** A text as it reads, and where each of its units was. */
export interface NormalisedText {
  readonly text: string
  /**
   * Where units of the original were left out or became more or fewer: four numbers each, the place in `text`, the place
   * in the original, and how many units of either. Between them the two texts go on side by side. Absent: everywhere.
   */
  readonly shifts?: readonly number[]
}

const DROPPED = 0xffff
const SEVERAL = 0xfffe

/** Cyrillic and Greek letters, and some Latin ones, that look like the ASCII letter below them. */
const LOOK_ALIKES: readonly (readonly [string, string])[] = [
  ['АВЕЅІЈКМНОРСТУХаеіјорсухѕһԁԛԝѵӏҮүԌԐӀѡґ', 'ABESIJKMHOPCTYXaeijopcyxshdqwvlYyGEIwr'],
  ['ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαβγικνορτυχϲϳϹ', 'ABEZHIKMNOPTYXaByikvoptuxcjC'],
  ['ıȷɑɡɩɪʏᴀʙᴄᴅᴇꜰɢʜᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡᴢ', 'ijagiiyabcdefghjklmnoprstuvwz'],
  ['‐‑‒–—―−⁃﹘﹣', '----------'],
  ['‘’‛′', "''''"],
  ['․。｡﹒', '....'],
  ['⁄∕', '//'],
  ['∶：', '::'],
  ['\u2028\u2029\u0085', '\n\n\n'],
]

/** First digits of the scripts that have ten of their own in a row. */
const ZEROS =
  '\u0660\u06f0\u07c0\u0966\u09e6\u0a66\u0ae6\u0b66\u0be6\u0c66\u0ce6\u0d66\u0e50\u0ed0\u0f20\u1040\u17e0\u1810\u1946\u19d0'

/** Characters without width: joiners, marks of direction, soft hyphens, variation selectors, combining accents. */
const INVISIBLE: readonly (readonly [from: number, to: number])[] = [
  [0x00ad, 0x00ad],
  [0x0300, 0x036f],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180e],
  [0x200b, 0x200f],
  [0x202a, 0x202e],
  [0x2060, 0x206f],
  [0xfe00, 0xfe0f],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
]

/** What each unit becomes: 0 not asked yet. Filled as texts need it, 128 kB at most. */
const folds = new Uint16Array(0x10000)
/** Units that become more than one, such as ligatures. At most the few hundred that Unicode has. */
const several = new Map<number, string>()

for (const [from, to] of LOOK_ALIKES) for (let i = 0; i < from.length; i++) folds[from.charCodeAt(i)] = to.charCodeAt(i)
for (const [from, to] of INVISIBLE) folds.fill(DROPPED, from, to + 1)
for (const zero of ZEROS) for (let i = 0; i < 10; i++) folds[zero.charCodeAt(0) + i] = 0x30 + i

const isAscii = (text: string): boolean => {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false
  return true
}

const foldUnit = (unit: number): number => {
  const char = String.fromCharCode(unit)
  let fold = unit
  const plain = char.normalize('NFKC')
  // Accents stay: `é` is a letter as it is. Only what is compatible with ASCII changes.
  if (plain !== char && isAscii(plain)) {
    if (plain.length === 1) fold = plain.charCodeAt(0)
    else {
      fold = SEVERAL
      several.set(unit, plain)
    }
  } else if (char.trim() === '') fold = 0x20
  folds[unit] = fold
  return fold
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00
const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000

/** What a pair of surrogates becomes: ASCII, nothing, or undefined for itself. */
const foldPair = (pair: string): string | undefined => {
  const point = pair.codePointAt(0)!
  // Tags and the supplement of variation selectors carry hidden text.
  if (point >= 0xe0000 && point <= 0xe0fff) return ''
  const plain = pair.normalize('NFKC')
  return plain !== pair && isAscii(plain) ? plain : undefined
}

const NOT_ASCII = /[\u0080-\uffff]/
/** Backslashes of one escape at most: JSON within JSON within JSON doubles them. */
const BACKSLASHES_MAX = 8
const BACKSLASH = 0x5c
const ANY_ESCAPE = /\\(?:[nrt]|u[0-9a-fA-F]{4})/
const ESCAPE = new RegExp(`\\\\{1,${BACKSLASHES_MAX}}(?:[nrt]|u[0-9a-fA-F]{4})`, 'y')
const ESCAPE_BEGUN = new RegExp(`\\\\{1,${BACKSLASHES_MAX}}(?:u[0-9a-fA-F]{0,3})?$`)
/** Units behind the last backslash of an escape that has begun, and that backslash. */
const BEGUN_UNITS_MAX = 5

/** Where an escape starts that may go on behind the text; the text's length if there is none. */
export const escapeBegunAt = (text: string): number => {
  if (text.lastIndexOf('\\') < Math.max(0, text.length - BEGUN_UNITS_MAX)) return text.length
  const from = Math.max(0, text.length - BEGUN_UNITS_MAX - BACKSLASHES_MAX)
  const found = text.slice(from).search(ESCAPE_BEGUN)
  return found < 0 ? text.length : from + found
}

/** Folds a text. A surrogate without its other half stays as it is. */
export const normalise = (text: string): NormalisedText => {
  const first = text.search(NOT_ASCII)
  const escapeAt = text.includes('\\') ? text.search(ANY_ESCAPE) : -1
  if (escapeAt >= 0) {
    const from = Math.max(0, escapeAt + 1 - BACKSLASHES_MAX)
    return normaliseWithMap(text, first < 0 ? from : Math.min(first, from))
  }
  if (first < 0) return { text }
  for (let i = first; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) continue
    const fold = folds[unit]! === 0 ? foldUnit(unit) : folds[unit]!
    if (fold !== unit || isHighSurrogate(unit)) return normaliseWithMap(text, i)
  }
  return { text }
}

/** What a unit becomes; undefined for itself. */
const foldText = (unit: number): string | undefined => {
  const fold = folds[unit]! === 0 ? foldUnit(unit) : folds[unit]!
  if (fold === unit) return undefined
  return fold === DROPPED ? '' : fold === SEVERAL ? several.get(unit)! : String.fromCharCode(fold)
}

const escapeLength = (text: string, at: number): number => {
  ESCAPE.lastIndex = at
  return ESCAPE.test(text) ? ESCAPE.lastIndex - at : 0
}

/** What an escape stands for. Halves of surrogate pairs stay as they are written. */
const foldEscape = (written: string): string | undefined => {
  if (/[nrt]$/.test(written)) return '\n'
  const unit = Number.parseInt(written.slice(-4), 16)
  if (unit < 0x80) return String.fromCharCode(unit)
  return isHighSurrogate(unit) || isLowSurrogate(unit) ? undefined : (foldText(unit) ?? String.fromCharCode(unit))
}

const normaliseWithMap = (text: string, first: number): NormalisedText => {
  const shifts: number[] = []
  let out = ''
  let from = 0
  for (let i = first; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80 && unit !== BACKSLASH) continue
    let units = 1
    let plain: string | undefined
    if (unit === BACKSLASH) {
      const length = escapeLength(text, i)
      if (length === 0) continue
      units = length
      plain = foldEscape(text.slice(i, i + length))
    } else if (isHighSurrogate(unit)) {
      if (i + 1 === text.length || !isLowSurrogate(text.charCodeAt(i + 1))) continue
      units = 2
      plain = foldPair(text.slice(i, i + 2))
    } else {
      plain = foldText(unit)
    }
    if (plain !== undefined) {
      out += text.slice(from, i)
      if (plain.length !== 1 || units !== 1) shifts.push(out.length, i, plain.length, units)
      out += plain
      from = i + units
    }
    i += units - 1
  }
  return shifts.length === 0 ? { text: out + text.slice(from) } : { text: out + text.slice(from), shifts }
}

/** The last shift at or before a place of the folded text, as an index of `shifts`; −1 if all are behind it. */
const shiftBefore = (shifts: readonly number[], place: number): number => {
  let low = 0
  let high = shifts.length / 4
  while (low < high) {
    const middle = (low + high) >> 1
    if (shifts[middle * 4]! <= place) low = middle + 1
    else high = middle
  }
  return low * 4 - 4
}

/** Where the unit at a place of the folded text starts in the original. */
export const originalStart = ({ shifts }: NormalisedText, place: number): number => {
  if (shifts === undefined) return place
  const i = shiftBefore(shifts, place)
  if (i < 0) return place
  const behind = place - shifts[i]! - shifts[i + 2]!
  return behind < 0 ? shifts[i + 1]! : shifts[i + 1]! + shifts[i + 3]! + behind
}

/** Where a place of the folded text is in the original. Characters without width inside the place belong to it. */
export const originalPlace = (
  normalised: NormalisedText,
  place: { readonly start: number; readonly end: number },
): { start: number; end: number } => {
  const { shifts } = normalised
  if (shifts === undefined) return { start: place.start, end: place.end }
  const last = place.end - 1
  const i = shiftBefore(shifts, last)
  const isInside = i >= 0 && last - shifts[i]! < shifts[i + 2]!
  const end = isInside ? shifts[i + 1]! + shifts[i + 3]! : originalStart(normalised, last) + 1
  return { start: originalStart(normalised, place.start), end }
}
