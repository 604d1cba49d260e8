import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import { dataDir } from '@electric-sql/pglite-prepopulatedfs'
import { migrate } from '../../src/store/migrate.ts'
import { MIGRATIONS } from '../../src/store/migrations.ts'
import { SESSION_SETTINGS } from '../../src/store/session-settings.ts'
import { READY_DATABASE, ready } from './ready-database.ts'

/**
 * Runs once before all tests: an embedded database with the newest schema, kept until the schema or PGlite changes. Opening
 * an empty one and migrating it takes 2.5 CPU-seconds, opening a copy of this one 0.3. `ready-database.ts` hands it out.
 */
const KEPT = join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'spillway-test')

// biome-ignore lint/style/noDefaultExport: vitest calls a global setup's default export
export default async function prepare(): Promise<void> {
  const version = readFileSync(join(KEPT, '..', '..', '@electric-sql', 'pglite', 'package.json'), 'utf8')
  const key = createHash('sha256').update(version).update(JSON.stringify(MIGRATIONS)).digest('hex').slice(0, 16)
  const folder = join(KEPT, key)
  process.env[READY_DATABASE] = folder
  if (existsSync(folder)) return
  mkdirSync(KEPT, { recursive: true })
  const made = mkdtempSync(join(KEPT, 'making-'))
  await make(made)
  try {
    renameSync(made, folder)
  } catch {
    // Another run was faster.
    rmSync(made, { recursive: true })
  }
}

async function make(folder: string): Promise<void> {
  const extensions = { vector }
  const first = await PGlite.create({ loadDataDir: await dataDir(), extensions })
  await first.exec(SESSION_SETTINGS)
  await migrate({
    query: async (sql, parameters) => (await first.query<Record<string, unknown>>(sql, [...parameters])).rows,
    run: async (script) => void (await first.exec(script)),
    close: () => first.close(),
  })
  await first.exec('checkpoint')
  const image = await first.dumpDataDir('none')
  await first.close()
  const { imageFile, dataFolder } = ready(folder)
  writeFileSync(imageFile, Buffer.from(await image.arrayBuffer()))
  const second = await PGlite.create({ dataDir: dataFolder, loadDataDir: image, extensions })
  await second.close()
}
