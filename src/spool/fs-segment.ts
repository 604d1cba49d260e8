import { promises as fs } from 'node:fs'
import { join } from 'node:path'
import { type DecodedRecord, decodeHead, decodeRecord, type SegmentHead } from './spool-frame.ts'

/** The files of a spool's folder: segments, each named by the number of its first record. */
export interface SpoolSegment {
  readonly path: string
  /** Number of its first record. */
  readonly first: number
}

const NAME = /^(\d{15})\.spool$/

export const segmentPath = (folder: string, first: number): string =>
  join(folder, `${String(first).padStart(15, '0')}.spool`)

/** The segments, oldest first. */
export async function listSegments(folder: string): Promise<SpoolSegment[]> {
  const names = await fs.readdir(folder)
  return names
    .map((name) => NAME.exec(name))
    .filter((match) => match !== null)
    .map((match) => ({ path: join(folder, match[0]), first: Number(match[1]) }))
    .sort((a, b) => a.first - b.first)
}

/** How far a segment is whole. */
export interface Walked {
  readonly head: SegmentHead
  /** Number of the next record. */
  readonly next: number
  readonly chain: Buffer
  /** Bytes that are whole, and those of a torn tail after them. */
  readonly bytes: number
  readonly tornBytes: number
}

/** Walks the chain of a segment, record by record; undefined when not even its head is whole. */
export async function walkSegment(
  path: string,
  visit?: (record: DecodedRecord, seq: number) => void,
): Promise<Walked | undefined> {
  const bytes = await fs.readFile(path)
  const decoded = decodeHead(bytes)
  if (decoded === undefined) return undefined
  let at = decoded.bytes
  let { first: next, chain } = decoded.head
  for (;;) {
    const record = decodeRecord(bytes, at, chain)
    if (typeof record === 'string') break
    visit?.(record, next)
    at += record.bytes
    chain = record.chain
    next++
  }
  return { head: decoded.head, next, chain, bytes: at, tornBytes: bytes.length - at }
}
