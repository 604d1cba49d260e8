import type { RewritingScreen, ScreenDirection, ScreeningTerms } from '../domain/screening.ts'
import { EntityFinder } from './entities/entity-finder.ts'

/** Finders by policy and direction: made once for each, and gone with the policy. */
export function makeFinders(): (terms: ScreeningTerms, direction: ScreenDirection) => EntityFinder {
  const known = {
    input: new WeakMap<ScreeningTerms, EntityFinder>(),
    output: new WeakMap<ScreeningTerms, EntityFinder>(),
  }
  return (terms, direction) => {
    const made = known[direction].get(terms)
    if (made !== undefined) return made
    const { allowed, patterns } = terms
    const finder = new EntityFinder({ screens: screensOf(terms, direction), allowed, patterns })
    known[direction].set(terms, finder)
    return finder
  }
}

function screensOf({ rules }: ScreeningTerms, direction: ScreenDirection): RewritingScreen[] {
  const on = rules.filter((rule) => rule.direction === direction).map(({ screen }) => screen)
  return on.filter((screen) => screen === 'pii' || screen === 'secrets' || screen === 'names' || screen === 'patterns')
}
