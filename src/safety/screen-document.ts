/** Rewrites every string of a JSON value, names of members included. Values nested deeper than this are left out. */
const DEPTH_MAX = 64

export interface LeafRewriting {
  readonly rewrite: (text: string) => string
  /** Whole numbers with fewer digits are passed over: no card and no account, but times, counts and ids. */
  readonly digitsMin: number
}

/** Digits from which on a number may be somebody's. Times in seconds have ten. */
export const PERSONAL_DIGITS_MIN = 11

export function rewriteLeaves(value: unknown, how: LeafRewriting, depth = 0): unknown {
  if (typeof value === 'string') return how.rewrite(value)
  if (typeof value === 'number') return rewriteNumber(value, how)
  if (typeof value !== 'object' || value === null) return value
  if (depth >= DEPTH_MAX) return null
  if (Array.isArray(value)) return value.map((one) => rewriteLeaves(one, how, depth + 1))
  const written: Record<string, unknown> = {}
  for (const name of Object.keys(value))
    Object.defineProperty(written, how.rewrite(name), {
      value: rewriteLeaves((value as Record<string, unknown>)[name], how, depth + 1),
      enumerable: true,
      configurable: true,
      writable: true,
    })
  return written
}

/** A card's number is a card's number without quotes, too. */
function rewriteNumber(value: number, { rewrite, digitsMin }: LeafRewriting): number | string {
  if (!Number.isInteger(value) || Math.abs(value) < 10 ** (digitsMin - 1)) return value
  const text = String(value)
  const written = rewrite(text)
  return written === text ? value : written
}

/** A name that is a word and nothing else: no key, and no number of somebody. */
const COUNTED_NAME = /^(?!.*\d{6})[a-z][a-z0-9_]{0,63}$/i

/** The numbers of a value, and what holds them: what an engine counts, without its words and whatever may be a card. */
export function numbersOf(value: unknown, depth = 0): unknown {
  if (typeof value === 'number') return Math.abs(value) < 10 ** (PERSONAL_DIGITS_MIN - 1) ? value : undefined
  if (typeof value !== 'object' || value === null || Array.isArray(value) || depth >= DEPTH_MAX) return undefined
  const counted: Record<string, unknown> = {}
  for (const [name, one] of Object.entries(value)) {
    const kept = COUNTED_NAME.test(name) ? numbersOf(one, depth + 1) : undefined
    if (kept !== undefined) counted[name] = kept
  }
  return counted
}

export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
