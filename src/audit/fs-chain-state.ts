import { existsSync } from 'node:fs'
import { listSegments, walkSegment } from '../spool/fs-segment.ts'
import { NO_CHAIN } from '../spool/spool-frame.ts'
import { lastCheckpointNote, readFrontier } from './fs-checkpoint-files.ts'
import { MerkleFrontier } from './merkle-tree.ts'
import { openNote, readCheckpoint } from './signed-note.ts'

/**
 * The end of a chain as it lies on the disk, read before anything is cut or added: a log signs no checkpoint that
 * contradicts one it has signed before. A chain that is shorter than its last checkpoint, or another one, is `broken`:
 * it is left as it is, for whoever looks into it.
 */
export type ChainEnd =
  | {
      readonly kind: 'sound'
      readonly tree: MerkleFrontier
      readonly chain: Buffer
      readonly checkpointSize: number
      readonly tornBytes: number
    }
  | { readonly kind: 'broken'; readonly because: string }

export async function readChainEnd(folder: string, origin: string, publicKey: Buffer): Promise<ChainEnd> {
  if (!existsSync(folder)) return { ...sound(), tree: new MerkleFrontier(), chain: NO_CHAIN }
  const note = await lastCheckpointNote(folder)
  const checkpoint = note === undefined ? undefined : readCheckpoint(openNote(note, origin, publicKey) ?? '')
  if (note !== undefined && checkpoint === undefined) {
    return broken('its last checkpoint is not signed with the key of audit.keyFile under this name')
  }
  const { size: expected = 0 } = checkpoint ?? {}
  const segments = await listSegments(folder)
  const start = await newestFrontier(folder, segments, expected)
  if (start === undefined) return broken('the tree before its first segment is not known')
  const { tree } = start
  let chain: Buffer = NO_CHAIN
  let tornBytes = 0
  let because: string | undefined
  for (const { path, first } of segments.slice(start.from)) {
    if (first !== tree.size + 1) return broken(`events ${tree.size + 1} to ${first - 1} are missing before ${path}`)
    const walked = await walkSegment(path, (record, seq) => {
      tree.push(record.chain)
      const isAt = checkpoint !== undefined && seq === expected
      if (isAt && !tree.root().equals(checkpoint.root)) because = `event ${seq} and its checkpoint do not agree`
    })
    if (because !== undefined) return broken(because)
    tornBytes += walked?.tornBytes ?? 0
    chain = walked?.chain ?? chain
  }
  if (tree.size < expected) {
    return broken(`its last checkpoint has ${expected} events, and ${tree.size} of them are whole on the disk`)
  }
  return { ...sound(), tree, chain, checkpointSize: expected, tornBytes }
}

/** The last segment whose tree is known and that begins at or before the checkpoint's last event. */
async function newestFrontier(
  folder: string,
  segments: ReadonlyArray<{ readonly first: number }>,
  expected: number,
): Promise<{ readonly from: number; readonly tree: MerkleFrontier } | undefined> {
  for (let from = segments.length - 1; from > 0; from--) {
    const { first } = segments[from] as { first: number }
    const state = first > expected && expected > 0 ? undefined : await readFrontier(folder, first)
    if (state !== undefined) return { from, tree: new MerkleFrontier(state) }
  }
  const { first = 1 } = segments[0] ?? {}
  if (first === 1) return { from: 0, tree: new MerkleFrontier() }
  const state = await readFrontier(folder, first)
  return state === undefined ? undefined : { from: 0, tree: new MerkleFrontier(state) }
}

const sound = () => ({ kind: 'sound', checkpointSize: 0, tornBytes: 0 }) as const
const broken = (because: string): ChainEnd => ({ kind: 'broken', because })
