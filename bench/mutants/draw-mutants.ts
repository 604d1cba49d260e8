import { Rng } from '../../src/base/rng.ts'
import { type Mutation, OPERATORS } from './mutations.ts'

/**
 * Draws this many of all mutations. Operators take turns, so that a rare one (a dropped `await`) is drawn as often as a
 * common one as long as it has mutations left; no line is drawn twice by the same operator.
 */
export function drawMutants(all: readonly Mutation[], count: number, seed: number): Mutation[] {
  const rng = Rng.stream(seed, 'mutants')
  const left = OPERATORS.map((operator) => all.filter((mutation) => mutation.operator === operator))
  const seen = new Set<string>()
  const drawn: Mutation[] = []
  while (drawn.length < count && left.some((some) => some.length > 0)) {
    for (const some of left) {
      const one = drawOne(some, seen, rng)
      if (one !== undefined && drawn.length < count) drawn.push(one)
    }
  }
  return drawn
}

function drawOne(some: Mutation[], seen: Set<string>, rng: Rng): Mutation | undefined {
  while (some.length > 0) {
    const at = rng.below(some.length)
    const [one] = some.splice(at, 1)
    const place = `${one!.file}:${one!.line} ${one!.operator}`
    if (seen.has(place)) continue
    seen.add(place)
    return one
  }
  return undefined
}
