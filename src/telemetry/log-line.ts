/** One line before it is spelled. */
export interface LogLine {
  readonly level: 'info' | 'warn' | 'error'
  readonly at: number
  readonly message: string
  /** Undefined ones are left out. */
  readonly fields: Readonly<Record<string, string | number | boolean | undefined>>
}

/**
 * For machines: one object, in the shape that pino made familiar. By hand, because it is one call of `JSON.stringify`:
 * half of the time that pino took for a settled request. Neither process id nor host: whoever collects logs adds
 * them, and two runs of one seed must log the same.
 */
export function jsonLine({ at, level, message, fields }: LogLine): string {
  const inner = JSON.stringify(fields).slice(1, -1)
  const comma = inner === '' ? '' : ','
  return `{"level":"${level}","time":${Math.round(at / 1_000)}${comma}${inner},"msg":${JSON.stringify(message)}}\n`
}

/**
 * The same line for a person: time of day, level unless it is ordinary, message, then fields as `name=value`.
 *
 *     14:03:07.125 request settled ticket=req_1 tenant=acme model=llama-8b outcome=completed totalMs=812.4
 */
export function prettyLine({ at, level, message, fields }: LogLine): string {
  const timeOfDay = new Date(Math.round(at / 1_000)).toISOString().slice(11, 23)
  let line = level === 'info' ? `${timeOfDay} ${message}` : `${timeOfDay} ${level.toUpperCase()} ${message}`
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) line += ` ${name}=${spell(value)}`
  return `${line}\n`
}

/** Quotation marks only where a value could be taken for two, or could repaint the terminal. */
function spell(value: string | number | boolean): string {
  if (typeof value !== 'string' || /^[\p{L}\p{N}._:/@+-]+$/u.test(value)) return String(value)
  return JSON.stringify(value)
}
