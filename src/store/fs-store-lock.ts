import { readFileSync, unlinkSync, writeFileSync } from 'node:fs'

/**
 * One process owns a folder of the embedded database: two would write over each other's pages. The owner leaves its
 * number and when it was started in a file beside it; whoever finds an owner that still runs stays out and says who it is. A
 * process that died left nothing running, so its mark is taken over.
 */
export class FolderInUse extends Error {
  override readonly name = 'FolderInUse'
}

/** Takes the folder, or throws `FolderInUse`. The returned function gives it back. */
export function lockFolder(path: string, pid: number): () => void {
  const file = `${path.replace(/\/+$/, '')}.lock`
  const own = markOf(pid)
  // A second try: whoever is in our way may go, or die, between the two looks.
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

/** A number comes again; together with when its process was started it does not. Where that cannot be read it is 0. */
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
    // It is there, and somebody else's.
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
