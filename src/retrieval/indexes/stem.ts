/**
 * Which words are the same word? Porter's suffix stripping ("An algorithm for suffix stripping", Program 14(3), 1980):
 * `connect`, `connected`, `connecting` and `connections` all become `connect`. It knows English only; words of other
 * alphabets pass through untouched, and short words stay as they are.
 *
 * It works on [C](VC)^m[V]: m, the measure, counts how often a vowel run is followed by a consonant run, and a suffix
 * falls only when enough of a word is left before it.
 */
const VOWEL = '[aeiouy]'
const CONSONANT = '[^aeiou]'
const VOWELS = `${VOWEL}[aeiou]*`
const CONSONANTS = `${CONSONANT}[^aeiouy]*`

const HAS_M0 = new RegExp(`^(${CONSONANTS})?${VOWELS}${CONSONANTS}`)
const IS_M1 = new RegExp(`^(${CONSONANTS})?${VOWELS}${CONSONANTS}(${VOWELS})?$`)
const HAS_M1 = new RegExp(`^(${CONSONANTS})?${VOWELS}${CONSONANTS}${VOWELS}${CONSONANTS}`)
const HAS_VOWEL = new RegExp(`^(${CONSONANTS})?${VOWEL}`)
const ENDS_CVC = new RegExp(`^${CONSONANTS}${VOWEL}[^aeiouwxy]$`)
const ENDS_DOUBLE = /([^aeiouylsz])\1$/

const STEP_2: ReadonlyArray<readonly [string, string]> = [
  ['ational', 'ate'],
  ['tional', 'tion'],
  ['enci', 'ence'],
  ['anci', 'ance'],
  ['izer', 'ize'],
  ['bli', 'ble'],
  ['alli', 'al'],
  ['entli', 'ent'],
  ['eli', 'e'],
  ['ousli', 'ous'],
  ['ization', 'ize'],
  ['ation', 'ate'],
  ['ator', 'ate'],
  ['alism', 'al'],
  ['iveness', 'ive'],
  ['fulness', 'ful'],
  ['ousness', 'ous'],
  ['aliti', 'al'],
  ['iviti', 'ive'],
  ['biliti', 'ble'],
  ['logi', 'log'],
]

const STEP_3: ReadonlyArray<readonly [string, string]> = [
  ['icate', 'ic'],
  ['ative', ''],
  ['alize', 'al'],
  ['iciti', 'ic'],
  ['ical', 'ic'],
  ['ful', ''],
  ['ness', ''],
]

const STEP_4 = [
  'ement',
  'ance',
  'ence',
  'able',
  'ible',
  'ment',
  'ant',
  'ent',
  'ism',
  'ate',
  'iti',
  'ous',
  'ive',
  'ize',
  'al',
  'er',
  'ic',
  'ou',
]

/** The stem of a lower-case word. */
export function stem(word: string): string {
  if (word.length < 3 || !/^[a-z]+$/.test(word)) return word
  let out = stripPlural(word)
  out = stripPast(out)
  if (out.endsWith('y') && HAS_VOWEL.test(out.slice(0, -1))) out = `${out.slice(0, -1)}i`
  out = replaceSuffix(out, STEP_2)
  out = replaceSuffix(out, STEP_3)
  out = stripLong(out)
  return stripEnd(out)
}

function stripPlural(word: string): string {
  if (word.endsWith('sses') || word.endsWith('ies')) return word.slice(0, -2)
  return /[^s]s$/.test(word) ? word.slice(0, -1) : word
}

function stripPast(word: string): string {
  if (word.endsWith('eed')) return HAS_M0.test(word.slice(0, -3)) ? word.slice(0, -1) : word
  const suffix = word.endsWith('ed') ? 2 : word.endsWith('ing') ? 3 : 0
  const rest = word.slice(0, word.length - suffix)
  if (suffix === 0 || !HAS_VOWEL.test(rest)) return word
  if (/(at|bl|iz)$/.test(rest)) return `${rest}e`
  if (ENDS_DOUBLE.test(rest)) return rest.slice(0, -1)
  return ENDS_CVC.test(rest) ? `${rest}e` : rest
}

function replaceSuffix(word: string, table: ReadonlyArray<readonly [string, string]>): string {
  for (const [suffix, by] of table) {
    if (!word.endsWith(suffix)) continue
    const rest = word.slice(0, -suffix.length)
    return HAS_M0.test(rest) ? rest + by : word
  }
  return word
}

function stripLong(word: string): string {
  for (const suffix of STEP_4) {
    if (!word.endsWith(suffix)) continue
    const rest = word.slice(0, -suffix.length)
    return HAS_M1.test(rest) ? rest : word
  }
  const rest = /[st]ion$/.test(word) ? word.slice(0, -3) : undefined
  return rest !== undefined && HAS_M1.test(rest) ? rest : word
}

function stripEnd(word: string): string {
  let out = word
  if (out.endsWith('e')) {
    const rest = out.slice(0, -1)
    if (HAS_M1.test(rest) || (IS_M1.test(rest) && !ENDS_CVC.test(rest))) out = rest
  }
  return out.endsWith('ll') && HAS_M1.test(out) ? out.slice(0, -1) : out
}
