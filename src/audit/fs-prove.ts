import { listSegments } from '../spool/fs-segment.ts'
import { readCheckpointNotes, readFrontier } from './fs-checkpoint-files.ts'
import { type ChainEvent, readChainEvents } from './fs-read-events.ts'
import { InclusionProver } from './merkle-tree.ts'
import { readCheckpoint } from './signed-note.ts'
import type { TlogProof } from './tlog-proof.ts'

/** Events of a request that one question finds at most. */
const EVENTS_MAX = 64

/** The events of a request in a chain, oldest first. */
export async function findRequest(folder: string, requestId: string): Promise<readonly ChainEvent[]> {
  const found: ChainEvent[] = []
  const mark = `"request":${JSON.stringify(requestId)}`
  for await (const events of readChainEvents(folder)) {
    for (const event of events) {
      if (!event.text.includes(mark)) continue
      const { request } = JSON.parse(event.text) as { request?: string }
      if (request === requestId && found.length < EVENTS_MAX) found.push(event)
    }
  }
  return found
}

/** The proof of an event; undefined while no checkpoint has it. */
export async function proveEvent(folder: string, event: ChainEvent): Promise<TlogProof | undefined> {
  const index = event.seq - 1
  const notes = await readCheckpointNotes(folder)
  // The first checkpoint that has the event: the proof stays the same, however much the log grows.
  const note = notes.find((each) => (readCheckpoint(each)?.size ?? 0) > index)
  const size = note === undefined ? 0 : (readCheckpoint(note)?.size ?? 0)
  if (note === undefined) return undefined
  const start = await startOf(folder, event.seq)
  const prover = new InclusionProver(index, start)
  for await (const events of readChainEvents(folder, prover.size + 1)) {
    for (const { seq, chain } of events) if (seq === prover.size + 1 && seq <= size) prover.push(chain)
    if (prover.size >= size) break
  }
  const { proof } = prover.finish()
  return { index, before: event.before, text: event.text, proof, note }
}

/** The tree before the last segment that begins at or before the event and whose tree is known. */
async function startOf(folder: string, seq: number): Promise<{ size: number; hashes: readonly string[] }> {
  const segments = await listSegments(folder)
  for (const { first } of segments.reverse()) {
    if (first > seq) continue
    if (first === 1) break
    const state = await readFrontier(folder, first)
    if (state !== undefined) return state
  }
  if (segments.at(-1)?.first === 1) return { size: 0, hashes: [] }
  throw new Error(`${folder}: the tree before the first segment is not known, so nothing can be proved`)
}
