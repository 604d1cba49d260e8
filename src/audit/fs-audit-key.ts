import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'

/**
 * The audit's own secrets: the seed of the key that signs checkpoints, and a secret from which keys of tenants and tags
 * of subjects are made. A file for this user only; the first process that starts makes it.
 */
export interface AuditKey {
  readonly seed: Buffer
  readonly secret: Buffer
}

const HEAD = 'spillway-audit-key-1'

export function openAuditKey(path: string): AuditKey & { readonly isNew: boolean } {
  const [seed, secret] = [randomBytes(32), randomBytes(32)]
  try {
    const text = `${HEAD}\nseed ${seed.toString('base64')}\nsecret ${secret.toString('base64')}\n`
    writeFileSync(path, text, { flag: 'wx', mode: 0o600 })
    return { seed, secret, isNew: true }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return { ...readAuditKey(path), isNew: false }
}

export function readAuditKey(path: string): AuditKey {
  const lines = readFileSync(path, 'utf8').split('\n')
  const bytesAfter = (word: string): Buffer =>
    Buffer.from(lines.find((line) => line.startsWith(`${word} `))?.slice(word.length + 1) ?? '', 'base64')
  const [seed, secret] = [bytesAfter('seed'), bytesAfter('secret')]
  if (lines[0] !== HEAD || seed.length !== 32 || secret.length !== 32) {
    throw new Error(`${path} is no key file of the audit. Name another in audit.keyFile, or remove it to have one made`)
  }
  return { seed, secret }
}
