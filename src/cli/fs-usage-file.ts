import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { UsageError } from './command.ts'

/** Bytes of a file that is checked, at most: its text is in memory as a whole. */
const BYTES_MAX = 256 * 1_024 * 1_024

export function writeUsageFile(path: string, text: string): void {
  try {
    writeFileSync(path, text)
  } catch (error) {
    throw new UsageError(`${path} cannot be written (${(error as NodeJS.ErrnoException).code}). Give another path.`)
  }
}

export function readUsageFile(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat?.isFile() !== true) throw new UsageError(`${path} is no file. Give the path of a CSV file.`)
  if (stat.size > BYTES_MAX) throw new UsageError(`${path} has more than ${BYTES_MAX} bytes. Split it.`)
  return readFileSync(path, 'utf8')
}
