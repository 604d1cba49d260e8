import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { lockFolder } from '../store/fs-store-lock.ts'

/**
 * A backup of what a gateway with an embedded database keeps on its disk: the database, and beside it the spool, the files
 * of jobs and the audit. A whole copy of folders, made while nobody writes: the folder's lock is held, so a running server
 * keeps a backup out and a backup keeps a server out. `backup.json` has the size and hash of every file; without it a
 * backup is not whole, because it is written last.
 *
 *   FOLDER/backup.json   FOLDER/store/…   FOLDER/spool/…   FOLDER/files/…   FOLDER/audit/…
 */
export interface BackupParts {
  /** What is kept, by its name in the backup: `store` is the database. */
  readonly folders: Readonly<Record<string, string>>
  readonly version: string
}

interface BackupFile {
  readonly path: string
  readonly bytes: number
  readonly sha256: string
}

interface BackupList {
  readonly version: string
  readonly files: readonly BackupFile[]
}

export interface BackupDone {
  readonly fileCount: number
  readonly bytes: number
  readonly version: string
}

/** Told to whoever asked; nothing was changed. */
export class BackupRefused extends Error {
  override readonly name = 'BackupRefused'
}

const LIST = 'backup.json'

export function makeBackup(parts: BackupParts, target: string): BackupDone {
  const { folders, version } = parts
  const store = folders['store'] ?? ''
  if (!existsSync(store)) throw new BackupRefused(`there is no database in ${store}`)
  if (existsSync(target) && readdirSync(target).length > 0) throw new BackupRefused(`${target} is not empty`)
  return locked(store, () => {
    mkdirSync(target, { recursive: true, mode: 0o700 })
    const files = Object.entries(folders)
      .filter(([, folder]) => existsSync(folder))
      .flatMap(([name, folder]) =>
        copyTree(folder, join(target, name)).map((file) => ({ ...file, path: join(name, file.path) })),
      )
    const list: BackupList = { version, files }
    writeFileSync(join(target, LIST), `${JSON.stringify(list, undefined, 1)}\n`, { mode: 0o600 })
    return doneOf(list)
  })
}

/** Checks the whole backup first; what is in the way must be moved by hand. */
export function restoreBackup(source: string, folders: Readonly<Record<string, string>>): BackupDone {
  const list = readList(source)
  for (const file of list.files) {
    const path = join(source, file.path)
    if (!existsSync(path)) throw new BackupRefused(`the backup is not whole: ${file.path} is missing`)
    const found = describe(path)
    if (found.sha256 !== file.sha256) throw new BackupRefused(`the backup is damaged: ${file.path} has changed since`)
  }
  const names = [...new Set(list.files.map(({ path }) => path.split('/')[0] as string))]
  const inTheWay = names.map((name) => folders[name] ?? '').filter((folder) => existsSync(folder))
  if (inTheWay.length > 0) {
    throw new BackupRefused(`${inTheWay.join(', ')} is in the way. Move it aside; nothing is overwritten`)
  }
  const store = folders['store'] ?? ''
  mkdirSync(dirname(store), { recursive: true })
  return locked(store, () => {
    for (const name of names) {
      const folder = folders[name]
      if (folder === undefined) throw new BackupRefused(`the backup has ${name}, which this version does not know`)
      // A folder that is there is whole: it gets its name when its last file is.
      const half = `${folder}.restoring`
      rmSync(half, { recursive: true, force: true })
      copyTree(join(source, name), half)
      renameSync(half, folder)
    }
    return doneOf(list)
  })
}

function locked<T>(store: string, run: () => T): T {
  const unlock = lockFolder(store, process.pid)
  try {
    return run()
  } finally {
    unlock()
  }
}

function readList(source: string): BackupList {
  try {
    return JSON.parse(readFileSync(join(source, LIST), 'utf8')) as BackupList
  } catch {
    throw new BackupRefused(`${source} is no whole backup: it has no ${LIST}`)
  }
}

const doneOf = ({ files, version }: BackupList): BackupDone => ({
  fileCount: files.length,
  bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
  version,
})

/** Folders that are empty are kept, too: PostgreSQL wants its own. Links and sockets are nobody's data. */
function copyTree(from: string, to: string): BackupFile[] {
  mkdirSync(to, { recursive: true, mode: 0o700 })
  return readdirSync(from, { withFileTypes: true }).flatMap((entry): BackupFile[] => {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory())
      return copyTree(source, target).map((file) => ({ ...file, path: join(entry.name, file.path) }))
    if (!entry.isFile()) return []
    copyFileSync(source, target)
    return [{ path: entry.name, ...describe(target) }]
  })
}

function describe(path: string): { bytes: number; sha256: string } {
  const text = readFileSync(path)
  return { bytes: text.length, sha256: createHash('sha256').update(text).digest('hex') }
}
