import type { Cell } from './grid.ts'
import { CellPlayer, type CellSeen } from './play-cell.ts'

/** A process that plays cells: it gets one after the other from its parent and ends when the parent does. */
export interface Errand {
  readonly cell: Cell
  readonly seeds: readonly number[]
  readonly seconds: number | undefined
}

export type Reply = { readonly seen: readonly CellSeen[] } | { readonly error: string }

let player: CellPlayer | undefined

async function answer({ cell, seeds, seconds }: Errand): Promise<Reply> {
  player ??= new CellPlayer(seconds)
  try {
    const seen: CellSeen[] = []
    for (const seed of seeds) seen.push(await player.play(cell, seed))
    return { seen }
  } catch (error) {
    return { error: `${cell.id}: ${error instanceof Error ? error.stack : String(error)}` }
  }
}

process.on('message', (errand: Errand) => {
  void answer(errand).then((reply) => process.send?.(reply, ignore))
})
/** A parent that has ended takes no reply: what follows is `disconnect`. */
const ignore = (): void => {}

process.on('disconnect', () => process.exit(0))
