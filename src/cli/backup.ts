import packageJson from '../../package.json' with { type: 'json' }
import { type BackupDone, BackupRefused, makeBackup, restoreBackup } from '../assembly/fs-backup.ts'
import { loadConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { auditPathOf } from '../main/live-audit.ts'
import { CONFIG_FLAG, type Command, type FlagValues, textFlag, UsageError } from './command.ts'

/** `spillway backup` and `spillway restore`: the embedded store of a server that is stopped. */
export const backupCommand: Command = {
  name: 'backup',
  summary: 'copy the embedded store and what lies beside it',
  about:
    'For a server with an embedded database, while it is stopped: the database, the spool, the files of jobs and the audit\n' +
    'go into a new folder, with a list of hashes. A database server is backed up with its own tools (pg_dump).',
  flags: {
    to: { type: 'string', value: 'FOLDER', meaning: 'where to put it; must be new or empty (required)' },
    config: CONFIG_FLAG,
  },
  examples: ['spillway backup --config spillway.yaml --to /backups/2026-11-16'],
  run(flags, io) {
    const to = needed(flags, 'to')
    const config = configOf(flags, `pg_dump --format=custom --file=FILE "$DATABASE_URL"`)
    const parts = { folders: foldersOf(config), version: packageJson.version }
    io.out(`Backed up ${tellDone(refusedAsUsage(() => makeBackup(parts, to)))} to ${to}.`)
    return Promise.resolve(0)
  },
}

export const restoreCommand: Command = {
  name: 'restore',
  summary: 'put a backup of the embedded store in its place',
  about:
    'Checks every file of the backup first. Nothing is overwritten: move the present store aside before. A database server\n' +
    'is restored with its own tools (pg_restore).',
  flags: {
    from: { type: 'string', value: 'FOLDER', meaning: 'a folder that "spillway backup" made (required)' },
    config: CONFIG_FLAG,
  },
  examples: ['spillway restore --config spillway.yaml --from /backups/2026-11-16'],
  run(flags, io) {
    const from = needed(flags, 'from')
    const config = configOf(flags, `pg_restore --clean --if-exists --dbname="$DATABASE_URL" FILE`)
    const done = refusedAsUsage(() => restoreBackup(from, foldersOf(config)))
    io.out(`Restored ${tellDone(done)}, made by spillway ${done.version}.`)
    return Promise.resolve(0)
  },
}

function needed(flags: FlagValues, name: 'to' | 'from'): string {
  const folder = textFlag(flags, name)
  if (folder === undefined) throw new UsageError(`--${name} is missing: the folder of the backup.`)
  return folder
}

function configOf(flags: FlagValues, command: string): Config {
  const config = loadConfig({ path: textFlag(flags, 'config') })
  if (config.store.url !== undefined) {
    throw new UsageError(`store.url names a database server. Use its tools: ${command} (docs/operations/upgrade.md).`)
  }
  if (config.store.path === 'memory:') throw new UsageError('store.path is memory: there is nothing on the disk.')
  return config
}

const foldersOf = (config: Config): Readonly<Record<string, string>> => ({
  store: config.store.path,
  spool: config.ledger.spoolPath ?? `${config.store.path}.spool`,
  files: config.jobs.path ?? `${config.store.path}.files`,
  audit: auditPathOf(config),
})

const tellDone = ({ fileCount, bytes }: BackupDone): string =>
  `${fileCount} files, ${(bytes / 1_048_576).toFixed(1)} MiB`

/** Words for people; the folder's owner, too, is named by a message of its own. */
function refusedAsUsage<T>(run: () => T): T {
  try {
    return run()
  } catch (error) {
    const isTold = error instanceof BackupRefused || (error as Error).name === 'FolderInUse'
    if (isTold) throw new UsageError(`nothing was changed: ${(error as Error).message}.`)
    throw error
  }
}
