import { createHash } from 'node:crypto'

/**
 * Keys are stored as hashes only: a configuration file or its backup contains no credential. Plain SHA-256 is enough,
 * because secrets are 32 random bytes, which cannot be guessed with or without salt or stretching.
 */
export function hashKey(secret: string): string {
  return `sha256:${createHash('sha256').update(secret).digest('hex')}`
}
