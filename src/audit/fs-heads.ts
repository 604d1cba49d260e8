import { promises as fs } from 'node:fs'
import { join } from 'node:path'

/** The newest checkpoint of each chain of a host, in a small file of its own, for the other processes. */
const HEAD = 'head'

export async function writeHead(folder: string, note: string): Promise<void> {
  const path = join(folder, HEAD)
  await fs.writeFile(`${path}.new`, note, { mode: 0o600 })
  await fs.rename(`${path}.new`, path)
}

/** The newest checkpoints of all chains under the audit's folder, the own one among them. */
export async function readHeadNotes(path: string): Promise<string[]> {
  const notes: string[] = []
  for (const name of await fs.readdir(path).catch(() => [])) {
    if (!/^\d+$/.test(name)) continue
    const note = await fs.readFile(join(path, name, HEAD), 'utf8').catch(() => '')
    if (note !== '') notes.push(note)
  }
  return notes
}
