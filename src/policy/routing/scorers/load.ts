import type { Scorer } from '../room-view.ts'

/**
 * How crowded is it? Sequences that decode share every step with a new prompt, and a replica with much work left is
 * one whose memory fills. Predicted work in flight, weighted small: with the default weight of five
 * thousandths, ten answers of two seconds each count as 100 ms. Besides, it is what keeps equals equal: without it the
 * replica that is a little ahead collects prompts until its memory overflows.
 */
export const scoreLoad: Scorer = (_scene, room, learned) => room.ledger.engineUs * learned.slowness
