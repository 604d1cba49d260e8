import { cpSync, openAsBlob } from 'node:fs'
import { join } from 'node:path'
import { workerData } from 'node:worker_threads'
import { dataDir as emptyDatabase } from '@electric-sql/pglite-prepopulatedfs'

/**
 * Stands in for `@electric-sql/pglite-prepopulatedfs` in the thread of the embedded database (`ready-database-hook.ts`):
 * gives it the migrated database of `migrated-database.ts` instead of an empty one. A test that is about the migrations
 * themselves deletes the variable of the environment while it opens its database.
 */
export const READY_DATABASE = 'SPILLWAY_TEST_DATABASE'

export const ready = (folder: string): { readonly imageFile: string; readonly dataFolder: string } => ({
  imageFile: join(folder, 'image.tar'),
  dataFolder: join(folder, 'data'),
})

/** What the thread loads; undefined when its folder is ready as it is. */
export async function dataDir(): Promise<Blob | undefined> {
  const folder = process.env[READY_DATABASE]
  if (folder === undefined) return emptyDatabase()
  const { imageFile, dataFolder } = ready(folder)
  const { path } = workerData as { readonly path: string | undefined }
  if (path === undefined) return openAsBlob(imageFile)
  cpSync(dataFolder, path, { recursive: true })
  return undefined
}
