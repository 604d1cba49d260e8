/** Sums that tell a number of a kind from any number. Digits come as a string of ASCII digits. */

const at = (digits: string, i: number): number => digits.charCodeAt(i) - 48

/** Luhn: every second digit from the right counts double (ISO/IEC 7812). */
export const passesLuhn = (digits: string): boolean => {
  let sum = 0
  for (let i = digits.length - 1, isDouble = false; i >= 0; i--, isDouble = !isDouble) {
    const digit = at(digits, i)
    sum += isDouble ? (digit > 4 ? digit * 2 - 9 : digit * 2) : digit
  }
  return sum % 10 === 0
}

/** ISO 7064 mod 97-10, as IBANs use it: four characters go to the end, letters count 10 … 35. */
export const passesMod97 = (iban: string): boolean => {
  let rest = 0
  for (let k = 0; k < iban.length; k++) {
    const unit = iban.charCodeAt((k + 4) % iban.length)
    const value = unit <= 0x39 ? unit - 0x30 : (unit | 0x20) - 0x57
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97
  }
  return rest === 1
}

/** Sum of digits times weights. */
export const weightedSum = (digits: string, weights: readonly number[]): number => {
  let sum = 0
  for (let i = 0; i < weights.length; i++) sum += at(digits, i) * weights[i]!
  return sum
}

/** The dihedral group's sum that Aadhaar numbers use (Verhoeff). */
export const passesVerhoeff = (digits: string): boolean => {
  let check = 0
  for (let i = 0; i < digits.length; i++) {
    let digit = at(digits, digits.length - 1 - i)
    for (let k = i % 8; k > 0; k--) digit = '1576283094'.charCodeAt(digit) - 48
    check = dihedral(check, digit)
  }
  return check === 0
}

/** Product in the dihedral group of ten elements. */
const dihedral = (a: number, b: number): number =>
  a < 5 ? (b < 5 ? (a + b) % 5 : 5 + ((a + b - 5) % 5)) : b < 5 ? 5 + ((a - 5 - b + 5) % 5) : (a - b + 5) % 5

/** ISBN-10: weights 10 … 1, mod 11. Books have them, persons do not. */
export const passesIsbn10 = (digits: string): boolean =>
  digits.length === 10 && weightedSum(digits, [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]) % 11 === 0
