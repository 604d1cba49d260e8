import { promises as fs } from 'node:fs'
import { join } from 'node:path'
import { segmentPath } from '../spool/fs-segment.ts'
import type { FrontierState } from './merkle-tree.ts'

/** What lies beside a chain's segments: its checkpoints, a file a month, and the tree's frontier before each segment. */
const CHECKPOINTS = /^\d{4}-\d{2}\.checkpoints$/
/** A note and the blank line within; its text has none, so notes may follow each other. */
const NOTE = /[^\n][\s\S]*?\n\n(?:\u2014 [^\n]+\n)+/g

export async function appendCheckpoint(folder: string, note: string, atMs: number): Promise<void> {
  const path = join(folder, `${new Date(atMs).toISOString().slice(0, 7)}.checkpoints`)
  const file = await fs.open(path, 'a', 0o600)
  try {
    await file.write(note)
    await file.datasync()
  } finally {
    await file.close()
  }
}

export const splitNotes = (text: string): string[] => text.match(NOTE) ?? []

async function checkpointFiles(folder: string): Promise<string[]> {
  const names = await fs.readdir(folder).catch(() => [])
  return names
    .filter((name) => CHECKPOINTS.test(name))
    .sort()
    .map((name) => join(folder, name))
}

/** Every checkpoint of a chain, oldest first. */
export async function readCheckpointNotes(folder: string): Promise<string[]> {
  const notes: string[] = []
  for (const path of await checkpointFiles(folder)) notes.push(...splitNotes(await fs.readFile(path, 'utf8')))
  return notes
}

/** The newest checkpoint of a chain. */
export async function lastCheckpointNote(folder: string): Promise<string | undefined> {
  for (const path of (await checkpointFiles(folder)).reverse()) {
    const note = splitNotes(await fs.readFile(path, 'utf8')).at(-1)
    if (note !== undefined) return note
  }
  return undefined
}

const frontierPath = (folder: string, first: number): string =>
  segmentPath(folder, first).replace(/\.spool$/, '.frontier')

/** The tree before the segment that begins with this event. */
export async function writeFrontier(folder: string, state: FrontierState): Promise<void> {
  const path = frontierPath(folder, state.size + 1)
  await fs.writeFile(`${path}.new`, JSON.stringify(state), { mode: 0o600 })
  await fs.rename(`${path}.new`, path)
}

/** Undefined when there is none, or it is not whole. */
export async function readFrontier(folder: string, first: number): Promise<FrontierState | undefined> {
  try {
    const state = JSON.parse(await fs.readFile(frontierPath(folder, first), 'utf8')) as FrontierState
    return state.size === first - 1 ? state : undefined
  } catch {
    return undefined
  }
}

/** Frontiers before segments that are gone are of no use. */
export async function trimFrontiers(folder: string, first: number): Promise<void> {
  const kept = frontierPath(folder, first)
  for (const name of await fs.readdir(folder)) {
    const path = join(folder, name)
    if (name.endsWith('.frontier') && path < kept) await fs.unlink(path)
  }
}

export const readTexts = (paths: readonly string[]): Promise<string[]> =>
  Promise.all(paths.map((path) => fs.readFile(path, 'utf8')))
