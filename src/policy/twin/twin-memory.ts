import type { KvCapacity } from './kv-meter.ts'
import { READ_KNOT, type TwinPrior } from './twin-prior.ts'

/**
 * What is worth keeping of what was learned of a replica's engine? Enough to begin with after a restart: the
 * coefficients are a prior then, which the first rows scale and correct, so an engine that has changed meanwhile is found
 * out as soon as one that nobody knew.
 */
export interface TwinMemory {
  readonly prior: string
  readonly decode: readonly number[]
  readonly read: readonly number[]
  readonly tokenBudget: number
  readonly rows: number
  readonly sequencesSeen: number
  readonly ceiling: number
  readonly kv?: KvCapacity | undefined
}

/** A memory that was kept, as text may have it; undefined when it is none. */
export function readTwinMemory(value: unknown): TwinMemory | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { prior, decode, read, tokenBudget, rows, sequencesSeen, ceiling, kv } = value as Partial<TwinMemory>
  if (typeof prior !== 'string' || !areFour(decode) || !areFour(read)) return undefined
  // Beyond these no row could correct it, and the engine would stand idle beside a gateway that thinks it a wreck.
  if (!isTime(wholeUsOf(decode, ORDINARY_STEP)) || !isTime(wholeUsOf(read, ORDINARY_PROMPT))) return undefined
  if (!isAmount(tokenBudget) || tokenBudget < TOKEN_BUDGET_MIN) return undefined
  if (!isAmount(rows) || !isAmount(sequencesSeen) || !isAmount(ceiling)) return undefined
  const isKvKnown = isAmount(kv?.tokensMax) && kv.tokensMax >= 1 && typeof kv?.isTold === 'boolean'
  return { prior, decode, read, tokenBudget, rows, sequencesSeen, ceiling, kv: isKvKnown ? kv : undefined }
}

/**
 * The prior that a memory is. Its name begins with the profile's, however often it was remembered. A coefficient that was
 * learned to be nothing is a tenth of a percent of the whole: no row could correct a prior that is sure of nothing.
 */
export function priorOfMemory({ prior, decode, read, tokenBudget }: TwinMemory): TwinPrior {
  return {
    name: `${prior.split(',')[0]}, from before the restart`,
    decode: floored(decode, ORDINARY_STEP),
    read: floored(read, ORDINARY_PROMPT),
    tokenBudget,
  }
}

const SHARE_MIN = 0.001
/** Sequences, their context and prompt tokens of a step; and the terms of a prompt. */
const ORDINARY_STEP = [1, 64, 64_000, 320]
const ORDINARY_PROMPT = [1, READ_KNOT, READ_KNOT, READ_KNOT ** 2 / 2]

/** Tokens of a step at least, and microseconds of an ordinary step or prompt: ten minutes are not even a laptop's. */
const TOKEN_BUDGET_MIN = 16
const WHOLE_US_MIN = 1
const WHOLE_US_MAX = 600_000_000

const isTime = (wholeUs: number): boolean => wholeUs >= WHOLE_US_MIN && wholeUs <= WHOLE_US_MAX

const wholeUsOf = (coefficients: readonly number[], ordinary: readonly number[]): number =>
  coefficients.reduce((sum, coefficient, i) => sum + coefficient * ordinary[i]!, 0)

function floored(coefficients: readonly number[], ordinary: readonly number[]): readonly number[] {
  const wholeUs = wholeUsOf(coefficients, ordinary)
  return coefficients.map((coefficient, i) => Math.max(coefficient, (wholeUs * SHARE_MIN) / ordinary[i]!))
}

const isAmount = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value > 0

const areFour = (value: unknown): value is readonly number[] =>
  Array.isArray(value) &&
  value.length === 4 &&
  value.every((each) => each === 0 || isAmount(each)) &&
  value.some(isAmount)
