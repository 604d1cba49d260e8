import { openNote, readCheckpoint } from './signed-note.ts'

/**
 * Which chains are gone as a whole? A chain that is not there has no folder in which a problem could be found: its
 * checkpoints that were kept elsewhere, and the heads that other chains of its host have signed, still name it.
 */
export interface MissingChain {
  readonly origin: string
  /** The newest that is known of it. */
  readonly size: number
  readonly atMs: number
}

/** A chain that is there: its folder, and the origin of its checkpoints, '' where it has none. */
export interface PresentChain {
  readonly folder: string
  readonly origin: string
}

export function missingChains(
  present: readonly PresentChain[],
  notes: readonly string[],
  publicKey: Buffer,
): MissingChain[] {
  const hosts = new Set(present.flatMap(({ origin }) => (origin === '' ? [] : [hostOf(origin)])))
  const isHere = (origin: string): boolean =>
    present.some((chain) => chain.origin === origin || (chain.origin === '' && nameOf(chain.folder) === nameOf(origin)))
  const missing = new Map<string, MissingChain>()
  for (const note of notes) {
    const said = readCheckpoint(note)
    if (said === undefined || openNote(note, said.origin, publicKey) === undefined) continue
    for (const { origin, size } of [said, ...said.peers]) {
      // Checkpoints name chains of other regions, too.
      if (isHere(origin) || (hosts.size > 0 && !hosts.has(hostOf(origin)))) continue
      if ((missing.get(origin)?.size ?? -1) < size) missing.set(origin, { origin, size, atMs: said.atMs })
    }
  }
  return [...missing.values()]
}

const hostOf = (origin: string): string => origin.slice(0, Math.max(0, origin.lastIndexOf('/')))
const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
