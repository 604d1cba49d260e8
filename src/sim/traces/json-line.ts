import { LineFault, shown, type TraceLine } from './trace.ts'

/** A line of JSON Lines, as an object. */
export function parseJsonLine(line: TraceLine): Readonly<Record<string, unknown>> {
  let value: unknown
  try {
    value = JSON.parse(line.text)
  } catch {
    throw new LineFault(line.number, `this is not JSON: ${shown(line.text)}. The line may be cut short.`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new LineFault(line.number, `this is ${shown(value)}, not an object.`)
  }
  return value as Record<string, unknown>
}

/** Does a first line have these fields? */
export function hasFields(firstLine: string, fields: readonly string[]): boolean {
  try {
    const value: unknown = JSON.parse(firstLine)
    return typeof value === 'object' && value !== null && fields.every((field) => field in value)
  } catch {
    return false
  }
}
