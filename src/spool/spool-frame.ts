import { hash } from 'node:crypto'

/**
 * The form of a spool's segments. A segment is one header frame, then record frames:
 *
 *   header   magic, length, JSON {number of the first record, chain before it}, SHA-256 of both
 *   record   length (4 bytes, little-endian), JSON text, SHA-256(chain before ‖ length ‖ text)
 *
 * The hash of a record is the chain before the next one, over the ends of segments too. So a torn tail is seen when the
 * spool is opened, and a changed, removed or exchanged record is seen by whoever walks the chain. A cut tail and a
 * chain that was made again are not seen by the chain alone: that needs a witness outside (annex of the audit).
 */
export const HASH_BYTES = 32
const LENGTH_BYTES = 4
export const FRAME_BYTES = LENGTH_BYTES + HASH_BYTES

/** A record of a megabyte is a mistake; a length beyond it is a torn or foreign file. */
export const RECORD_BYTES_MAX = 1_048_576

const MAGIC = Buffer.from('SPWSPL1\n', 'latin1')

/** Before the first record of all. */
export const NO_CHAIN = Buffer.alloc(HASH_BYTES)

export interface SegmentHead {
  /** Number of the segment's first record. */
  readonly first: number
  /** Chain before it. */
  readonly chain: Buffer
}

export function encodeHead({ first, chain }: SegmentHead): Buffer {
  const text = Buffer.from(JSON.stringify({ first, chain: chain.toString('hex') }))
  const frame = Buffer.alloc(MAGIC.length + LENGTH_BYTES + text.length + HASH_BYTES)
  MAGIC.copy(frame)
  frame.writeUInt32LE(text.length, MAGIC.length)
  text.copy(frame, MAGIC.length + LENGTH_BYTES)
  const signed = frame.subarray(0, MAGIC.length + LENGTH_BYTES + text.length)
  hash('sha256', signed, 'buffer').copy(frame, signed.length)
  return frame
}

/** The head and its length in bytes; undefined when this is no whole head. */
export function decodeHead(bytes: Buffer): { readonly head: SegmentHead; readonly bytes: number } | undefined {
  const from = MAGIC.length + LENGTH_BYTES
  if (bytes.length < from || !bytes.subarray(0, MAGIC.length).equals(MAGIC)) return undefined
  const end = from + bytes.readUInt32LE(MAGIC.length)
  if (end - from > RECORD_BYTES_MAX || bytes.length < end + HASH_BYTES) return undefined
  if (!hash('sha256', bytes.subarray(0, end), 'buffer').equals(bytes.subarray(end, end + HASH_BYTES))) return undefined
  const { first, chain } = JSON.parse(bytes.toString('utf8', from, end)) as { first: number; chain: string }
  return { head: { first, chain: Buffer.from(chain, 'hex') }, bytes: end + HASH_BYTES }
}

/**
 * Records as one piece of a file. The first bytes of the buffer are the chain before, and are not written: so every
 * record's hash is over bytes that lie side by side, without a copy.
 */
export function encodeRecords(
  chain: Buffer,
  texts: readonly string[],
): { readonly bytes: Buffer; readonly chain: Buffer } {
  const lengths = texts.map((text) => Buffer.byteLength(text))
  let size = HASH_BYTES
  for (const length of lengths) size += length + FRAME_BYTES
  const buffer = Buffer.allocUnsafe(size)
  chain.copy(buffer)
  let at = HASH_BYTES
  for (const [i, text] of texts.entries()) {
    const length = lengths[i] as number
    buffer.writeUInt32LE(length, at)
    buffer.write(text, at + LENGTH_BYTES, length, 'utf8')
    const end = at + LENGTH_BYTES + length
    // A string of bytes costs a third of a buffer.
    buffer.write(hash('sha256', buffer.subarray(at - HASH_BYTES, end), 'binary'), end, 'latin1')
    at = end + HASH_BYTES
  }
  return { bytes: buffer.subarray(HASH_BYTES), chain: Buffer.from(buffer.subarray(size - HASH_BYTES)) }
}

export interface DecodedRecord {
  readonly text: string
  readonly chain: Buffer
  /** Bytes of the frame. */
  readonly bytes: number
}

/**
 * The record at `at`. `short`: the bytes end within it. `wrong`: its length is impossible, or its hash is not that of
 * the chain before it (asked only when the chain is given).
 */
export function decodeRecord(bytes: Buffer, at: number, chain?: Buffer): DecodedRecord | 'short' | 'wrong' {
  if (bytes.length < at + LENGTH_BYTES) return 'short'
  const length = bytes.readUInt32LE(at)
  if (length > RECORD_BYTES_MAX) return 'wrong'
  const end = at + LENGTH_BYTES + length
  if (bytes.length < end + HASH_BYTES) return 'short'
  const own = bytes.subarray(end, end + HASH_BYTES)
  if (chain !== undefined) {
    const linked = hash('sha256', Buffer.concat([chain, bytes.subarray(at, end)]), 'buffer')
    if (!linked.equals(own)) return 'wrong'
  }
  return { text: bytes.toString('utf8', at + LENGTH_BYTES, end), chain: Buffer.from(own), bytes: length + FRAME_BYTES }
}
