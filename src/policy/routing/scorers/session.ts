import type { Scorer } from '../room-view.ts'

/**
 * Did the conversation live here? Its history is probably in memory even where the prefix index has forgotten it, or
 * where the gateway could not name its blocks. Worth a fixed number of microseconds (the weight): enough to decide
 * between equals, too little to hold on to a replica that is a second behind.
 */
export const scoreSession: Scorer = (scene) => (scene.isSessionHome ? -1 : 0)
