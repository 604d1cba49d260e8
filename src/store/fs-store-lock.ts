import { readFileSync, unlinkSync, writeFileSync } from 'node:fs'

/**
 * A lock on a folder of the embedded database: two processes would write over each other's pages. The owner writes its
 * process id and start time into a file beside the folder. A process that finds a running owner stays out and names it.
 * The lock of a dead process is taken over.
 */
export class FolderInUse extends Error {
  override readonly name = 'FolderInUse'
}

/** Locks the folder, or throws `FolderInUse`. The returned function unlocks it. */
export function lockFolder(path: string, pid: number): () => void {
  const file = `${path.replace(/\/+$/, '')}.lock`
  const own = markOf(pid)
  // A second try: the owner may leave, or die, between the two looks.
  for (let attempt = 1; attempt <= 2; attempt++) {
    try {
      writeFileSync(file, own, { flag: 'wx', mode: 0o600 })
      return () => release(file, own)
    } catch (error) {
      if ((error as { code?: string }).code !== 'EEXIST') throw error
    }
    const found = read(file)
    const owner = Number(found?.split(' ')[0])
    if (found !== own && Number.isInteger(owner) && owner > 0 && markOf(owner) === found && isRunning(owner)) {
      throw new FolderInUse(
        `the folder ${path} is in use by process ${owner}. Stop that one, or give store.path another folder`,
      )
    }
    release(file, found)
  }
  writeFileSync(file, own, { mode: 0o600 })
  return () => release(file, own)
}

/**
 * A process id is used again; together with the start of its process it is unique. The start is 0 where it cannot be
 * read.
 */
function markOf(pid: number): string {
  const stat = read(`/proc/${pid}/stat`)
  const startedAt = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  return `${pid} ${startedAt ?? '0'}`
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // The process exists and belongs to another user.
    return (error as { code?: string }).code === 'EPERM'
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    return undefined
  }
}

function release(file: string, mark: string | undefined): void {
  if (read(file) !== mark) return
  try {
    unlinkSync(file)
  } catch {
    // Gone already.
  }
}
