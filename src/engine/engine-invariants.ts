import { assert } from '../base/assert.ts'
import type { EngineState } from './engine-state.ts'
import type { Sequence } from './sequence.ts'

/**
 * What must hold after every call, in O(sequences): for tests and for a simulation that checks its laws, not for the
 * hot path.
 */
export function assertEngineInvariants(state: EngineState, sequences: Iterable<Sequence>): void {
  const { pool, cache, waiting, prefilling, decodes, limits } = state
  let ownBlocks = 0
  let count = 0
  const refs = new Map<number, number>()
  for (const sequence of sequences) {
    count++
    const isDecoding = sequence.place === 'decoding'
    const held = isDecoding ? decodes.blocksOf(sequence) - sequence.units.length * pool.unitBlocks : sequence.ownBlocks
    assert(held >= 0, 'a sequence never holds less than nothing')
    assert(sequence.place !== 'waiting' || (held === 0 && sequence.units.length === 0), 'who waits holds no block')
    ownBlocks += held
    for (const unit of sequence.units) refs.set(unit, (refs.get(unit) ?? 0) + 1)
  }
  assert(count === waiting.count + prefilling.length + decodes.count, 'every sequence is in one place')
  assert(decodes.count + prefilling.length <= limits.sequencesMax, 'no more sequences run than the limit allows')
  for (const [unit, held] of refs) assert(cache.refsOf(unit) === held, 'a unit counts its holders')
  assert(refs.size === cache.heldUnits, 'every held unit has a holder')
  assert(ownBlocks + refs.size * pool.unitBlocks === pool.usedBlocks, 'blocks free + held = total (L8)')
  assert(pool.freeBlocks >= 0 && pool.usedBlocks >= 0, 'no block is free twice')
  assertArrivalOrder(state)
}

function assertArrivalOrder({ decodes, prefilling, waiting, limits }: EngineState): void {
  const decoding = lastOrdinal(decodes.members(), -1)
  const isInterleaved = limits.longPrefillTokens !== undefined
  const reading = lastOrdinal(prefilling, isInterleaved ? -1 : decoding)
  lastOrdinal(waiting, Math.max(decoding, reading))
}

/** The last ordinal of a place whose members stand in order of arrival, all after the one before. */
function lastOrdinal(place: Iterable<Sequence>, before: number): number {
  let previous = before
  for (const sequence of place) {
    assert(sequence.ordinal > previous, 'who runs arrived before who waits, each place in order of arrival')
    previous = sequence.ordinal
  }
  return previous
}
