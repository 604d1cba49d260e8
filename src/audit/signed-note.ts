import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'

/**
 * Signed notes and checkpoints, as C2SP's `signed-note` and `tlog-checkpoint` write them: a text, a blank line, and one
 * line for each signature. So witnesses and tools that others made can read ours.
 *
 *   origin                     — which log this is
 *   size                       — events in it
 *   root                       — of the RFC 6962 tree over them, base64
 *   chain HEX                  — extension: the chain's hash of the last event
 *   time MS                    — extension: when it was signed
 *   peer ORIGIN SIZE ROOT      — extension: the newest head that is known of another chain
 *
 *   — ORIGIN base64(key id ‖ Ed25519 signature)
 */
export interface AuditCheckpoint {
  readonly origin: string
  readonly size: number
  readonly root: Buffer
  /** Hash of the last event; of no event, zeros. */
  readonly chain: Buffer
  readonly atMs: number
  readonly peers: readonly PeerHead[]
}

/** The newest checkpoint of another chain. */
export interface PeerHead {
  readonly origin: string
  readonly size: number
  readonly root: string
}

/** What follows the em dash of a signature line. */
const DASH = '\u2014 '
const ED25519 = 1
const SEED_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')
const PUBLIC_PREFIX = Buffer.from('302a300506032b6570032100', 'hex')

/** Peers that one checkpoint lists at most: a note stays small. */
export const PEERS_MAX = 64
/** Bytes of a note that anybody may send us. */
export const NOTE_BYTES_MAX = 16_384

export class NoteSigner {
  readonly name: string
  readonly publicKey: Buffer
  readonly #key: KeyObject

  /** `seed`: the 32 bytes of an Ed25519 private key. */
  constructor(name: string, seed: Buffer) {
    if (!isKeyName(name)) throw new Error(`"${name}" cannot name a log: no spaces, no plus`)
    this.name = name
    this.#key = createPrivateKey({ key: Buffer.concat([SEED_PREFIX, seed]), format: 'der', type: 'pkcs8' })
    this.publicKey = publicBytes(createPublicKey(this.#key))
  }

  sign(text: string): string {
    const signature = sign(null, Buffer.from(text), this.#key)
    const line = Buffer.concat([keyIdOf(this.name, this.publicKey), signature]).toString('base64')
    return `${text}\n${DASH}${this.name} ${line}\n`
  }
}

/** The text of a note that this key has signed under this name; undefined when it has not. */
export function openNote(note: string, name: string, publicKey: Buffer): string | undefined {
  if (note.length > NOTE_BYTES_MAX) return undefined
  const cut = note.lastIndexOf('\n\n')
  if (cut < 0) return undefined
  const text = note.slice(0, cut + 1)
  const id = keyIdOf(name, publicKey)
  for (const line of note.slice(cut + 2).split('\n')) {
    if (!line.startsWith(`${DASH}${name} `)) continue
    const bytes = Buffer.from(line.slice(DASH.length + name.length + 1), 'base64')
    if (bytes.length !== 4 + 64 || !bytes.subarray(0, 4).equals(id)) continue
    if (verify(null, Buffer.from(text), publicKeyOf(publicKey), bytes.subarray(4))) return text
  }
  return undefined
}

export const isKeyName = (name: string): boolean => name !== '' && name.length <= 200 && !/[\s+\p{C}]/u.test(name)

function keyIdOf(name: string, publicKey: Buffer): Buffer {
  const text = Buffer.concat([Buffer.from(`${name}\n`), Buffer.from([ED25519]), publicKey])
  return createHash('sha256').update(text).digest().subarray(0, 4)
}

/** The form in which Go's `note` package and witnesses take a key: `name+id+key`. */
export function verifierKeyOf(name: string, publicKey: Buffer): string {
  const key = Buffer.concat([Buffer.from([ED25519]), publicKey]).toString('base64')
  return `${name}+${keyIdOf(name, publicKey).toString('hex')}+${key}`
}

/** 32 bytes, from `name+id+key` or from the key's base64 alone; undefined for anything else. */
export function readPublicKey(text: string): Buffer | undefined {
  const parts = text.trim().split('+')
  // The key's own base64 may have a plus, its name and id have none.
  const isWhole = parts.length >= 3 && /^[0-9a-f]{8}$/.test(parts[1] ?? '')
  const bytes = Buffer.from(isWhole ? parts.slice(2).join('+') : text.trim(), 'base64')
  if (isWhole) return bytes.length === 33 && bytes[0] === ED25519 ? bytes.subarray(1) : undefined
  return bytes.length === 32 ? bytes : undefined
}

const publicBytes = (key: KeyObject): Buffer =>
  key.export({ format: 'der', type: 'spki' }).subarray(PUBLIC_PREFIX.length)

const publicKeyOf = (bytes: Buffer): KeyObject =>
  createPublicKey({ key: Buffer.concat([PUBLIC_PREFIX, bytes]), format: 'der', type: 'spki' })

export function checkpointText({ origin, size, root, chain, atMs, peers }: AuditCheckpoint): string {
  const heads = peers.slice(0, PEERS_MAX).map((peer) => `peer ${peer.origin} ${peer.size} ${peer.root}\n`)
  return `${origin}\n${size}\n${root.toString('base64')}\nchain ${chain.toString('hex')}\ntime ${atMs}\n${heads.join('')}`
}

/** The checkpoint in a note's text, whoever signed it; undefined when it is none. Unknown extension lines are passed over. */
export function readCheckpoint(text: string): AuditCheckpoint | undefined {
  const [origin = '', sizeText = '', rootText = '', ...more] = (text.split('\n\n')[0] ?? '').split('\n')
  const root = Buffer.from(rootText, 'base64')
  const size = Number(sizeText)
  if (!isKeyName(origin) || !/^(0|[1-9]\d{0,15})$/.test(sizeText) || root.length !== 32) return undefined
  const after = (word: string): string => more.find((line) => line.startsWith(`${word} `))?.slice(word.length + 1) ?? ''
  const chain = Buffer.from(after('chain'), 'hex')
  const peers = more.flatMap((line): PeerHead[] => {
    const [word, peer = '', peerSize = '', peerRoot = ''] = line.split(' ')
    return word === 'peer' ? [{ origin: peer, size: Number(peerSize), root: peerRoot }] : []
  })
  return { origin, size, root, chain, atMs: Number(after('time')) || 0, peers: peers.slice(0, PEERS_MAX) }
}

export function headOf(note: string): PeerHead | undefined {
  const checkpoint = readCheckpoint(note)
  return checkpoint && { origin: checkpoint.origin, size: checkpoint.size, root: checkpoint.root.toString('base64') }
}
