import { readAuditKey } from '../audit/fs-audit-key.ts'
import { readTexts } from '../audit/fs-checkpoint-files.ts'
import { chainFolders } from '../audit/fs-read-events.ts'
import { NoteSigner, readPublicKey } from '../audit/signed-note.ts'
import { loadConfig } from '../config/load.ts'
import { auditPathOf } from '../main/live-audit.ts'
import { CONFIG_FLAG, type Flag, type FlagValues, textFlag, UsageError } from './command.ts'

/** What the commands of the audit have in common: which folder, and which key. They need no server. */
export const FOLDER_FLAGS: Readonly<Record<string, Flag>> = {
  folder: {
    type: 'string',
    short: 'f',
    value: 'DIR',
    meaning: 'the audit’s folder, or one chain of it (default: audit.path)',
  },
  config: CONFIG_FLAG,
}

export const PUBLIC_KEY_FLAG: Flag = {
  type: 'string',
  value: 'KEY',
  meaning: 'public key of the checkpoints, as the first start printed it (default: of audit.keyFile)',
}

export const CHECKPOINTS_FLAG: Flag = {
  type: 'string',
  value: 'FILE',
  multiple: true,
  meaning: 'checkpoints that were kept elsewhere; may be repeated',
}

export async function foldersOf(flags: FlagValues): Promise<string[]> {
  const path = textFlag(flags, 'folder') ?? auditPathOf(loadConfig({ path: textFlag(flags, 'config') }))
  const folders = await chainFolders(path).catch(() => [])
  if (folders.length > 0) return folders
  throw new UsageError(`there is no audit in ${path}. Name its folder with --folder, or turn it on: audit.enabled.`)
}

/** The public key that is given, or else that of the key file; `isOwn` says which. */
export function publicKeyOf(flags: FlagValues): { readonly key: Buffer; readonly isGiven: boolean } {
  const given = textFlag(flags, 'public-key')
  if (given !== undefined) {
    const key = readPublicKey(given)
    if (key === undefined) throw new UsageError(`--public-key is no Ed25519 key: ${given}`)
    return { key, isGiven: true }
  }
  return { key: new NoteSigner('any', auditKeyOf(flags).seed).publicKey, isGiven: false }
}

/** The audit's own secrets, where this command may read them. */
export function auditKeyOf(flags: FlagValues): ReturnType<typeof readAuditKey> {
  const config = loadConfig({ path: textFlag(flags, 'config') })
  const folder = textFlag(flags, 'folder')
  const root = folder === undefined ? auditPathOf(config) : folder.replace(/\/\d+\/?$/, '').replace(/\/+$/, '')
  const path = config.audit.keyFile ?? `${root}/signing.key`
  try {
    return readAuditKey(path)
  } catch (error) {
    throw new UsageError(`the key cannot be read: ${(error as Error).message}. Give --public-key.`)
  }
}

/** Texts of files with checkpoints. */
export async function givenCheckpoints(flags: FlagValues): Promise<string[] | undefined> {
  const files = flags['checkpoints'] as readonly string[] | undefined
  if (files === undefined) return undefined
  try {
    return await readTexts(files)
  } catch (error) {
    throw new UsageError(`--checkpoints cannot be read: ${(error as Error).message}`)
  }
}
