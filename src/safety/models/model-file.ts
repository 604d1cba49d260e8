import type { LinearWeights } from './linear-model.ts'
import { FEATURE_COUNT } from './read-features.ts'

/**
 * Trained weights as bytes: `SWM1`, the length of a header in JSON, the header, one signed byte per feature. The header
 * has two texts of ours with the scores that the model gave them when it was trained: a model whose bytes or whose
 * reader has changed scores them otherwise, and is not ready.
 */
export interface TrainedModel extends LinearWeights {
  readonly selfTest: readonly SelfTestCase[]
}

export interface SelfTestCase {
  readonly text: string
  readonly score: number
}

const MAGIC = 0x53574d31
const PREFIX_BYTES = 8
/** Header bytes at most: it has two short texts and ten numbers. */
const HEADER_BYTES_MAX = 4_096

export function encodeModel({ weights, ...header }: TrainedModel): Uint8Array {
  const text = new TextEncoder().encode(JSON.stringify(header))
  if (text.length > HEADER_BYTES_MAX) throw new Error(`the header of the model ${header.name} is too long`)
  const bytes = new Uint8Array(PREFIX_BYTES + text.length + weights.length)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, MAGIC)
  view.setUint32(4, text.length)
  bytes.set(text, PREFIX_BYTES)
  bytes.set(new Uint8Array(weights.buffer, weights.byteOffset, weights.length), PREFIX_BYTES + text.length)
  return bytes
}

export function decodeModel(bytes: Uint8Array): TrainedModel {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (bytes.length < PREFIX_BYTES || view.getUint32(0) !== MAGIC) throw new Error('these bytes are no safety model')
  const headerBytes = view.getUint32(4)
  if (headerBytes > HEADER_BYTES_MAX || bytes.length !== PREFIX_BYTES + headerBytes + FEATURE_COUNT) {
    throw new Error(`a safety model has ${bytes.length} bytes, which is not its length: fetch the file again`)
  }
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(PREFIX_BYTES, PREFIX_BYTES + headerBytes))) as Omit<
    TrainedModel,
    'weights'
  >
  // A copy: the bytes may be a part of a larger buffer that others use.
  const weights = new Int8Array(bytes.buffer, bytes.byteOffset + PREFIX_BYTES + headerBytes, FEATURE_COUNT).slice()
  return { ...header, weights }
}
