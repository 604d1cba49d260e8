import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { FolderInUse, lockFolder } from '../store/fs-store-lock.ts'

/** Every process of a host has a folder of its own for its spool: a number within the common folder. */

/** Processes of one host that may share the folder. */
const PROCESSES_MAX = 256

export interface TakenFolder {
  readonly folder: string
  unlock(): void
}

/** The first folder that no running process has; undefined when there is none. */
export function takeSpoolFolder(
  path: string,
  pid: number,
  isWanted: (folder: string) => boolean = () => true,
): TakenFolder | undefined {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  for (let n = 0; n < PROCESSES_MAX; n++) {
    const taken = isWanted(`${path}/${n}`) ? lockIfFree(`${path}/${n}`, pid) : undefined
    if (taken !== undefined) return taken
  }
  return undefined
}

/** The folders of processes that are gone, one after the other, each locked while it is looked at; not the own one. */
export async function* leftSpoolFolders(path: string, own: string, pid: number): AsyncGenerator<string> {
  if (!existsSync(path)) return
  for (const name of readdirSync(path)) {
    if (!/^\d+$/.test(name) || `${path}/${name}` === own) continue
    const taken = lockIfFree(`${path}/${name}`, pid)
    if (taken === undefined) continue
    try {
      yield taken.folder
    } finally {
      taken.unlock()
    }
  }
}

function lockIfFree(folder: string, pid: number): TakenFolder | undefined {
  try {
    return { folder, unlock: lockFolder(folder, pid) }
  } catch (error) {
    if (error instanceof FolderInUse) return undefined
    throw error
  }
}
