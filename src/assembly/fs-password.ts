import { readFileSync } from 'node:fs'
import { ConfigError } from '../config/config-error.ts'

/** The password of the lease store: from the settings or the environment, or from the file that they name. */
export function readPassword({
  password,
  passwordFile,
}: {
  readonly password?: string | undefined
  readonly passwordFile?: string | undefined
}): string | undefined {
  if (passwordFile === undefined) return password
  try {
    // Files of secrets often end with a line break, which no password has.
    return readFileSync(passwordFile, 'utf8').replace(/[\r\n]+$/, '')
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error'
    throw new ConfigError([
      `sharing.redis.passwordFile is "${passwordFile}", which cannot be read (${code}). Correct the path.`,
    ])
  }
}
