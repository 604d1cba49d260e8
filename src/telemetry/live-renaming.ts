import { createCipheriv, randomBytes } from 'node:crypto'
import type { Renaming } from './recording-line.ts'

/**
 * New names for the blocks of prompts and for conversations, by a cipher whose key never leaves the process. The hashes
 * that routing uses have 32 bits and a salt of as many: whoever knew one prompt could find the salt and then try other
 * texts. Behind AES with a random key a name tells only that two blocks are equal.
 *
 * A whole prompt is enciphered in one call, block by block (ECB: equal blocks must get equal names).
 */
const CIPHER = 'aes-128-ecb'
const KEY_BYTES = 16
const BLOCK_BYTES = 16
/** Bytes of a name: two of a million blocks get the same one with a chance of one in two, which costs nothing but a false hit. */
const NAME_BYTES = 5

const A_BLOCK = 1
const A_SESSION = 2

export function makeRenaming(): Renaming {
  const cipher = createCipheriv(CIPHER, randomBytes(KEY_BYTES), null).setAutoPadding(false)
  return {
    blocks: (hashes) => namesOf(cipher, hashes, A_BLOCK),
    session: (hash) => namesOf(cipher, [hash], A_SESSION)[0] as number,
  }
}

type Cipher = Pick<ReturnType<typeof createCipheriv>, 'update'>

function namesOf(cipher: Cipher, hashes: readonly number[], what: number): number[] {
  const plain = Buffer.alloc(hashes.length * BLOCK_BYTES)
  for (const [i, hash] of hashes.entries()) {
    plain.writeDoubleLE(hash, i * BLOCK_BYTES)
    plain[i * BLOCK_BYTES + 8] = what
  }
  const hidden = cipher.update(plain)
  return hashes.map((_, i) => hidden.readUIntLE(i * BLOCK_BYTES, NAME_BYTES))
}
