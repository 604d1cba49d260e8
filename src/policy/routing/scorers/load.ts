import type { Scorer } from '../room-view.ts'

/**
 * How crowded is it? Sequences that decode share every step with a new prompt, and a replica with much work left is
 * one whose memory fills. Predicted work in flight, weighted small: with the default weight of a thousandth, 32
 * answers of five seconds each delay a newcomer by 160 ms, which is what sharing steps with 32 costs a long prompt.
 */
export const scoreLoad: Scorer = (_scene, room, learned) => room.ledger.engineUs * learned.slowness
