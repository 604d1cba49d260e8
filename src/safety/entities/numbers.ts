import { isCardGrouping, isCardNumber, isGoodsNumber } from './cards.ts'
import { isDigit, isWordUnit, NONE, OPEN } from './characters.ts'
import { identityCategory } from './identity-numbers.ts'
import { ipv4End } from './ip-addresses.ts'
import { NumberChain } from './number-chain.ts'
import { lastPhoneGroup, readBehind } from './phones.ts'

const DOT = 0x2e

/** Which number starts here: a card, a person's number, a telephone number, an IPv4 address, or none of them? */
export class NumberFinder {
  /** What the last match is. */
  category = ''
  readonly #chain = new NumberChain()

  /** End of the entity that starts with the digit, plus or bracket at `at`. */
  endAt(text: string, at: number, isWhole: boolean): number {
    if (isPartOfMore(text, at)) return NONE
    const chain = this.#chain
    if (!chain.read(text, at, isWhole)) return OPEN
    if (chain.count === 0) return NONE
    if (chain.count >= 4 && chain.marks[1] === DOT && chain.start === chain.starts[0]) {
      const end = ipv4End(text, at, isWhole)
      if (end !== NONE) {
        this.category = 'ip'
        return end
      }
    }
    const last = chain.isLastPart ? chain.count - 2 : chain.count - 1
    if (last < 0 || chain.digitCount(last) < 7 || isDate(chain)) return NONE
    const price = text.charCodeAt(at - 1)
    if (price === 0x24 || price === 0x20ac || price === 0xa3 || price === 0xa5) return NONE
    return this.#numberEnd(text, last, isWhole)
  }

  #isCard(last: number): boolean {
    const digits = this.#chain.digits(last)
    if (!isCardNumber(digits)) return false
    if (last > 0 || digits.length > 13) return true
    const { context } = this.#chain
    return context === 'card' || (context !== 'other' && !isGoodsNumber(digits))
  }

  #numberEnd(text: string, last: number, isWhole: boolean): number {
    const chain = this.#chain
    if (!chain.hasPlus)
      for (let i = last; i >= 0; i--) {
        const count = chain.digitCount(i)
        if (count < 9) break
        if ((chain.isTied(i) && !isFloat(chain, i)) || count > 19) continue
        if (count >= 12 && isCardGrouping(chain, i) && this.#isCard(i)) {
          this.category = 'card'
          return chain.ends[i]!
        }
        const category = identityCategory(chain, i)
        if (category !== undefined) {
          this.category = category
          return chain.ends[i]!
        }
      }
    const isAllUsed = last === chain.count - 1
    const behind = isAllUsed ? readBehind(text, chain.end, isWhole) : { end: chain.end, isPlace: false }
    if (behind === undefined) return OPEN
    const group = lastPhoneGroup(chain, last, behind.isPlace)
    if (group < 0) return NONE
    this.category = 'phone'
    return group === last && isAllUsed ? behind.end : chain.ends[group]!
  }
}

/** A whole number as tables of floats write it: `4111111111111111.0`. */
const isFloat = (chain: NumberChain, last: number): boolean =>
  last === 0 &&
  chain.count === 2 &&
  chain.marks[1] === DOT &&
  chain.digitCount(0) >= 13 &&
  /^0{1,2}$/.test(chain.text.slice(chain.starts[1], chain.ends[1]))

/** Digits behind `1,` or `12:` or `3.` continue a price, a time or a version, digits behind a letter a name. */
const isPartOfMore = (text: string, at: number): boolean => {
  if (at === 0) return false
  const before = text.charCodeAt(at - 1)
  if (isWordUnit(before)) return true
  const isMark = before === 0x2c || before === 0x2e || before === 0x3a || before === 0x2d || before === 0x2f
  return isMark && at > 1 && isDigit(text.charCodeAt(at - 2))
}

const YEAR_FIRST = new Set([411, 412, 421, 422])
const YEAR_LAST = new Set([112, 122, 212, 222, 114, 124, 214, 224])

/** Whether the first three groups are a day: 2024-01-15, 15.1.2024, 1/15/24. */
const isDate = (chain: NumberChain): boolean => {
  const { marks } = chain
  if (chain.count < 3 || chain.hasPlus || marks[0] !== 0 || marks[1] !== marks[2]) return false
  if (marks[1] !== 0x2d && marks[1] !== DOT && marks[1] !== 0x2f) return false
  if (chain.count > 3 && marks[3] === marks[1]) return false
  const sizes = chain.sizes(2)
  const number = (i: number): number => Number(chain.text.slice(chain.starts[i]!, chain.ends[i]!))
  if (YEAR_FIRST.has(sizes)) return number(1) <= 12 && number(2) <= 31 && number(0) > 1000 && number(0) < 2200
  if (!YEAR_LAST.has(sizes)) return false
  return number(0) <= 31 && number(1) <= 31 && (number(0) <= 12 || number(1) <= 12)
}
