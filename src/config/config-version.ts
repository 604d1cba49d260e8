import { createHash } from 'node:crypto'
import { redacted } from './redact.ts'
import type { Config } from './schema.ts'

/** A name for the settings in force: the same for the same settings, another after any change. Made without secrets. */
export const configVersion = (config: Config): string =>
  `config-${createHash('sha256')
    .update(JSON.stringify(redacted(config)))
    .digest('hex')
    .slice(0, 12)}`
