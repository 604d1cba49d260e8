import { hash } from 'node:crypto'
import { rootOfProof } from './merkle-tree.ts'
import { openNote, readCheckpoint } from './signed-note.ts'

/**
 * The proof that an event is in the audit, as C2SP's `tlog-proof` writes it: a text that says it all, with log n hashes
 * and without anybody else's events. The extra line has what the leaf is made of: the chain's hash before the event, and
 * the event.
 */
const HEAD = 'c2sp.org/tlog-proof@v1'

export interface TlogProof {
  /** From 0. */
  readonly index: number
  readonly before: Buffer
  readonly text: string
  readonly proof: readonly Buffer[]
  /** The signed checkpoint that it leads to. */
  readonly note: string
}

export function writeProof({ index, before, text, proof, note }: TlogProof): string {
  const extra = Buffer.concat([before, Buffer.from(text)]).toString('base64')
  const lines = proof.map((each) => `${each.toString('base64')}\n`)
  return `${HEAD}\nextra ${extra}\nindex ${index}\n${lines.join('')}\n${note}`
}

/** Undefined when the text is no such proof. */
export function readProof(text: string): TlogProof | undefined {
  const cut = text.indexOf('\n\n')
  const [head, extraLine = '', indexLine = '', ...hashes] = text.slice(0, Math.max(0, cut)).split('\n')
  const extra = Buffer.from(extraLine.replace(/^extra /, ''), 'base64')
  const index = Number(/^index (0|[1-9]\d{0,15})$/.exec(indexLine)?.[1] ?? Number.NaN)
  if (head !== HEAD || extra.length < 32 || !Number.isInteger(index) || hashes.length > 64) return undefined
  const proof = hashes.map((each) => Buffer.from(each, 'base64'))
  return { index, before: extra.subarray(0, 32), text: extra.toString('utf8', 32), proof, note: text.slice(cut + 2) }
}

export type ProofVerdict =
  | { readonly kind: 'proved'; readonly origin: string; readonly size: number; readonly signedAtMs: number }
  | { readonly kind: 'refused'; readonly because: string }

/** Needs nothing but the proof and the log's public key. */
export function checkProof({ index, before, text, proof, note }: TlogProof, publicKey: Buffer): ProofVerdict {
  const said = readCheckpoint(note)
  if (said === undefined || openNote(note, said.origin, publicKey) === undefined) {
    return { kind: 'refused', because: 'its checkpoint is not signed with this key' }
  }
  const data = chainHash(before, text)
  const root = rootOfProof({ index, data }, said.size, proof)
  if (root?.equals(said.root) !== true) {
    return { kind: 'refused', because: 'its hashes do not lead to the root that was signed: the event is another one' }
  }
  return { kind: 'proved', origin: said.origin, size: said.size, signedAtMs: said.atMs }
}

/** SHA-256(chain before ‖ length ‖ text), as the spool makes it. */
export function chainHash(before: Buffer, text: string): Buffer {
  const bytes = Buffer.from(text)
  const length = Buffer.alloc(4)
  length.writeUInt32LE(bytes.length)
  return hash('sha256', Buffer.concat([before, length, bytes]), 'buffer')
}
