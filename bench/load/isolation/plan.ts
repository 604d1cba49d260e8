import { Rng } from '../../../src/base/rng.ts'
import { drawExponential } from '../../../src/sim/clients/draw.ts'

/**
 * Who asks what, and when: by column and seed alone, so that every arm gets the same requests at the same times. Five
 * tenants ask for half of their share; one of them asks for fifteen times as much in the middle of the run.
 */
export const TENANTS = ['calm-1', 'calm-2', 'calm-3', 'calm-4', 'noisy'] as const
export type Tenant = (typeof TENANTS)[number]

/** What the noisy tenant sends in its spike: chats as everybody, or answers of 2,000 tokens without `max_tokens`. */
export const COLUMNS = ['chats', 'long answers'] as const
export type Column = (typeof COLUMNS)[number]

export interface Ask {
  /** Seconds from the start; before zero the gateway is warmed up. */
  readonly atS: number
  readonly tenant: Tenant
  readonly promptWords: number
  readonly maxTokens: number | undefined
  /** The engine writes at least this many. */
  readonly minTokens: number | undefined
  readonly isSpike: boolean
}

/** Two engines of `h100-llama-70b-tp4` with 128 sequences each do about twenty such chats a second. */
const CAPACITY_PER_S = 20
/** Half of a fifth. */
const CALM_PER_S = CAPACITY_PER_S / TENANTS.length / 2
export const SPIKE = { times: 15, fromS: 15, toS: 55 }
export const SECONDS = 70
/** Lengths and the pace of the engines are learned. */
export const WARMUP_S = 12
const LONG_TOKENS = 2_000
/** Half of the chats declare this; answers of the simulated engine have 129 tokens in the median and 800 at most. */
const DECLARED_TOKENS = 512

export function planOf(column: Column, seed: number): Ask[] {
  return TENANTS.flatMap((tenant) => asksOf(tenant, column, seed)).toSorted((a, b) => a.atS - b.atS)
}

/** The arrivals of the calm tenants are the same in both columns. */
function asksOf(tenant: Tenant, column: Column, seed: number): Ask[] {
  const arrivals = Rng.stream(seed, `arrivals/${tenant}`)
  const lengths = Rng.stream(seed, `lengths/${tenant}`)
  const asks: Ask[] = []
  let atS = -WARMUP_S
  for (;;) {
    atS += drawExponential(arrivals) / (CALM_PER_S * (isSpikeAt(tenant, atS) ? SPIKE.times : 1))
    if (atS >= SECONDS) return asks
    const isSpike = isSpikeAt(tenant, atS)
    const isLong = isSpike && column === 'long answers'
    const promptWords = promptWordsOf(lengths)
    const maxTokens = lengths.next() < 0.5 ? DECLARED_TOKENS : undefined
    const lengthsAsked = isLong ? { maxTokens: undefined, minTokens: LONG_TOKENS } : { maxTokens, minTokens: undefined }
    asks.push({ atS, tenant, promptWords, isSpike, ...lengthsAsked })
  }
}

const isSpikeAt = (tenant: Tenant, atS: number): boolean => tenant === 'noisy' && atS >= SPIKE.fromS && atS < SPIKE.toS

/** Log-normal: 500 words in the median, from 100 to 2,000. */
function promptWordsOf(rng: Rng): number {
  const normal = Math.sqrt(-2 * Math.log(1 - rng.next())) * Math.cos(2 * Math.PI * rng.next())
  return Math.round(Math.min(2_000, Math.max(100, 500 * Math.exp(0.7 * normal))))
}

const WORDS =
  'water stone river dam gate level flow rain basin crest channel storm height valve weir spill tower'.split(' ')

/** Begins with words of its own, so that no prefix cache helps. A word is about a token. */
export function bodyOf({ promptWords, maxTokens, minTokens }: Ask, index: number, seed: number): string {
  const rng = Rng.stream(seed, `words/${index}`)
  const words = Array.from({ length: promptWords }, () => WORDS[rng.below(WORDS.length)])
  return JSON.stringify({
    model: 'm',
    stream: true,
    stream_options: { include_usage: true },
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    ...(minTokens !== undefined && { min_tokens: minTokens }),
    messages: [{ role: 'user', content: `Question ${seed}-${index}. ${words.join(' ')}?` }],
  })
}
