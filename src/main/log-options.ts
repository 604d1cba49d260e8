import type { Config } from '../config/schema.ts'

/** The log has no level finer than `info`. */
export function logLevel(level: Config['logging']['level']): 'info' | 'warn' | 'error' | 'silent' {
  return level === 'trace' || level === 'debug' ? 'info' : level
}

export function logFormat(format: Config['logging']['format']): 'json' | 'pretty' {
  return format === 'auto' ? (process.stdout.isTTY ? 'pretty' : 'json') : format
}
