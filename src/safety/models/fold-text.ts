/**
 * Which letters are the same? Case is folded, all digits are one digit, and what is neither letter nor digit is a gap
 * (0). Letters of other scripts keep their low bits, apart from the Latin ones.
 */
export const FOLDS = makeFolds()

const WORD_PRIME = 0x01000193
export const WORD_SEED = 0x811c9dc5 | 0

export function foldHigh(code: number): number {
  // Punctuation, symbols, pictures.
  if (code >= 0x2000 && code < 0x2c00) return 0
  if (code >= 0x3000 && code < 0x3040) return 0
  if (code >= 0xd800 && code < 0xe000) return 0
  return 128 + (code & 127)
}

/** The hash of a word after one more folded letter. */
export function addLetter(hash: number, fold: number): number {
  return Math.imul(hash ^ fold, WORD_PRIME)
}

export function hashWord(word: string): number {
  let hash = WORD_SEED
  for (let at = 0; at < word.length; at++) {
    const code = word.charCodeAt(at)
    hash = addLetter(hash, code < FOLDS.length ? (FOLDS[code] as number) : foldHigh(code))
  }
  return hash
}

function makeFolds(): Uint8Array {
  const folds = new Uint8Array(0x250)
  for (let code = 0; code < folds.length; code++) {
    const character = String.fromCharCode(code)
    const lower = character.toLowerCase()
    if (lower >= '0' && lower <= '9') folds[code] = 48
    else if (lower !== lower.toUpperCase() || code === 0xdf) folds[code] = lower.charCodeAt(0) & 255
  }
  // An underscore is a letter of names in code.
  folds[95] = 95
  return folds
}
