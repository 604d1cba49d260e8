import type { Scorer } from '../room-view.ts'

/**
 * How far away is it? The round trip between here and the replica's region, told by configuration or measured by
 * probes; 0 at home.
 */
export const scoreDistance: Scorer = (_scene, _room, learned) => learned.distanceUs
