import type { Filter } from '../room-view.ts'

/**
 * Did it fail a moment ago? One failure ejects nobody (`health.ts` counts to more), but the very next ticket should
 * not have to find out whether it was the first of many, as long as somebody else has room.
 */
export const isUnsuspected: Filter = (scene, _room, learned) => learned.suspectUntil <= scene.now
