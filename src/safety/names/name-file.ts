import { NAME_FEATURE_BITS } from './name-features.ts'
import { type NameWeights, TAG_COUNT } from './name-tagger.ts'

/** The tagger's weights as bytes: `SWN1`, the steps between tags, then the rows of features; one signed byte each. */
const MAGIC = 0x53574e31
const PREFIX_BYTES = 4
const STEPS = (TAG_COUNT + 1) * TAG_COUNT
const ROWS = TAG_COUNT << NAME_FEATURE_BITS
const BYTE_MAX = 127
/** Weights that one byte has room for: a few larger ones are cut, so that the many small ones keep their size. */
const SHARE_IN_RANGE = 0.9995

export function encodeNameWeights(rows: Float64Array, steps: Float64Array): Uint8Array {
  const sizes = rows
    .filter((weight) => weight !== 0)
    .map(Math.abs)
    .sort()
  const largest = sizes[Math.floor((sizes.length - 1) * SHARE_IN_RANGE)] ?? 1
  const bytes = new Uint8Array(PREFIX_BYTES + STEPS + ROWS)
  new DataView(bytes.buffer).setUint32(0, MAGIC)
  const toByte = (weight: number): number =>
    Math.max(-BYTE_MAX, Math.min(BYTE_MAX, Math.round((weight / largest) * BYTE_MAX)))
  for (const [i, weight] of steps.entries()) bytes[PREFIX_BYTES + i] = toByte(weight)
  for (const [i, weight] of rows.entries()) bytes[PREFIX_BYTES + STEPS + i] = toByte(weight)
  return bytes
}

export function decodeNameWeights(bytes: Uint8Array): NameWeights {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (bytes.length !== PREFIX_BYTES + STEPS + ROWS || view.getUint32(0) !== MAGIC)
    throw new Error('these bytes are no weights of the tagger of names: fetch the file again')
  // A copy: the bytes may be a part of a larger buffer that others use.
  const signed = new Int8Array(bytes.buffer, bytes.byteOffset + PREFIX_BYTES, STEPS + ROWS).slice()
  return { steps: signed.subarray(0, STEPS), rows: signed.subarray(STEPS) }
}
