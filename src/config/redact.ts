import { type Config, ConfigSchema } from './schema.ts'

const HIDDEN = '(hidden)'

/** The configuration as it may be printed: no upstream key, no header value, no hash that could be tried offline. */
export function redacted(config: Config): unknown {
  const inOrder = Object.fromEntries(
    [...Object.keys(ConfigSchema.properties), 'file'].map((key) => [key, config[key as keyof Config]]),
  )
  return hide(inOrder, '')
}

/** An address, or several with commas, without the passwords that may be in them. */
export const redactedUrl = (text: string): string => text.replace(/(^|,)([a-z]+:\/\/)[^@/]*@/g, `$1$2${HIDDEN}@`)

function hide(value: unknown, key: string): unknown {
  if (key === 'apiKey' || key === 'password' || key === 'secret') return HIDDEN
  if ((key === 'hash' || key === 'keyHash') && typeof value === 'string')
    return `${value.slice(0, 'sha256:'.length + 8)}…`
  if (typeof value === 'string') return redactedUrl(value)
  if (Array.isArray(value)) return value.map((item) => hide(item, ''))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([, child]) => child !== undefined)
  if (key === 'headers') return Object.fromEntries(entries.map(([name]) => [name, HIDDEN]))
  return Object.fromEntries(entries.map(([name, child]) => [name, hide(child, name)]))
}
