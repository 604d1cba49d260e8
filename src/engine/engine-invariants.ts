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

function assertArrivalOrder(state: EngineState): void {
  let previous = -1
  for (const place of [state.decodes.members(), state.prefilling, state.waiting]) {
    for (const sequence of place) {
      assert(sequence.ordinal > previous, 'decoding before prefilling before waiting, each in order of arrival')
      previous = sequence.ordinal
    }
  }
}
