import type { Filter } from '../room-view.ts'

/**
 * Would it stay clear of preemption? A replica whose memory the predicted answers would fill to the brim has to
 * preempt as soon as one of them is longer. Room with some air goes first.
 */
const FULL_RATIO = 0.95

export const hasAir: Filter = (scene, room) => {
  const { promptTokens, outputTokensHigh } = scene.ask.estimate
  return room.ledger.kvTokens + promptTokens + outputTokensHigh <= FULL_RATIO * room.kvTokensMax
}
