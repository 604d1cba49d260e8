import type { Scorer } from '../room-view.ts'

/**
 * How long until the prompts that were placed there before have been read? An engine reads prompts one chunk a step,
 * so a new one waits for those ahead. The horizon is kept by the placer (`Learned.prefillDoneAt`): each placement
 * moves it on by its own predicted reading time, and the clock eats it. No gauge is that fresh.
 *
 * Example: 4,000 uncached tokens placed just now at 50 µs each: the next one waits 200 ms there; 150 ms later, 50 ms.
 */
export const scoreQueue: Scorer = (scene, _room, learned) => Math.max(0, learned.prefillDoneAt - scene.now)
