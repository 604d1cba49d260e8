import { fnv1a32 } from './rng.ts'

/**
 * Where a request stands in somebody's trace (W3C Trace Context): the caller's `traceparent`, or one of our own. Ids are
 * made from the name of what is traced, so that whoever needs one makes the same: the header that goes on while it runs,
 * and the spans when it has ended.
 */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** The caller's span, 16 digits. */
  readonly parentId: string
  readonly isSampled: boolean
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const NO_TRACE = '0'.repeat(32)
const NO_SPAN = '0'.repeat(16)

/** Undefined for a header that the specification tells to ignore: unknown form, version ff, ids of zeros. */
export function readTraceparent(header: string): TraceContext | undefined {
  const [, version, traceId, parentId, flags, more] = TRACEPARENT.exec(header) ?? []
  if (traceId === undefined || parentId === undefined || version === 'ff') return undefined
  if (version === '00' && more !== undefined) return undefined
  if (traceId === NO_TRACE || parentId === NO_SPAN) return undefined
  return { traceId, parentId, isSampled: (Number.parseInt(flags ?? '0', 16) & 1) === 1 }
}

/** The trace of what nobody has traced before. */
export const traceIdOf = (name: string): string => hex(name, 'trace', 4)

/** The span of one part of it: `request`, `attempt 1`, … */
export const spanIdOf = (name: string, part: string): string => hex(name, part, 2)

/** The header that goes on with an attempt. */
export function traceparentOf(name: string, attempt: number, trace: TraceContext | undefined): string {
  const flags = trace?.isSampled === true ? '01' : '00'
  return `00-${trace?.traceId ?? traceIdOf(name)}-${spanIdOf(name, attemptPart(attempt))}-${flags}`
}

export const attemptPart = (attempt: number): string => `attempt ${attempt}`

function hex(name: string, part: string, words: number): string {
  let text = ''
  for (let i = 0; i < words; i++) text += fnv1a32(`${i}\u0000${part}\u0000${name}`).toString(16).padStart(8, '0')
  return text
}
