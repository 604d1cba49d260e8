/**
 * Where can a text be cut so that its pieces, tokenized one by one, give the tokens of the whole?
 *
 * A byte-pair tokenizer first splits a text into words by a pattern and then merges bytes inside each word, so any
 * boundary between two words is a good place. The pattern of o200k (and of cl100k) always starts a new word
 *
 *     between a digit and anything else          … 1|a  a|1  1|.     except after blanks, whose last stands apart
 *     after a letter, at anything but a letter   … a|␣  a|,  a|⏎     except an apostrophe: don't is one word
 *     at a blank after punctuation               … ,|␣              but not at a line end, which joins it
 *     at a letter that begins a line             … ⏎|a
 *
 * Slices let a long prompt be tokenized a few milliseconds at a time, with the event loop free in between.
 *
 * Merging takes time quadratic in the length of a word, and some texts are one word: a hundred thousand blanks take
 * twelve seconds. So a stretch without any such place is cut all the same after `RUN_CHARACTERS_MAX`. There, and only
 * there, the tokens may differ from those of the whole by one or two; put together they still spell the same text.
 */

/** Characters of a slice: little work between two pauses. */
export const SLICE_CHARACTERS = 512

/** Twice the longest token of the vocabulary (128 blanks), and longer than any word that people write. */
export const RUN_CHARACTERS_MAX = 256

export function* slicesOf(text: string, characters = SLICE_CHARACTERS): Generator<string, void, undefined> {
  let from = 0
  let lastPlace = 0
  let before = kindOf(text.charCodeAt(0))
  for (let at = 1; at < text.length; at++) {
    const kind = kindOf(text.charCodeAt(at))
    const isPlace = isWordStart(before, kind)
    before = kind
    if (isPlace) lastPlace = at
    const isRunTooLong = at - lastPlace >= RUN_CHARACTERS_MAX && !isInsideCharacter(text, at)
    if (isRunTooLong || (isPlace && at - from >= characters)) {
      yield text.slice(from, at)
      from = at
      lastPlace = at
    }
  }
  if (from < text.length) yield text.slice(from)
}

/**
 * The kinds of character that the pattern distinguishes. `other` may be anything: a slice ends beside it only where it
 * must.
 */
type Kind = 'letter' | 'digit' | 'punctuation' | 'apostrophe' | 'blank' | 'line-end' | 'other'

const ASCII_KINDS: readonly Kind[] = Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code)
  if (/[A-Za-z]/.test(character)) return 'letter'
  if (/[0-9]/.test(character)) return 'digit'
  if (character === "'") return 'apostrophe'
  if (/[\r\n]/.test(character)) return 'line-end'
  if (/\s/.test(character)) return 'blank'
  return 'punctuation'
})

/** Punctuation of Chinese and Japanese, which have no blanks between words. */
const WIDE_PUNCTUATION = new Set(Array.from('。、，．！？：；（）「」『』', (character) => character.charCodeAt(0)))

function kindOf(code: number): Kind {
  if (code < 128) return ASCII_KINDS[code] as Kind
  if (isWideLetter(code)) return 'letter'
  return WIDE_PUNCTUATION.has(code) ? 'punctuation' : 'other'
}

/** Kana, Chinese characters and Hangul syllables, in ranges that contain letters only. */
function isWideLetter(code: number): boolean {
  return (
    (code >= 0x3041 && code <= 0x3096) ||
    (code >= 0x30a1 && code <= 0x30fa) ||
    (code >= 0x4e00 && code <= 0x9fff) ||
    (code >= 0xac00 && code <= 0xd7a3)
  )
}

function isWordStart(before: Kind, kind: Kind): boolean {
  switch (kind) {
    case 'digit':
      return before !== 'digit' && before !== 'blank' && before !== 'other'
    case 'letter':
      return before === 'digit' || before === 'line-end'
    case 'punctuation':
      return before === 'letter' || before === 'digit'
    case 'blank':
      return before === 'letter' || before === 'digit' || before === 'punctuation'
    case 'line-end':
      return before === 'letter' || before === 'digit'
    case 'apostrophe':
      return before === 'digit'
    case 'other':
      return false
  }
}

const isInsideCharacter = (text: string, at: number): boolean => {
  const code = text.charCodeAt(at)
  return code >= 0xdc00 && code <= 0xdfff
}
