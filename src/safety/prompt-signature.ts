import { SIGNATURE_LANES } from '../policy/screening/key-conduct.ts'

/**
 * Eight numbers by which near-identical prompts are known, and from which no prompt can be made again. Seven are the
 * smallest hashes of the text's pairs of words, each under another permutation (MinHash, Broder 1997): two texts share
 * each with the probability of a pair being in both. Digits are one digit, so that "customer 1" and "customer 2" share
 * all seven. The eighth is a hash of the whole text: where it is the same too, the prompt is a repetition.
 *
 * Only the beginning of a long text is read: an enumeration is short, or varies somewhere in its first page.
 */
const CHARACTERS_MAX = 2_048

const PRIME = 0x01000193
const BASIS = 0x811c9dc5

export function signatureOf(text: string): Uint32Array {
  const signature = new Uint32Array(SIGNATURE_LANES).fill(0xffffffff)
  const length = Math.min(text.length, CHARACTERS_MAX)
  let whole = BASIS
  let before = 0
  let word = BASIS
  let isInWord = false
  for (let at = 0; at <= length; at++) {
    const code = at < length ? text.charCodeAt(at) : 32
    whole = Math.imul(whole ^ code, PRIME)
    const folded = fold(code)
    if (folded !== 0) {
      // A run of digits is one digit: "customer 9" and "customer 10" differ in nothing else.
      if (folded !== 48 || !isInWord || word !== DIGITS) word = Math.imul(word ^ folded, PRIME)
      isInWord = true
      continue
    }
    if (!isInWord) continue
    notePair(signature, Math.imul(before ^ word, PRIME))
    before = word
    word = BASIS
    isInWord = false
  }
  signature[SIGNATURE_LANES - 1] = whole
  return signature
}

/** The word that a first digit makes: further digits leave it as it is. */
const DIGITS = Math.imul(BASIS ^ 48, PRIME)

function fold(code: number): number {
  if (code >= 48 && code <= 57) return 48
  if (code >= 65 && code <= 90) return code + 32
  if (code >= 97 && code <= 122) return code
  return code > 127 ? code : 0
}

function notePair(signature: Uint32Array, pair: number): void {
  let mixed = pair
  for (let lane = 0; lane < SIGNATURE_LANES - 1; lane++) {
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d) + lane
    mixed = Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39)
    const hash = (mixed ^ (mixed >>> 15)) >>> 0
    if (hash < (signature[lane] as number)) signature[lane] = hash
  }
}
