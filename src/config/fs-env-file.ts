import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'

/** The variables of a `.env` file in the working directory, if there is one; the real environment wins over them. */
export function readEnvFile(path = '.env'): Readonly<Record<string, string | undefined>> {
  try {
    return parseEnv(readFileSync(path, 'utf8'))
  } catch {
    // The file is optional: absent or unreadable, its settings keep their defaults.
    return {}
  }
}
