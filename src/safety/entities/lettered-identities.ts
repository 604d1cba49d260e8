import { isWordUnit, NONE } from './characters.ts'

/** Persons' numbers with letters in them, by form and, where there is one, by sum. */

const letterOf = (alphabet: string, value: number): string => alphabet[value % alphabet.length]!

/** Spain: eight digits (X, Y, Z stand for the first), and the letter of their remainder by 23. */
const isSpanish = (id: string): boolean =>
  letterOf('TRWAGMYFPDXBNJZSQVHLCKE', Number(id.slice(0, 8).replace(/^[XYZ]/, (x) => `${'XYZ'.indexOf(x)}`))) === id[8]

const ODD = [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23]

/** Italy: odd places count by a table, even ones by themselves, and the sum gives the last letter. */
const isItalian = (id: string): boolean => {
  let sum = 0
  for (let i = 0; i < 15; i++) {
    const unit = id.charCodeAt(i)
    const value = unit <= 0x39 ? unit - 0x30 : unit - 0x41
    sum += i % 2 === 0 ? ODD[value]! : value
  }
  return letterOf('ABCDEFGHIJKLMNOPQRSTUVWXYZ', sum % 26) === id[15]
}

/** Finland: the number without its century mark, by 31. */
const isFinnish = (id: string): boolean =>
  letterOf('0123456789ABCDEFHJKLMNPRSTUVWXY', Number(id.slice(0, 6) + id.slice(7, 10)) % 31) === id[10]

/** China: weights 2^(17−i) by 11; X is ten. */
const isChinese = (id: string): boolean => {
  let sum = 0
  for (let i = 0; i < 17; i++) sum += Number(id[i]) * (2 ** (17 - i) % 11)
  return '10X98765432'[sum % 11] === id[17]
}

/** Singapore: weights 2765432, and an alphabet by the first letter. */
const isSingaporean = (id: string): boolean => {
  let sum = /^[TG]/.test(id) ? 4 : 0
  for (let i = 1; i < 8; i++) sum += Number(id[i]) * [2, 7, 6, 5, 4, 3, 2][i - 1]!
  return letterOf(/^[ST]/.test(id) ? 'JZIHGFEDCBA' : 'XWUTRQPNMLK', sum % 11) === id[8]
}

const FORMS: readonly (readonly [form: RegExp, passes: (id: string) => boolean])[] = [
  [/^(\d{8}|[XYZ]\d{7})[A-Z]$/, isSpanish],
  [/^[A-Z]{6}\d\d[A-EHLMPR-T]\d\d[A-Z]\d{3}[A-Z]$/, isItalian],
  [/^(0[1-9]|[12]\d|3[01])(0[1-9]|1[0-2])\d\d[-+A-FU-Y]\d{3}[0-9A-Y]$/, isFinnish],
  [/^\d{6}(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])\d{3}[\dX]$/, isChinese],
  [/^[STFG]\d{7}[A-Z]$/, isSingaporean],
  // United Kingdom and Mexico: no sum, but a form that nothing else has.
  [/^(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]\d{6}[A-D]$/, () => true],
  [/^[A-Z][AEIOUX][A-Z]{2}\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])[HMX][A-Z]{5}[0-9A-Z]\d$/, () => true],
]

/** End of the person's number that the run from `start` to `end` is. */
export const letteredIdentityEnd = (text: string, start: number, end: number): number => {
  let to = end
  while (to > start && !isWordUnit(text.charCodeAt(to - 1))) to--
  if (to - start < 9 || to - start > 18) return NONE
  const id = text.slice(start, to).toUpperCase()
  for (const [form, passes] of FORMS) if (form.test(id) && passes(id)) return to
  return NONE
}
