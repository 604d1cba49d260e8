import { createHash } from 'node:crypto'

/**
 * Keys are kept as hashes only: whoever reads a configuration file or a backup of it learns no credential. Plain
 * SHA-256 is enough because secrets are 32 random bytes: there is nothing to guess that salt or stretching would slow.
 */
export function hashKey(secret: string): string {
  return `sha256:${createHash('sha256').update(secret).digest('hex')}`
}
