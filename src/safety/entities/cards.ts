import { passesLuhn } from './checksums.ts'
import type { NumberChain } from './number-chain.ts'

/**
 * Prefixes of issuers with the lengths of their numbers, as `from-to:lengths`. A prefix is compared with as many of the
 * first digits as it has. Sources: ISO/IEC 7812 ranges as the issuers publish them.
 */
const ISSUERS = `
4:13,16,18,19 51-55:16 2221-2720:16 34:15 37:15 300-305:14,16,19 3095:14,16,19 309:14 36:14,15,16,17,18,19 38-39:14,15,16,17,18,19
6011:16,17,18,19 622126-622925:16,17,18,19 644-649:16,17,18,19 65:16,17,18,19 3528-3589:16,17,18,19 2131:15 1800:15 35:16
62:16,17,18,19 81:16,17,18,19 50:12,13,14,15,16,17,18,19 56-58:12,13,14,15,16,17,18,19 60-61:12,13,14,15,16,17,18,19
63-64:12,13,14,15,16,17,18,19 66-69:12,13,14,15,16,17,18,19 0604:12,13,14,15,16,17,18,19 2200-2205:16,17,18,19 82:16
2014:15 2149:15 9792:16 8600:16 9860:16 1946:16 1:15`

interface IssuerRange {
  readonly digits: number
  readonly from: number
  readonly to: number
  readonly lengths: ReadonlySet<number>
}

const ranges: readonly IssuerRange[] = ISSUERS.trim()
  .split(/\s+/)
  .map((entry) => {
    const [range, lengths] = entry.split(':') as [string, string]
    const [from, to] = range.split('-') as [string, string?]
    return {
      digits: from.length,
      from: Number(from),
      to: Number(to ?? from),
      lengths: new Set(lengths.split(',').map(Number)),
    }
  })

export const isCardNumber = (digits: string): boolean => {
  if (digits.length < 12 || digits.length > 19 || !passesLuhn(digits)) return false
  // One digit again and again passes the sum and is a placeholder.
  if (/^(\d)\1+$/.test(digits)) return false
  return ranges.some(({ digits: count, from, to, lengths }) => {
    const prefix = Number(digits.slice(0, count))
    return prefix >= from && prefix <= to && lengths.has(digits.length)
  })
}

/** Twelve and thirteen digits are also on goods (UPC and EAN): those whose sum is right for goods need a word. */
export const isGoodsNumber = (digits: string): boolean => {
  if (digits.length !== 12 && digits.length !== 13) return false
  let sum = 0
  for (let i = digits.length - 1, weight = 1; i >= 0; i--, weight = 4 - weight) sum += Number(digits[i]) * weight
  return sum % 10 === 0
}

/** Two to four groups of four, with or without a shorter last one, and the forms of some issuers. */
const CARD_SIZES = new Set([465, 464, 68, 69, 88])
for (const fours of [44, 444, 4444]) {
  CARD_SIZES.add(fours)
  for (let rest = 1; rest <= 7; rest++) CARD_SIZES.add(fours * 10 + rest)
}

/** The way cards are printed: in one piece, or in groups of four; American Express 4-6-5, Diners 4-6-4. */
export const isCardGrouping = (chain: NumberChain, last: number): boolean => {
  if (last === 0) return true
  if (!chain.isEven(last) || chain.marks[1] === 0x2f) return false
  return CARD_SIZES.has(chain.sizes(last))
}
