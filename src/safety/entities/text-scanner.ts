import { LinearMatcher } from '../../base/linear-matcher.ts'
import type { OwnPattern } from '../../domain/screening.ts'
import { EntityScanner, type ScannedPlace, type ScanOptions } from './entity-scanner.ts'

/** Where a scan starts, and what the scan before left behind. */
export interface ScanFrom {
  readonly from: number
  /** Where the rules go on: patterns may hold text that the rules have read already. */
  readonly rulesFrom: number
  readonly isMidRun: boolean
}

export const FROM_THE_START: ScanFrom = { from: 0, rulesFrom: 0, isMidRun: false }

/**
 * Places of a text by the rules and by a tenant's own patterns. Rules come first: patterns are searched for between what
 * the rules found, so that no pattern cuts an address in two.
 */
export class TextScanner {
  /** Where the undecided tail starts, and where the rules go on. */
  openFrom = 0
  rulesFrom = 0

  readonly #rules: EntityScanner
  readonly #patterns: readonly OwnPattern[]
  readonly #matcher: LinearMatcher | undefined

  constructor({ patterns, ...options }: ScanOptions & { readonly patterns: readonly OwnPattern[] }) {
    this.#rules = new EntityScanner(options)
    this.#patterns = patterns
    this.#matcher = patterns.length === 0 ? undefined : new LinearMatcher(patterns.map(({ expression }) => expression))
  }

  get hasPatterns(): boolean {
    return this.#matcher !== undefined
  }

  get isMidRun(): boolean {
    return this.#rules.isMidRun
  }

  get keyBodyFrom(): number {
    return this.#rules.keyBodyFrom
  }

  get isKeyCut(): boolean {
    return this.#rules.isKeyCut
  }

  scan(text: string, { from, rulesFrom, isMidRun, isWhole }: ScanFrom & { isWhole: boolean }): readonly ScannedPlace[] {
    const rules = this.#rules
    const found = rules.scan(text, { from: rulesFrom, isWhole, isMidRun })
    this.openFrom = rules.openFrom
    this.rulesFrom = rules.openFrom
    return this.#matcher === undefined ? found : this.#withPatterns(this.#matcher, text, { from, found, isWhole })
  }

  #withPatterns(
    matcher: LinearMatcher,
    text: string,
    { from, found, isWhole }: { from: number; found: readonly ScannedPlace[]; isWhole: boolean },
  ): readonly ScannedPlace[] {
    const all: ScannedPlace[] = []
    let at = from
    for (const place of found) {
      this.#search(matcher, text.slice(0, place.start), { at, isWhole: true, all })
      all.push(place)
      at = place.end
    }
    // A private key ends what is before it as a found place does.
    const isEnd = isWhole || this.keyBodyFrom >= 0
    this.#search(matcher, isWhole ? text : text.slice(0, this.openFrom), { at, isWhole: isEnd, all })
    this.openFrom = Math.min(this.openFrom, matcher.openFrom)
    return all
  }

  #search(
    matcher: LinearMatcher,
    text: string,
    { at, isWhole, all }: { at: number; isWhole: boolean; all: ScannedPlace[] },
  ): void {
    let from = at
    while (matcher.find(text, { from, isWhole })) {
      const { start, end } = matcher
      all.push({ screen: 'patterns', category: this.#patterns[matcher.which]!.name, start, end })
      from = end
    }
  }
}
