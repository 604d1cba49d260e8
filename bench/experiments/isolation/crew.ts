import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Cell } from './grid.ts'
import type { CellSeen } from './play-cell.ts'
import type { Errand, Reply } from './work.ts'

/** Plays cells in child processes, one or two at a time, on this tree or on another. */
export interface CrewOptions {
  readonly jobs: number
  readonly seeds: readonly number[]
  readonly seconds: number | undefined
  /** Another tree whose `src/` is measured. */
  readonly tree: string | undefined
  readonly onCell: (seen: readonly CellSeen[]) => void
}

export async function playCells(cells: readonly Cell[], options: CrewOptions): Promise<Map<string, CellSeen[]>> {
  const queue = [...cells]
  const all = new Map<string, CellSeen[]>()
  const work = async (): Promise<void> => {
    const child = start(options.tree)
    try {
      for (let cell = queue.shift(); cell !== undefined; cell = queue.shift()) {
        const seen = await ask(child, { cell, seeds: options.seeds, seconds: options.seconds })
        all.set(cell.id, [...seen])
        options.onCell(seen)
      }
    } finally {
      child.disconnect()
    }
  }
  await Promise.all(Array.from({ length: Math.min(options.jobs, cells.length) }, work))
  return all
}

function start(tree: string | undefined): ChildProcess {
  const hook = new URL('other-tree.ts', import.meta.url)
  if (tree !== undefined) hook.searchParams.set('tree', tree)
  return fork(join(import.meta.dirname, 'work.ts'), { execArgv: tree === undefined ? [] : ['--import', hook.href] })
}

/** Exits of the child are an error: it never ends by itself. */
async function ask(child: ChildProcess, errand: Errand): Promise<readonly CellSeen[]> {
  const ended = new AbortController()
  const exit = once(child, 'exit', { signal: ended.signal }).then(() => ({
    error: `${errand.cell.id}: the process ended`,
  }))
  const reply = once(child, 'message').then(([message]) => message as Reply)
  child.send(errand)
  const said = await Promise.race([reply, exit])
  exit.catch(() => {})
  ended.abort()
  if ('error' in said) throw new Error(said.error)
  return said.seen
}
