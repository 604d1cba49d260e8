import type { EntitySpan, OwnPattern, RewritingScreen } from '../../domain/screening.ts'
import { normalise, originalPlace } from '../normalise.ts'
import { FROM_THE_START, TextScanner } from './text-scanner.ts'

export interface FinderOptions {
  /** Screens that are looked for: `pii`, `secrets` and `patterns`. */
  readonly screens: readonly RewritingScreen[]
  /** Values that are never a finding, as they are written. */
  readonly allowed?: readonly string[]
  /** Patterns of the tenant's own, checked before: one that cannot be used throws here. */
  readonly patterns?: readonly OwnPattern[]
}

const NOTHING: readonly EntitySpan[] = []

/** Which places of a text are entities? Sorted, without overlaps, in units of the text as it was given. */
export class EntityFinder {
  /** Scans for this finder and all streams of it: what a scan says is read before the next one starts. */
  readonly scanner: TextScanner
  readonly #allowed: ReadonlySet<string>

  constructor({ screens, allowed = [], patterns = [] }: FinderOptions) {
    this.#allowed = new Set(allowed)
    this.scanner = new TextScanner({
      hasPii: screens.includes('pii'),
      hasSecrets: screens.includes('secrets'),
      readsBase64: true,
      patterns: screens.includes('patterns') ? patterns : [],
    })
  }

  find(text: string): readonly EntitySpan[] {
    const normalised = normalise(text)
    const found = this.scanner.scan(normalised.text, { ...FROM_THE_START, isWhole: true })
    if (found.length === 0) return NOTHING
    const spans: EntitySpan[] = []
    for (const [i, place] of found.entries()) {
      const { start, end: placeEnd } = originalPlace(normalised, place)
      const end = this.scanner.isKeyCut && i === found.length - 1 ? text.length : placeEnd
      if (this.isAllowed(text.slice(start, end))) continue
      spans.push({ screen: place.screen, category: place.category, start, end })
    }
    return spans
  }

  isAllowed(value: string): boolean {
    return this.#allowed.size > 0 && this.#allowed.has(value)
  }
}
