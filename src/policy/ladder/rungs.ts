import { assert } from '../../base/assert.ts'
import { FULL_RUNG } from '../../domain/plan.ts'
import type { RungTerms } from '../../domain/rung.ts'

/**
 * What do we give up, and in which order?
 *
 * Rungs as data, from giving up nothing to refusing the lowest band. The order is by what a person misses least: further
 * passages, old turns of a conversation, then the end of a long answer, then the bigger model, then answers that nobody waits for.
 * Each rung states all that it gives up, the shallower ones' included, so adding a rung is adding one object here (or
 * a few lines of configuration) and nothing else. Retrieved passages go first: the best two say most of it.
 *
 * Example: a request of 4,000 prompt tokens and max_tokens 2,000 on `cap-output` keeps about 2,000 prompt tokens and
 * writes at most 384; on `smaller-model` the same, by the fallback.
 */
export const FULL_TERMS: RungTerms = {
  ...FULL_RUNG,
  passagesMax: undefined,
  contextRatioMax: 1,
  contextTokensFloor: 0,
  outputTokensMax: undefined,
  isFallbackUsed: false,
  shedBands: [],
}

/** Of five passages the first two hold the answer in most cases that have one (recall@2 against @5 in the bench). */
const FEWER = { passagesMax: 2 }

/** Half of the context: most of a long chat's prefill, and the last turns are in the newer half. */
const TRIMMED = { contextRatioMax: 0.5, contextTokensFloor: 512 }

/** Nine of ten answers in Azure's chat trace have at most 424 tokens: a cap at 384 cuts about one in eight. */
const CAPPED = { outputTokensMax: 384 }

export const DEFAULT_RUNGS: readonly RungTerms[] = checkRungs([
  FULL_TERMS,
  { ...FULL_TERMS, name: 'trim-retrieval', depth: 1, ...FEWER },
  { ...FULL_TERMS, name: 'trim-context', depth: 2, ...FEWER, ...TRIMMED },
  { ...FULL_TERMS, name: 'cap-output', depth: 3, ...FEWER, ...TRIMMED, ...CAPPED },
  { ...FULL_TERMS, name: 'smaller-model', depth: 4, ...FEWER, ...TRIMMED, ...CAPPED, isFallbackUsed: true },
  {
    ...FULL_TERMS,
    name: 'shed-offline',
    depth: 5,
    ...FEWER,
    ...TRIMMED,
    ...CAPPED,
    isFallbackUsed: true,
    shedBands: ['offline'],
  },
])

/** Whether this rung is the one above it with fewer passages, and nothing else. */
export function givesUpPassagesOnly(rungs: readonly RungTerms[], depth: number): boolean {
  const rung = rungs[depth]
  const above = rungs[depth - 1]
  if (rung === undefined || above === undefined) return false
  return (
    rung.contextRatioMax === above.contextRatioMax &&
    rung.outputTokensMax === above.outputTokensMax &&
    rung.isFallbackUsed === above.isFallbackUsed &&
    rung.shedBands.length === above.shedBands.length
  )
}

/** Depths count up from `full`, and no rung gives back what a shallower one took. */
export function checkRungs(rungs: readonly RungTerms[]): readonly RungTerms[] {
  assert(rungs[0]?.name === FULL_RUNG.name, 'the first rung gives up nothing')
  for (let depth = 0; depth < rungs.length; depth++) {
    const rung = rungs[depth] as RungTerms
    assert(rung.depth === depth, 'a rung stands at its depth')
    if (depth === 0) continue
    const above = rungs[depth - 1] as RungTerms
    const passagesMax = rung.passagesMax ?? Number.POSITIVE_INFINITY
    assert(passagesMax <= (above.passagesMax ?? Number.POSITIVE_INFINITY), 'no rung gives passages back')
    const outputMax = rung.outputTokensMax ?? Number.POSITIVE_INFINITY
    assert(rung.contextRatioMax <= above.contextRatioMax, 'no rung gives context back')
    assert(outputMax <= (above.outputTokensMax ?? Number.POSITIVE_INFINITY), 'no rung gives output back')
    assert(rung.isFallbackUsed || !above.isFallbackUsed, 'no rung gives the bigger model back')
    assert(
      above.shedBands.every((band) => rung.shedBands.includes(band)),
      'no rung takes a shed band back',
    )
  }
  return rungs
}
