import type { Instant } from '../../base/clock.ts'
import type { Band } from '../../domain/tenant.ts'

/**
 * A recorded workload: who sent how much, when. Five formats are read (`traces/`), recognised by their first line; all
 * of them give one stream of requests in order of time.
 *
 * A line that cannot be parsed ends the reading with its place and the reason: a trace with missing lines is another
 * workload.
 */
export interface TraceRequest {
  readonly atUs: Instant
  /** The sender, if the trace names it. */
  readonly tenant?: string
  readonly promptTokens: number
  readonly outputTokens: number
  /** Names of the prompt's leading blocks: equal names in equal places are equal text. */
  readonly prefixHashes?: readonly number[]
  /** Tokens per block name. */
  readonly hashUnitTokens?: number
  /** What only recordings of a gateway say; where it is absent the scenario's first stream decides. */
  readonly asked?: AskedTerms
}

/** What a client asked for, beside the lengths. */
export interface AskedTerms {
  readonly model: string
  readonly band: Band
  readonly bid: number
  readonly outputTokensMax: number | undefined
  readonly choiceCount: number
  readonly sessionHash: number | undefined
  readonly deadlineUs: number
  /** Prompt tokens that an engine had in its cache. */
  readonly cachedTokens: number
}

/** One line of a trace, without its end. Numbered from 1, as editors do. */
export interface TraceLine {
  readonly text: string
  readonly number: number
  /** The file ends here without a line end: the line may be cut short. */
  readonly isUnended?: boolean
}

export interface TraceFormat {
  readonly name: string
  /** A first line of this format, for the message that lists the formats. */
  readonly example: string
  claims(firstLine: string): boolean
  /** Throws `LineFault` at a line that it cannot read. For recorded requests, it holds one line in memory. */
  read(lines: Iterable<TraceLine>, options: TraceOptions): Iterable<TraceRequest>
}

export interface TraceOptions {
  /** Speed of time: 2 halves every gap. */
  readonly factor: number
  /** For formats without single requests: ServeGen records rates and quantiles. */
  readonly seed: number
  /** Called with what a reader should know although the trace can be played. */
  readonly note: (text: string) => void
}

export const TRACE_DEFAULTS: TraceOptions = { factor: 1, seed: 1, note: () => {} }

/** One line is wrong; the caller adds the file's name. */
export class LineFault extends Error {
  override readonly name = 'LineFault'
  readonly line: number

  constructor(line: number, reason: string) {
    super(reason)
    this.line = line
  }
}

/** A trace cannot be read: `FILE:LINE: reason`, ready to be shown. */
export class TraceError extends Error {
  override readonly name = 'TraceError'
}

/** Longest plausible prompt or answer: a longer one is a broken line. */
const TOKENS_MAX = 100_000_000

/** A whole number of tokens, or the reason why not. An answer without tokens, which traces contain, counts as one. */
export function tokensOf(line: TraceLine, field: string, value: unknown): number {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  if (typeof number !== 'number' || !Number.isInteger(number) || number < 0 || number > TOKENS_MAX) {
    throw new LineFault(line.number, `${field} is ${shown(value)}, not a number of tokens.`)
  }
  return Math.max(1, number)
}

/** Checks that times ascend: a trace is played in one pass. */
export class TraceTimes {
  readonly #factor: number
  #lastUs = 0

  constructor(factor: number) {
    this.#factor = factor
  }

  next(line: TraceLine, field: string, value: unknown, unitUs: number): Instant {
    const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
    if (typeof number !== 'number' || !Number.isFinite(number) || number < 0) {
      throw new LineFault(line.number, `${field} is ${shown(value)}, not a time.`)
    }
    const atUs = Math.round((number * unitUs) / this.#factor)
    if (atUs < this.#lastUs) {
      throw new LineFault(line.number, `${field} is ${shown(value)}, before the line above. Sort the file by time.`)
    }
    this.#lastUs = atUs
    return atUs
  }
}

export function shown(value: unknown): string {
  if (value === undefined) return 'missing'
  const text = JSON.stringify(value)
  return text.length > 40 ? `${text.slice(0, 37)}…` : text
}

/** The prompt's leading blocks in the engine's size: a name for 512 tokens becomes 32 names for 16. */
export function blockHashes(request: TraceRequest, blockTokens: number): number[] {
  const { prefixHashes = [], hashUnitTokens = blockTokens, promptTokens } = request
  const perUnit = Math.max(1, Math.floor(hashUnitTokens / blockTokens))
  // The end of the prompt may cut the last unit short, and only whole blocks have names.
  const blocksMax = Math.floor(promptTokens / blockTokens)
  const hashes: number[] = []
  for (const unit of prefixHashes) {
    for (let i = 0; i < perUnit && hashes.length < blocksMax; i++) hashes.push(unit * perUnit + i)
  }
  return hashes
}
