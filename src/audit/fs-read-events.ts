import { promises as fs } from 'node:fs'
import { listSegments, type SpoolSegment } from '../spool/fs-segment.ts'
import { decodeHead, decodeRecord } from '../spool/spool-frame.ts'

/** An event as it lies in its chain. */
export interface ChainEvent {
  readonly seq: number
  readonly text: string
  /** The chain's hash before it, and with it. */
  readonly before: Buffer
  readonly chain: Buffer
}

/** The events of a chain, a segment at a time, without a look at their hashes; a segment that is no segment ends it. */
export async function* readChainEvents(folder: string, fromSeq = 1): AsyncGenerator<readonly ChainEvent[]> {
  const segments = await listSegments(folder)
  for (const [i, segment] of segments.entries()) {
    const { first = Number.POSITIVE_INFINITY } = segments[i + 1] ?? {}
    if (first <= fromSeq) continue
    yield eventsOf(segment, await fs.readFile(segment.path))
  }
}

function eventsOf({ path, first }: SpoolSegment, bytes: Buffer): ChainEvent[] {
  const decoded = decodeHead(bytes)
  if (decoded === undefined) throw new Error(`${path} does not begin as a segment. Try: spillway audit verify`)
  const events: ChainEvent[] = []
  let at = decoded.bytes
  let before = decoded.head.chain
  for (let seq = first; ; seq++) {
    const record = decodeRecord(bytes, at)
    if (typeof record === 'string') return events
    events.push({ seq, text: record.text, before, chain: record.chain })
    before = record.chain
    at += record.bytes
  }
}

/** The folders of chains under an audit's folder; the folder itself where it is one. */
export async function chainFolders(path: string): Promise<string[]> {
  const names = await fs.readdir(path)
  if (names.some((name) => /^\d{15}\.spool$/.test(name))) return [path]
  const numbers = names.filter((name) => /^\d+$/.test(name)).sort((a, b) => Number(a) - Number(b))
  return numbers.map((name) => `${path}/${name}`)
}
